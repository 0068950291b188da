// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "nic/adapter.h"
#include "nic/ending.h"
#include "nic/verbs/device_queue_pair.h"
#include "nic/verbs/establishment.h"
#include "nic/verbs/receive_side.h"
#include "nic/verbs/send_queue.h"
#include "nic/verbs/work_id.h"

namespace anydat::nic::verbs {

class VerbsAdapter;
struct AbandonedAttempt;

// A queue pair of the device, and what the device does not do for a DAT endpoint: receives may be posted before there
// is a connection, and requests after it; every piece of work completes once and in order; its end is told when all
// has.
//
// The device's queue pair lives from the set-up of a connection to its end, so that its protection domain, its sizes
// and its peer are those of the moment.
//
// Thread safety: posts and counts from any thread; everything else with the engine held.
class VerbsQueuePair final : public QueuePair {
 public:
  VerbsQueuePair(VerbsAdapter& adapter, SharedQueue* shared, QueuePairEvents& events);
  ~VerbsQueuePair() override;
  Status init(const QueuePairLimits& limits);

  // QueuePair
  Status post_send(const SendRequest& request) override;
  Status post_recv(const RecvRequest& request) override { return receives_.post(request); }
  Status post_bind(const BindRequest& request, std::uint32_t& key) override { return sends_.post_bind(request, key); }
  void set_zone(ZoneId zone) override { zone_ = zone; }
  void set_completion_queues(CompletionQueue* recv, CompletionQueue* send) override;
  Status set_limits(const QueuePairLimits& limits) override;
  void set_watermarks(std::int32_t, std::int32_t) override {}  // has_watermarks is false
  Status connect(const ConnectParameters& parameters) override { return establishment_.connect(parameters); }
  void disconnect(bool graceful) override;
  void reset() override;
  bool cut() override;
  void destroy() override;
  const ConnectionNames& names() const override { return establishment_.names(); }
  const char* wire() const override { return "verbs"; }
  RecvInfo recv_info() const override { return receives_.info(); }
  std::uint32_t largest_posted_recv_segments() const override { return receives_.largest_posted_segments(); }
  bool recv_idle() const override { return receives_.idle(); }
  bool send_idle() const override { return sends_.idle(); }
  const Counters& counters() const override { return sends_.counters(); }
  PostedReceives posted_receives() const override { return receives_.posted(); }

  // For requests and the adapter.
  using State = ConnectionState;
  State state() const { return sends_.state(); }
  const QueuePairLimits& limits() const { return limits_; }
  ZoneId zone() const { return zone_; }
  void completed(const ibv_wc& wc, const WorkId& id);
  // A window has let go of what it showed.
  void go_on();
  // ---- its parts, for each other
  SendQueue& sends() { return sends_; }
  ReceiveSide& receives() { return receives_; }
  DeviceQueuePair& device() { return device_; }
  const DeviceQueuePair& device() const { return device_; }
  Establishment& establishment() { return establishment_; }
  void report_end();
  // Something has failed, and breaks the connection when the engine is released.
  void break_soon();
  void break_once_told();
  // What an end waits for may have been done.
  void look_soon();
  void completed_shared(const ibv_wc& wc, const ReceivePool::Done& done);
  void completion_lost(const Completion& completion);
  void device_event(ibv_event_type type);
  void device_gone();
  // Something of the device that it needs has failed: nothing that is under way will complete.
  void lost_by_device();
  // For a connection that has not begun, or whose end is not waited for: the device's queue pair goes at once.
  void end_now(Ending ending);
  void peer_closed();

 private:
  bool comes_early();

  // Ends.
  void end(Ending ending);
  void end_if_quiet();
  void finish();
  void finish_draining();
  void fail(WorkStatus first_send_status);
  void run_breaks();

  VerbsAdapter& adapter_;
  QueuePairEvents& events_;

  SendQueue sends_;
  ReceiveSide receives_;
  DeviceQueuePair device_;
  Establishment establishment_;

  // With the engine held.
  ZoneId zone_ = kNoZone;
  QueuePairLimits limits_{};
  Ending ending_;
  Timer linger_timer_;
  Timer quiet_timer_;
  Timer break_timer_;

  bool failed_ = false;  // the connection is to be broken by run_breaks()
  bool flushed_unasked_ = false;
  bool end_waits_ = false;  // for a bind that has begun
  Task break_task_;
  Task quiet_task_;
};

}  // namespace anydat::nic::verbs
