// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>

#include "nic/adapter.h"
#include "nic/soft/receive_pool.h"
#include "nic/timer.h"
#include "os/clock.h"

namespace anydat::nic::soft {

class SoftAdapter;
class SoftQueuePair;

// A queue pair whose message has found no receive buffer: its place in the line at the pool, and the receiver-not-ready
// time-out (DAT_RNR_TIMEOUT_MS), after which the connection breaks. Without one it is warned of and waits on.
//
// With the engine held. Lives and dies with its receiving side.
class ReceiverNotReady {
 public:
  ReceiverNotReady(SoftQueuePair& queue_pair, SoftAdapter& adapter);
  ReceiverNotReady(const ReceiverNotReady&) = delete;
  ReceiverNotReady& operator=(const ReceiverNotReady&) = delete;

  // Puts the queue pair in line for a receive buffer; Stream::resume_receiving() will come.
  void wait_for_buffer();
  // It has got its buffer without being called: who stands in line for none would be timed out, and called in vain.
  void stop_waiting();
  void buffers_available();  // by the pool: it is this one's turn
  // Others have asked the pool before it, and the pool has not called it.
  bool is_behind_others(const ReceivePool& pool) const { return pool.anybody_waits_before(waiter_); }
  void connection_ends();

 private:
  ReceivePool& pool();
  void timed_out();
  bool others_come_first();

  SoftQueuePair& queue_pair_;
  SoftAdapter& adapter_;
  ReceivePool::BufferWaiter waiter_{*this};
  bool waits_ = false;
  os::Nanoseconds waits_since_ = 0;
  std::pair<std::uint64_t, std::uint64_t> arriving_seen_{};  // others_come_first(): the next one, and how far it was
  os::Nanoseconds arriving_since_ = 0;
  Timer timer_;
};

}  // namespace anydat::nic::soft
