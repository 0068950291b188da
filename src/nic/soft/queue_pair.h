// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include "nic/adapter.h"
#include "nic/soft/connection.h"
#include "nic/soft/memory_user.h"
#include "nic/soft/receive_side.h"
#include "nic/soft/request_outcomes.h"
#include "nic/soft/send_side.h"

namespace anydat::nic::soft {

class SoftAdapter;

// The software NIC's queue pair: its parts, and what is set of them together. Its requests come by SendSide
// into SendQueue, and what their answers come to is in RequestOutcomes; its receives are in ReceiveSide; the life of
// its connection is in Connection; how bytes travel is the business of that one's stream.
//
// Thread safety: posts and counts from any thread; everything else with the engine held.
// Always true: each posted request and each receive completes once, requests in posting order (DTO-40).
class SoftQueuePair final : public QueuePair {
 public:
  SoftQueuePair(SoftAdapter& adapter, ReceivePool* shared, QueuePairEvents& events);
  ~SoftQueuePair() override;
  Status init(const QueuePairLimits& limits);

  // QueuePair
  Status post_send(const SendRequest& request) override;
  Status post_sends(const SendRow& row, std::size_t& posted) override;
  Status post_extended(const ExtendedRequest& request) override;
  std::uint32_t peer_takes() const override { return sends_.peer_takes(); }
  void take_immediates(bool take) override { shows_immediates_ = take; }
  bool write_again(const SingleRdma& request) override;
  bool read_again(const SingleRdma& request) override;
  bool send_again(const SingleSend& send) override;
  Status post_recv(const RecvRequest& request) override { return receives_.post(request); }
  Status post_recvs(const RecvRow& row, std::size_t& posted) override;
  Status post_bind(const BindRequest& request, std::uint32_t& key) override;
  ZoneId scope() const override { return memory_.scope(); }
  void set_zone(ZoneId zone) override;
  void set_completion_queues(CompletionQueue* recv, CompletionQueue* send) override;
  Status set_limits(const QueuePairLimits& limits) override;
  void set_watermarks(std::int32_t soft, std::int32_t hard) override { receives_.set_watermarks(soft, hard); }
  Status connect(const ConnectParameters& parameters) override;
  void disconnect(bool graceful) override { connection_.disconnect(graceful); }
  void reset() override;
  bool cut() override;
  void destroy() override;
  const ConnectionNames& names() const override { return connection_.names(); }
  const char* wire() const override { return connection_.stream() ? connection_.stream()->wire() : nullptr; }
  RecvInfo recv_info() const override { return receives_.info(); }
  std::uint32_t largest_posted_recv_segments() const override { return receives_.buffers().largest_posted_segments(); }
  bool recv_idle() const override { return recv_info().allocated == 0; }
  bool send_idle() const override { return sends_.idle(); }
  const Counters& counters() const override { return sends_.counters(); }
  PostedReceives posted_receives() const override { return receives_.buffers().posted(); }

  // ---- its parts, for each other, for the stream, and for the set-up of connections
  SendQueue& sends() { return sends_; }
  ReceiveSide& receives() { return receives_; }
  RequestOutcomes& outcomes() { return outcomes_; }
  MemoryUser& memory() { return memory_; }
  Connection& connection() { return connection_; }
  ConnectionState state() const { return sends_.state(); }

  // ---- what this end tells the peer
  std::uint32_t takes() const;  // `ability`
  std::uint32_t reads_in() const { return reads_in_; }

 private:
  SoftAdapter& adapter_;
  SendSide sends_;
  ReceiveSide receives_;
  RequestOutcomes outcomes_{*this, sends_};
  MemoryUser memory_;
  Connection connection_;
  std::uint32_t reads_in_ = 0;  // with the engine held
  bool shows_immediates_ = false;
};

}  // namespace anydat::nic::soft
