// SPDX-License-Identifier: BSD-3-Clause
#include "os/shareable.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <memory>

#include "os/fork.h"
#include "os/lock.h"
#include "os/mapping.h"
#include "os/memory_file.h"
#include "os/own_files.h"

namespace anydat::os {

namespace {

struct Allocation {
  std::size_t bytes = 0;
  UniqueFd fd;
  dev_t device = 0;
  ino_t inode = 0;
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
  const std::size_t page = page_bytes();
  if (bytes == 0 || bytes > SIZE_MAX - page) return nullptr;
  bytes = (bytes + page - 1) / page * page;
  Allocations::Map one;
  auto place = one.extract(one.try_emplace(0).first);  // what may throw comes before there is anything to lose
  {
    Guard guard(all.lock);
    all.map();
  }
  UniqueFd fd = make_memory_file("anydat-memory", bytes);
  struct stat status {};
  if (!fd || !seal(fd.get()) || fstat(fd.get(), &status) != 0) return nullptr;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  fd.keep_in_child();
  place.key() = reinterpret_cast<std::uint64_t>(memory);
  place.mapped() = {bytes, std::move(fd), status.st_dev, status.st_ino};
  Guard guard(all.lock);
  Allocations::Map& map = all.map();
  const ForkHeldOff held_off;
  map.insert(std::move(place));
  return memory;
}

bool free_shareable(void* address) {
  Allocations::Map::node_type place;
  {
    Guard guard(all.lock);
    Allocations::Map& map = all.map();
    const auto found = map.find(reinterpret_cast<std::uint64_t>(address));
    if (found == map.end()) return false;
    const ForkHeldOff held_off;
    place = map.extract(found);
  }
  munmap(address, place.mapped().bytes);
  return true;
}

std::optional<Backing> find_allocation(std::uint64_t address, std::uint64_t length) {
  Guard guard(all.lock);
  auto after = all.map().upper_bound(address);
  if (after == all.map().begin()) return std::nullopt;
  const auto& [start, allocation] = *--after;
  if (address - start >= allocation.bytes || length > allocation.bytes - (address - start)) return std::nullopt;
  const int ours = allocation.fd.get();
  // The program may have closed it, and opened a file of its own by that number. That one is not duplicated: closing
  // the copy would give up all record locks (POSIX) that the process has on it.
  if (!is_file(ours, allocation.device, allocation.inode)) return std::nullopt;
  UniqueFd fd = UniqueFd::of([ours] { return fcntl(ours, F_DUPFD_CLOEXEC, 0); });
  // Nor is one shown to a peer that has got the number just now.
  if (!fd || !is_file(fd.get(), allocation.device, allocation.inode)) return std::nullopt;
  return Backing{std::move(fd), address - start, allocation.device, allocation.inode};
}

}  // namespace anydat::os
