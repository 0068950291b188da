// SPDX-License-Identifier: BSD-3-Clause
#include "base/shareable.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <map>
#include <memory>

#include "base/file_limit.h"
#include "base/fork.h"
#include "base/lock.h"

namespace anydat::base {

namespace {

struct Allocation {
  std::size_t bytes;
  UniqueFd fd;
};

// The child of a fork has the memory, too, and may go on sharing it: the list is the parent's, and no fork comes while
// it changes. Only the lock may have been held.
class Allocations {
 public:
  using Map = std::map<std::uint64_t, Allocation>;
  // With the lock. May throw std::bad_alloc.
  Map& map() {
    if (!map_) {
      map_ = new Map;  // never destroyed: allocations may outlive static destructors
      after_fork_.enlist();
    }
    return *map_;
  }
  Mutex lock;

 private:
  Map* map_ = nullptr;
  AfterFork after_fork_{[](void* self) { std::construct_at(&static_cast<Allocations*>(self)->lock); }, this};
};
constinit Allocations all;

}  // namespace

void* allocate_shareable(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (bytes == 0 || bytes > SIZE_MAX - page) return nullptr;
  bytes = (bytes + page - 1) / page * page;
  if (!file_may_have(bytes)) return nullptr;
  UniqueFd fd(memfd_create("anydat-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return nullptr;
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  fd.keep_in_child();
  Guard guard(all.lock);
  const ForkHeldOff held_off;
  all.map().emplace(reinterpret_cast<std::uint64_t>(memory), Allocation{bytes, std::move(fd)});
  return memory;
}

bool free_shareable(void* address) {
  Guard guard(all.lock);
  const auto found = all.map().find(reinterpret_cast<std::uint64_t>(address));
  if (found == all.map().end()) return false;
  munmap(address, found->second.bytes);
  found->second.fd.reset();
  const ForkHeldOff held_off;
  all.map().erase(found);
  return true;
}

std::optional<Backing> find_allocation(std::uint64_t address, std::uint64_t length) {
  Guard guard(all.lock);
  auto after = all.map().upper_bound(address);
  if (after == all.map().begin()) return std::nullopt;
  const auto& [start, allocation] = *--after;
  if (address - start >= allocation.bytes || length > allocation.bytes - (address - start)) return std::nullopt;
  struct stat status;
  const int ours = allocation.fd.get();
  UniqueFd fd = UniqueFd::of([ours] { return fcntl(ours, F_DUPFD_CLOEXEC, 0); });
  if (!fd || fstat(fd.get(), &status) != 0) return std::nullopt;
  return Backing{std::move(fd), address - start, status.st_dev, status.st_ino};
}

// Memory files have huge pages, too, with the same seals: but there need not be one to give when the memory is touched,
// which ends the process that does.
bool cannot_shrink_below(int fd, std::uint64_t bytes) {
  struct statfs system;
  if (fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC) return false;
  struct stat status;
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &status) == 0 &&
         static_cast<std::uint64_t>(status.st_size) >= bytes;
}

}  // namespace anydat::base
