// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "nic/engine.h"
#include "nic/soft/wire/shm/grants.h"
#include "nic/soft/wire/shm/rdma_uses.h"
#include "os/clock.h"

namespace anydat::nic::soft::shm {

class Link;
class ShmStream;

// The hazards of a link: what the peer is using of this side's memory by RDMA, or is writing of a message that it
// pushes (rdma_uses.h, grants.h), how it is pressed to let go of that, and the gates of both sides, at which RDMA waits
// while the end of a connection is on its way.
//
// Each `close` that is sent shuts the gate: the peer begins no RDMA on this link, of any connection, until it has dealt
// with that. tests/models/rdma_gate.pml is its model.
//
// With the engine held, but for what says otherwise. Lives and dies with its link.
class Hazards {
 public:
  // A stretch of a peer's RDMA takes a tenth of a millisecond. This is far more, but for a peer that is stopped in the
  // middle of one.
  static constexpr os::Nanoseconds kPatience = os::kNsPerSecond / 2;
  static constexpr os::Nanoseconds kBetweenLooks = 500'000;

  Hazards(Link& link, Engine& engine);
  Hazards(const Hazards&) = delete;
  Hazards& operator=(const Hazards&) = delete;

  // ---- regions that have been taken out of our table, so that the answer stays no once it is
  bool needs_fence(std::uint32_t key) const;
  // Does the peer use the region by RDMA? To be asked, like press(), after a fence of the peer, if it needs one for the
  // key.
  bool in_use(std::uint32_t key) const;
  // The same, and if it does, it has half a second to let go of it, or the link is cut.
  bool press(std::uint32_t key);
  // Both in one, for what nothing else can be using.
  bool lets_go_of(std::uint32_t key);
  // For longer than a look takes.
  bool uses(std::uint32_t key) const;
  // Any region, or any buffer that it has a grant to write, for longer than a look takes.
  bool uses_any() const;

  // ---- this side's gate
  void shut_gate();
  // To be called after a `close` has been sent: from then on all RDMA that has begun before can be seen in its slot.
  // How many have been sent so far.
  std::uint32_t fence_at_gate() const;
  // Whether the peer has dealt with so many, or no slot names this connection.
  bool past_gate(std::uint32_t number, const ShmStream& stream) const;
  void never_lets_go();  // the half second has gone by in vain: cuts the link
  // No RDMA begins any more on a link that is over. How long what is under way may take.
  os::Nanoseconds end();

  // ---- the peer's gate, for RDMA of this side
  // True: it is shut, and the stream comes back when it opens. False: it has opened meanwhile. With the send lock.
  bool wait_at_gate();
  // To be called when a `close` of the peer has been dealt with: nothing that it ends is under way any more. True: the
  // gate is open now, and RDMA of this side waits for that.
  bool open_gate();

 private:
  bool peer_gone() const;
  template <typename InUse>
  bool persists(InUse&& in_use) const;
  void look_whether_pressed();

  Link& link_;
  Engine& engine_;
  std::uint32_t gates_shut_ = 0;               // how often this side has
  std::atomic<bool> somebody_at_gate_{false};  // of this side
  bool out_of_patience_ = false;               // the peer has had its half second
  Timer press_timer_;
  std::uint32_t pressed_ = 0;  // the first key that the peer is to let go of; others are looked at after it
  os::Nanoseconds pressed_until_ = 0;
};

}  // namespace anydat::nic::soft::shm
