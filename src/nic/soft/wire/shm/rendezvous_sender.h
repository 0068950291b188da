// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nic/soft/stream.h"
#include "nic/soft/wire/shm/announcements.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/ring.h"

namespace anydat::nic::soft::shm {

class ShmStream;

// Large messages that go out by rendezvous: each is announced, and stays among the requests until its bytes have left.
// The receiver has chosen how when it answers: it has pulled the message out of our memory; it lets us push it into the
// buffer; or it clears it to be sent in pieces, through the bulk ring (RendezvousReceiver).
//
// Thread safety: announce() with the queue pair's send lock; all else with the engine held. Lives and dies with its
// stream.
class RendezvousSender {
 public:
  explicit RendezvousSender(ShmStream& stream) : stream_(stream) {}
  RendezvousSender(const RendezvousSender&) = delete;
  RendezvousSender& operator=(const RendezvousSender&) = delete;

  SendOutcome announce(std::uint64_t number, const SendRequest& message);
  // Whether the peer has not got all yet. From any thread.
  bool any() const { return announcements_.any(); }

  // ---- answers; false: malformed
  bool clear_to_send_arrived(std::uint32_t sequence);
  bool push_arrived(const CellView& view);
  bool pulled_arrived(std::uint32_t sequence);
  // The number that a message has among the requests; nothing if it has left, or there is none.
  std::optional<std::uint64_t> number_of(std::uint32_t sequence);

  // ---- turns; true if there is more to do and nothing to wait for
  bool push_some();
  bool send_pieces();

  // ---- ends
  // The memory at that address is not to be had: the first message that is being sent from there fails. False: none is.
  bool fail(std::uint64_t address);
  void region_removed();  // as Stream
  void drop();            // of a connection that is over

 private:
  using Announced = Announcements::Announced;
  enum class Step : std::uint8_t { moved, no_room, unusable };
  struct PushedShare {
    Announced* entry;
    std::uint32_t sequence;
    std::uint64_t length;
    std::uint64_t bytes;  // of those in this turn
  };
  // never: the kernel does not let us, or the receiver's memory is not there.
  enum class Push : std::uint8_t { yes, not_now, never, unusable };

  bool describe(const SendRequest& message, AnnounceBody& body, Announced& entry);
  Announced* announced(std::uint32_t sequence);
  void finish(Announced& entry, WorkStatus status);
  Push add_to(CopyBatch& batch, PushedShare& share, std::uint64_t limit);
  CopyOutcome push(const CopyBatch& batch, std::span<const PushedShare> shares);
  bool cannot_push(Push why, const PushedShare& share);
  bool pushed(std::span<const PushedShare> shares, CopyOutcome outcome);
  Step send_piece(Announced& entry, std::uint32_t sequence, std::uint64_t& length);

  ShmStream& stream_;
  Announcements announcements_;
};

}  // namespace anydat::nic::soft::shm
