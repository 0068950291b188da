// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include "nic/patience.h"
#include "nic/soft/send_queue.h"
#include "nic/timer.h"

namespace anydat::nic::soft {

class SoftQueuePair;

// The orderly end of a connection, which either side asks for: it waits for what one side still owes the other, as long
// as there is progress and for a minute at most (EP-DISC-18).
//
// With the engine held. Lives and dies with its queue pair.
class OrderlyEnd {
 public:
  explicit OrderlyEnd(SoftQueuePair& queue_pair);
  OrderlyEnd(const OrderlyEnd&) = delete;
  OrderlyEnd& operator=(const OrderlyEnd&) = delete;

  void begin();      // this side asks for it
  void peer_ends();  // the peer has; what it sent before is still to be delivered
  bool peer_closing() const { return peer_closing_; }

  // ---- progress
  // No request is left, or so it is with what arrives.
  void finish_if_drained();
  void delivered_everything();  // the backlog is all delivered
  void message_finished() {     // one that had taken its buffer before it was there
    if (sends_.state() == ConnectionState::draining) [[unlikely]]
      look_soon();
  }

  // ---- for the connection
  void connection_ends();
  void reset();  // to no connection
  void destroy();

 private:
  // What one side still owes the other: any difference is progress.
  struct Owed {
    SendQueue::Progressed sent;
    std::uint64_t untaken = 0;   // as Stream::untaken()
    std::uint64_t received = 0;  // messages
    std::uint64_t placed = 0;    // bytes of the next one
    friend bool operator==(const Owed&, const Owed&) = default;
  };
  Owed owed();
  void linger();
  void look();
  void look_soon();
  bool still_to_be_delivered();
  bool arrivals_over();
  void finish();

  SoftQueuePair& queue_pair_;
  SendQueue& sends_;                      // its
  bool peer_closing_ = false;             // the peer closed in order
  std::optional<std::uint64_t> awaited_;  // the last message that an orderly end of this side waits for
  Owed owed_;
  Patience patience_{0, 0, 0};
  Timer linger_timer_{[this] { look(); }};
  Task look_task_{[this] { finish_if_drained(); }};
};

}  // namespace anydat::nic::soft
