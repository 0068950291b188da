// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nic/adapter.h"
#include "nic/ending.h"
#include "nic/run_queue.h"
#include "nic/timer.h"
#include "nic/verbs/establishment.h"

namespace anydat::nic::verbs {

class VerbsAdapter;
class VerbsQueuePair;

// The life of a connection over a device, above all its end: the device gives back what it has, its queue pair goes,
// and what is left is flushed in order before the end is told. How it comes about is in Establishment. Its state is in
// SendQueue, whose lock posts look at it with.
//
// With the engine held. Lives and dies with its queue pair.
class Connection {
 public:
  Connection(VerbsQueuePair& queue_pair, VerbsAdapter& adapter, QueuePairEvents& events);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Establishment& establishment() { return establishment_; }
  const Establishment& establishment() const { return establishment_; }

  // ---- its end
  void disconnect(bool graceful);
  void peer_closed();
  // For a connection that has not begun, or whose end is not waited for: the device's queue pair goes at once.
  void end_now(Ending ending);
  // The device's queue pair has gone, or there was none. Everything posted completes, in order; then nothing is left
  // but the state.
  void report_end();
  // Something has failed, and breaks the connection when the engine is released.
  void break_soon();
  // A receive has failed. The connection breaks, but the device is to tell the sender first.
  void break_once_told();
  // The device has given back work undone.
  void work_flushed();
  // What an end waits for may have been done.
  void look_soon();
  // A window has let go of what it showed.
  void window_let_go();

  // ---- for the adapter
  void device_event(ibv_event_type type);
  void device_gone();
  // Something of the device that it needs has failed: nothing that is under way will complete.
  void lost_by_device();

  // ---- as in QueuePair
  bool cut();
  void reset();
  void destroy();

 private:
  void end(Ending ending);
  void end_if_quiet();
  void finish();
  void finish_draining();
  void fail(WorkStatus first_send_status);
  void run_breaks();

  VerbsQueuePair& queue_pair_;
  VerbsAdapter& adapter_;
  QueuePairEvents& events_;
  Establishment establishment_;
  Ending ending_;
  bool failed_ = false;           // it is to be broken by run_breaks()
  bool flushed_unasked_ = false;  // by the device, while it stood
  bool end_waits_ = false;        // for a bind that has begun
  Timer linger_timer_;
  Timer quiet_timer_;
  Timer break_timer_;
  Task break_task_;
  Task quiet_task_;
};

}  // namespace anydat::nic::verbs
