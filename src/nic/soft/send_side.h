// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "nic/soft/send_queue.h"

namespace anydat::nic::soft {

// The sending side of a software queue pair: what its consumer posts, on the way into the send queue, or past it where
// nothing is before a request and it can be done at once.
//
// Thread safety: posts from any thread. Lives and dies with its queue pair.
class SendSide final : public SendQueue {
 public:
  using SendQueue::SendQueue;

  // ---- as in QueuePair
  template <typename Request>
  Status post(const Request& request);
  Status post_row(const SendRow& row, std::size_t& posted);
  Status post_bind(const BindRequest& request, std::uint32_t& key);
  // What no lane leads to pays next to nothing for the question, and has no frame built for it.
  bool write_again(const SingleRdma& request) {
    if (lanes_.write.leads_to(request.remote.key)) return again<WorkKind::rdma_write>(request);
    return lanes_.put.is(request.local.key) && put_again(request);
  }
  bool read_again(const SingleRdma& request) {
    return lanes_.read.leads_to(request.remote.key) && again<WorkKind::rdma_read>(request);
  }
  bool send_again(const SingleSend& send);

 private:
  // What a post leaves to be done once the lock has been released.
  struct Aftermath {
    bool overflowed = false;  // a completion found no room
    bool failed = false;
  };
  template <typename Request>
  Status post_locked(const Request& request, Aftermath& after) ANYDAT_REQUIRES(lock_);
  template <typename Request>
  Status post_unconnected(const Request& request) ANYDAT_REQUIRES(lock_);
  [[gnu::noinline]] Status post_of_row(const SendRequest& request, Aftermath& after) ANYDAT_REQUIRES(lock_);
  std::size_t send_at_once(const SendRow& row, Aftermath& after) ANYDAT_REQUIRES(lock_);
  template <WorkKind kind>
  [[gnu::noinline]] bool again(const SingleRdma& request);
  [[gnu::noinline]] bool put_again(const SingleRdma& request);
  void see_to(const Aftermath& after);
  [[gnu::cold, gnu::noinline]] void overflowed();
};

}  // namespace anydat::nic::soft
