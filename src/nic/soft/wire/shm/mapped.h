// SPDX-License-Identifier: BSD-3-Clause
// Regions of a peer that are mapped here as well, so that RDMA is a copy in memory.
//
// A region is asked for when it is used for the second time. Its owner answers with a descriptor, if there is a file
// behind the region, and tells when the region has gone. Nothing depends on the answer: until it comes, and if none
// does, RDMA goes the other ways.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "nic/region_table.h"
#include "nic/soft/wire/shm/layout.h"

namespace anydat::nic::soft::shm {

class MappedRegions {
 public:
  ~MappedRegions();

  // A region of the peer, and where it is here.
  struct Mapped {
    Region region;  // as its peers know it
    std::byte* at;
    const std::atomic<std::uint32_t>* life;  // holds the key as long as the region is there
    std::byte* place_of(std::uint64_t address) const { return at + (address - region.address); }
  };
  // From any thread in a post, whose end is waited for before the memory is given back. What it says of the region
  // holds while the peer's table has the key, since a key means one region for ever. Null: it is not mapped.
  const Mapped* find(std::uint32_t key) const {
    const Table* table = table_.load(std::memory_order_acquire);
    if (!table || key == 0) return nullptr;  // 0, which a program may name, is no key
    const Entry& entry = (*table)[key % kEntries];
    return entry.key.load(std::memory_order_acquire) == key ? &entry.mapped : nullptr;
  }
  // From any thread in a post, too: the region has been used without being mapped. True if its owner shall be asked
  // now.
  bool used(std::uint32_t key);

  // With the engine held, from here. `fd` is of the file that the region begins in at `offset`; `regions` is the peer's
  // table.
  void add(const MappingBody& mapping, int fd, const PeerRegions& regions);
  // The region has gone: no post finds it any more. True if it was mapped, and give_back() is due when the posts that
  // have found it are over.
  bool close(std::uint32_t key);
  void give_back(std::uint32_t key);

 private:
  static constexpr std::size_t kEntries = 256;
  struct Entry {
    std::atomic<std::uint32_t> key{0};    // 0: nothing is mapped
    std::atomic<std::uint32_t> seen{0};   // the last key that was used here
    std::atomic<std::uint32_t> asked{0};  // for
    // Written while `key` is 0.
    Mapped mapped{};
    void* pages = nullptr;
    std::size_t page_bytes = 0;
  };
  using Table = std::array<Entry, kEntries>;

  std::atomic<Table*> table_{nullptr};  // made when first needed
};

}  // namespace anydat::nic::soft::shm
