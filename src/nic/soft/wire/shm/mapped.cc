// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/mapped.h"

#include <new>

#include "os/mapping.h"
#include "os/memory_file.h"
#include "os/own_files.h"

namespace anydat::nic::soft::shm {

MappedRegions::~MappedRegions() {
  Table* table = table_.load();
  if (!table) return;
  for (const Entry& entry : *table) {
    os::unmap(entry.pages, entry.page_bytes);
  }
  delete table;
}

bool MappedRegions::used(std::uint32_t key) {
  Table* table = table_.load(std::memory_order_acquire);
  if (!table) {
    auto* fresh = new (std::nothrow) Table;
    if (!fresh) return false;
    if (table_.compare_exchange_strong(table, fresh)) {
      table = fresh;
    } else {
      delete fresh;  // another thread was quicker
    }
  }
  Entry& entry = (*table)[key % kEntries];
  if (entry.asked.load(std::memory_order_relaxed) == key) return false;
  if (entry.seen.exchange(key, std::memory_order_relaxed) != key) return false;
  // A place that is taken stays taken until its region goes.
  if (entry.key.load(std::memory_order_relaxed) != 0) return false;
  return entry.asked.exchange(key) != key;
}

void MappedRegions::add(const MappingBody& mapping, int fd, const PeerRegions& regions) {
  Table* table = table_.load();
  if (!table || mapping.key == 0) return;
  Entry& entry = (*table)[mapping.key % kEntries];
  if (entry.key.load() != 0 || entry.pages || entry.asked.load() != mapping.key) return;
  // It must be what the table says, by which RDMA is allowed from now on.
  const std::optional<Region> region = regions.find(mapping.key);
  const bool writable = mapping.writable != 0;
  if (!region || region->address != mapping.address || region->length != mapping.length) return;
  if (writable != ((region->rights & access::kRemoteWrite) != 0)) return;
  if (mapping.length == 0 || mapping.length > SIZE_MAX / 2 || mapping.offset > SIZE_MAX / 2) return;
  if (!os::cannot_shrink_below(fd, mapping.offset + mapping.length)) return;
  // Its owner's program may have closed the descriptor and opened another file while it was being passed.
  if (!os::is_file(fd, mapping.device, mapping.inode)) return;
  const std::uint64_t page = os::page_bytes();
  const std::uint64_t lead = mapping.offset % page;
  void* pages = os::map_shared(fd, lead + mapping.length, writable, mapping.offset - lead);
  if (!pages) return;
  entry.mapped = {region->known(), static_cast<std::byte*>(pages) + lead, &regions.life_of(mapping.key)};
  entry.pages = pages;
  entry.page_bytes = lead + mapping.length;
  entry.key.store(mapping.key);
}

bool MappedRegions::close(std::uint32_t key) {
  Table* table = table_.load();
  if (!table || key == 0) return false;
  Entry& entry = (*table)[key % kEntries];
  std::uint32_t asked = key;
  entry.asked.compare_exchange_strong(asked, 0);
  if (entry.key.load() != key) return false;
  entry.key.store(0);
  return true;
}

void MappedRegions::give_back(std::uint32_t key) {
  Entry& entry = (*table_.load())[key % kEntries];
  os::unmap(entry.pages, entry.page_bytes);
  entry.pages = nullptr;
}

}  // namespace anydat::nic::soft::shm
