// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include "nic/soft/incoming.h"
#include "nic/soft/send_ring.h"
#include "nic/soft/window.h"
#include "nic/timer.h"

namespace anydat::nic::soft {

class SoftQueuePair;

// What a queue pair does to memory windows: its binds, in their turn; what messages of its peer invalidate; and the end
// of those that its connection alone has shown. Each waits for a peer that is in the middle of using what a window has
// shown.
//
// With the engine held. Lives and dies with its queue pair.
class WindowOperations {
 public:
  explicit WindowOperations(SoftQueuePair& queue_pair);
  WindowOperations(const WindowOperations&) = delete;
  WindowOperations& operator=(const WindowOperations&) = delete;

  // ---- for the stream
  // Whether the peer may have this key invalidated: it is of a window that is open to no other peer (D2-SENDINV-4).
  bool may_invalidate(std::uint32_t key) const { return key != 0 && own_.find(key); }
  // Of a message that is all there: takes back what it invalidates, before it is finished (D2-SENDINV-3). not_yet: the
  // peer is in the middle of using that, and Stream::resume_receiving() will come. no: it may not (any more); the
  // stream ends the connection.
  enum class Readiness : std::uint8_t { yes, not_yet, no };
  Readiness make_ready(Incoming& message);

  // ---- for the send queue
  // A bind whose turn it is. False: its region has gone. Nothing: a peer is in the middle of using what its window
  // showed, and it is looked at again.
  std::optional<bool> carry_out(SendRing::Entry& entry);

  // ---- for the connection, as it ends
  void connection_ends();
  // True: the peer uses nothing any longer that has been shown to it alone. False: the end goes on when it lets go.
  bool let_go();
  void reset() { invalidation_waits_ = false; }  // to no connection

 private:
  void look_later();
  void look();

  SoftQueuePair& queue_pair_;
  OwnWindows own_;
  bool invalidation_waits_ = false;
  Timer look_timer_;
};

}  // namespace anydat::nic::soft
