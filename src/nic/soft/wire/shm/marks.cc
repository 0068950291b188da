// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/marks.h"

#include <new>

#include "os/mapping.h"
#include "os/memory_file.h"

namespace anydat::nic::soft::shm {

MarkTable::~MarkTable() {
  os::unmap(marks_, kMarkBytes);
}

MarkTable MarkTable::create(os::UniqueFd& fd) {
  fd = os::make_memory_file("anydat-marks", kMarkBytes);
  if (!fd || !os::seal(fd.get())) return {};
  void* memory = os::map_shared(fd.get(), kMarkBytes, true);
  if (!memory) {
    fd.reset();
    return {};
  }
  return MarkTable(new (memory) Marks{});
}

MarkTable MarkTable::attach(int fd) {
  if (!os::cannot_shrink_below(fd, kMarkBytes)) return {};
  if (os::size_of(fd) != kMarkBytes) return {};
  return MarkTable(os::map_shared(fd, kMarkBytes, true));
}

}  // namespace anydat::nic::soft::shm
