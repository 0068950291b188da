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

#include "nic/soft/wire/shm/layout.h"

namespace anydat::nic::soft::shm {

class MappedRegions {
 public:
  ~MappedRegions();

  // From any thread that holds an RdmaUse of the key: where [address, address + length) of the peer is here, or null.
  std::byte* find(std::uint32_t key, std::uint64_t address, std::uint64_t length) const {
    const Table* table = table_.load(std::memory_order_acquire);
    if (!table) return nullptr;
    const Entry& entry = (*table)[key % kEntries];
    // Sequentially consistent, as is the mark of the use: remove() sees the mark, or we see its change.
    if (entry.key.load() != key) return nullptr;
    const std::uint64_t offset = address - entry.address;
    return offset <= entry.length && length <= entry.length - offset ? entry.at + offset : nullptr;
  }
  // Likewise: it has been used without being mapped. True if its owner shall be asked now.
  bool used(std::uint32_t key);

  // With the engine held, from here. `fd` is of the file that the region begins in at `offset`.
  void add(const MappingBody& mapping, int fd);
  // The region has gone. `header` is where uses are marked.
  void remove(std::uint32_t key, const SegmentHeader& header);

 private:
  static constexpr std::size_t kEntries = 256;
  struct Entry {
    std::atomic<std::uint32_t> key{0};    // 0: nothing is mapped
    std::atomic<std::uint32_t> seen{0};   // the last key that was used here
    std::atomic<std::uint32_t> asked{0};  // for
    // Written while `key` is 0.
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::byte* at = nullptr;
    void* pages = nullptr;
    std::size_t page_bytes = 0;
  };
  using Table = std::array<Entry, kEntries>;

  std::atomic<Table*> table_{nullptr};  // made when first needed
};

}  // namespace anydat::nic::soft::shm
