// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/mapped.h"

namespace anydat::nic::soft::shm {

class Fabric;
class Link;
struct ProgramFile;

// Regions that the two sides of a link show each other, so that RDMA is a copy in memory (mapped.h): those of the peer
// that are mapped here, and those of ours that the peer has asked for.
//
// With the engine held, but for what MappedRegions says. Lives and dies with its link.
class MappingExchange {
 public:
  MappingExchange(Link& link, Fabric& fabric) : link_(link), fabric_(fabric) {}
  MappingExchange(const MappingExchange&) = delete;
  MappingExchange& operator=(const MappingExchange&) = delete;

  // ---- the peer's
  MappedRegions& mapped() { return mapped_; }
  const MappedRegions& mapped() const { return mapped_; }
  void ask_for(std::uint32_t key);
  void arrived(std::span<const std::byte> datagram, int fd);
  void taken_back(std::uint32_t key);

  // ---- ours
  // Shows the memory of a region, if it can be shown. Once: the answer would be the same.
  void show(std::uint32_t key);
  // Shows the file that a region lies in. False if the descriptor is another file's by now.
  bool show_file(std::uint32_t key, const ProgramFile& file);
  void region_gone(std::uint32_t key);

 private:
  Link& link_;
  Fabric& fabric_;
  MappedRegions mapped_;
  std::vector<std::uint32_t> shown_;  // of ours, that the peer has asked for, until they go; sorted
};

}  // namespace anydat::nic::soft::shm
