// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "nic/soft/own_pages.h"
#include "nic/soft/page_faulter.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/ring.h"

namespace anydat::nic::soft::shm {

class ShmStream;

// What the peer of a connection over shared memory asks for here: Reads that it cannot do itself and atomic operations,
// which it never does, answered in their order as far as there is room in the ring and the memory is there; and memory
// that is to be brought in before the peer touches it.
//
// With the engine held. Lives and dies with its stream.
class ReadResponder final : private OwnPages::User {
 public:
  explicit ReadResponder(ShmStream& stream);
  ~ReadResponder();
  ReadResponder(const ReadResponder&) = delete;
  ReadResponder& operator=(const ReadResponder&) = delete;

  // All the memory that so many at once need. May throw std::bad_alloc.
  void reserve(std::size_t requests) { served_.reserve(requests); }

  // ---- requests that have arrived; false: malformed
  bool read_arrived(const CellView& view);
  bool atomic_arrived(const CellView& view);
  bool fault_in_arrived(const CellView& view);

  // ---- what it may use
  // Whether the peer may use memory of this side, which is there for us at `where`. If not, the connection ends.
  bool opens(std::uint32_t key, std::uint64_t at, std::uint64_t length, std::uint32_t right, std::uint64_t& where,
             std::size_t reads_before_it = 0);

  // Goes on with what waited for room in the ring, or for memory; true if anything moved.
  bool serve();
  void bring() { sources_.bring(); }  // as OwnPages
  void drop() { served_.clear(); }

 private:
  struct Served {
    GetBody request;
    std::uint64_t offset = 0;  // what has been sent
    std::optional<AtomicBody> atomic{};
  };

  // What a Read of the peer is refused with that comes behind so many that are not answered.
  static CloseBody read_behind(std::size_t reads) { return {Refused::a_read, static_cast<std::uint32_t>(reads)}; }
  bool has_room();
  bool serve_atomic(const AtomicBody& body);
  void fail(std::uint64_t address, bool writes);
  void wants_pages() override;
  void pages_brought(const OwnPages& pages, const OwnPages::Brought& news) override;

  ShmStream& stream_;
  OwnPages sources_;                     // of what is read and changed
  std::vector<Served> served_;           // in the order asked for
  PageFaulter::Request pages_for_peer_;  // that it has asked for
};

}  // namespace anydat::nic::soft::shm
