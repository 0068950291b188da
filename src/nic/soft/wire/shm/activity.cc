// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/activity.h"

#include <sys/stat.h>

#include <new>

#include "os/mapping.h"
#include "os/memory_file.h"

namespace anydat::nic::soft::shm {

ActivityTable::~ActivityTable() {
  os::unmap(activity_, kActivityBytes);
}

ActivityTable ActivityTable::create(base::UniqueFd& fd) {
  fd = os::make_memory_file("anydat-activity", kActivityBytes);
  if (!fd || !os::seal(fd.get())) return {};
  void* memory = os::map_shared(fd.get(), kActivityBytes, true);
  if (!memory) {
    fd.reset();
    return {};
  }
  return ActivityTable(new (memory) Activity{});
}

ActivityTable ActivityTable::attach(int fd) {
  if (!os::cannot_shrink_below(fd, kActivityBytes)) return {};
  struct stat status;
  if (fstat(fd, &status) != 0 || status.st_size != static_cast<off_t>(kActivityBytes)) return {};
  return ActivityTable(os::map_shared(fd, kActivityBytes, true));
}

}  // namespace anydat::nic::soft::shm
