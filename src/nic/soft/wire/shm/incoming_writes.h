// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/ring.h"

namespace anydat::nic::soft::shm {

class ShmStream;

// RDMA Writes of the peer of a connection over shared memory, as far as it is this side that puts them in place, and
// how many of them the peer does not know of yet.
//
// One whose memory is not there is held until it is, with what comes behind it. The peer asks before it sends them, but
// pages may go meanwhile, and not every peer does as it should.
//
// With the engine held. Lives and dies with its stream.
class IncomingWrites {
 public:
  explicit IncomingWrites(ShmStream& stream) : stream_(stream) {}
  IncomingWrites(const IncomingWrites&) = delete;
  IncomingWrites& operator=(const IncomingWrites&) = delete;

  void piece_arrived(const CellView& view, const std::byte* bytes);
  bool short_arrived(const CellView& view);  // a whole one; false: malformed
  // One has been put in place, and is told of together with those that follow at once.
  void done();
  void tell_done();

  // ---- those that wait for their memory, and what waits behind them
  bool holds() const { return held_ != nullptr; }
  bool holds_messages() const;
  bool keeps_back(const CellView& view) const { return held_ && comes_in_order(view.kind); }
  void hold(const CellView& view, std::span<const std::byte> piece = {});
  void go_on();
  // The memory at that address is not to be had. False: it is not what the oldest of them is for.
  bool fail(std::uint64_t address);
  void drop() { held_.reset(); }

 private:
  struct HeldCell {
    CellKind kind;
    std::uint8_t flags;
    std::uint32_t cells;
    std::uint32_t length;
    std::uint32_t aux;
    std::size_t body_bytes;
    std::vector<std::byte> bytes;  // the body, and the piece
    CellView view() const;
  };
  struct Held {
    std::list<HeldCell> cells;  // the Write first
    std::size_t bytes = 0;
  };

  static bool comes_in_order(CellKind kind);
  bool place_held();
  bool put_in_place(std::uint64_t where, std::span<const std::byte> bytes, std::uint64_t left, bool last);
  bool put_piece(const CellView& view, std::span<const std::byte> bytes);
  bool put_short(const CellView& view, bool& sane);

  ShmStream& stream_;
  std::unique_ptr<Held> held_;  // null: nothing; most connections never have any
  std::uint32_t done_ = 0;      // that the peer does not know of
};

}  // namespace anydat::nic::soft::shm
