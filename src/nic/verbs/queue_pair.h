// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nic/adapter.h"
#include "nic/verbs/connection.h"
#include "nic/verbs/device_queue_pair.h"
#include "nic/verbs/receive_side.h"
#include "nic/verbs/send_queue.h"
#include "nic/verbs/work_id.h"

namespace anydat::nic::verbs {

class VerbsAdapter;

// The hardware NIC's queue pair: its parts, and what is set of them together. They do what the device does not do for a
// DAT endpoint: receives may be posted before there is a connection, and requests after it; every piece of work
// completes once and in order; its end is told when all has. Requests are in SendQueue, receives in ReceiveSide; the
// life of its connection is in Connection, with what the device has of it in DeviceQueuePair.
//
// Thread safety: posts and counts from any thread; everything else with the engine held.
class VerbsQueuePair final : public QueuePair {
 public:
  VerbsQueuePair(VerbsAdapter& adapter, SharedQueue* shared, QueuePairEvents& events);
  Status init(const QueuePairLimits& limits);

  // QueuePair
  Status post_send(const SendRequest& request) override;
  Status post_recv(const RecvRequest& request) override;
  Status post_bind(const BindRequest& request, std::uint32_t& key) override { return sends_.post_bind(request, key); }
  void set_zone(ZoneId zone) override { zone_ = zone; }
  void set_completion_queues(CompletionQueue* recv, CompletionQueue* send) override;
  Status set_limits(const QueuePairLimits& limits) override;
  void set_watermarks(std::int32_t, std::int32_t) override {}  // has_watermarks is false
  Status connect(const ConnectParameters& parameters) override {
    return connection_.establishment().connect(parameters);
  }
  void disconnect(bool graceful) override { connection_.disconnect(graceful); }
  void reset() override;
  bool cut() override;
  void destroy() override;
  const ConnectionNames& names() const override { return connection_.establishment().names(); }
  const char* wire() const override { return "verbs"; }
  RecvInfo recv_info() const override { return receives_.info(); }
  std::uint32_t largest_posted_recv_segments() const override { return receives_.largest_posted_segments(); }
  bool recv_idle() const override { return receives_.idle(); }
  bool send_idle() const override { return sends_.idle(); }
  const Counters& counters() const override { return sends_.counters(); }
  PostedReceives posted_receives() const override { return receives_.posted(); }

  // ---- its parts, for each other, for requests and for the adapter
  SendQueue& sends() { return sends_; }
  ReceiveSide& receives() { return receives_; }
  DeviceQueuePair& device() { return device_; }
  const DeviceQueuePair& device() const { return device_; }
  Connection& connection() { return connection_; }
  ConnectionState state() const { return sends_.state(); }
  const QueuePairLimits& limits() const { return limits_; }
  ZoneId zone() const { return zone_; }

  // ---- completions of the device, in a queue that is its own or a shared one, and those that have found no room
  void completed(const ibv_wc& wc, const WorkId& id);
  void completed_shared(const ibv_wc& wc, const ReceivePool::Done& done);
  void completion_lost(const Completion& completion);

 private:
  bool comes_early(const ibv_wc& wc);
  void first_has_come(const ibv_wc& wc);

  VerbsAdapter& adapter_;
  SendQueue sends_;
  ReceiveSide receives_;
  DeviceQueuePair device_;
  Connection connection_;
  ZoneId zone_ = kNoZone;     // with the engine held
  QueuePairLimits limits_{};  // written with the engine and the send lock held, so that either is enough to read them
};

}  // namespace anydat::nic::verbs
