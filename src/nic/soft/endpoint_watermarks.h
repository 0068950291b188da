// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "nic/adapter.h"
#include "nic/run_queue.h"

namespace anydat::nic::soft {

class SoftQueuePair;

// The watermarks of an endpoint, which count its receives and the messages that are arriving (EP-WM): more than the
// soft one are told of once, more than the hard one end the connection.
//
// Thread safety: what posts call, from any thread; everything else with the engine held. Lives and dies with its
// receiving side.
class EndpointWatermarks {
 public:
  EndpointWatermarks(SoftQueuePair& queue_pair, QueuePairEvents& events) : queue_pair_(queue_pair), events_(events) {}
  EndpointWatermarks(const EndpointWatermarks&) = delete;
  EndpointWatermarks& operator=(const EndpointWatermarks&) = delete;

  // test() is due afterwards: what is there already may be more.
  void set(std::int32_t soft, std::int32_t hard);
  void test();
  void destroy();

  // ---- for posts
  // One is set. Each post may pass it, so receives are posted one by one.
  bool any() const { return set_.load(std::memory_order_relaxed); }
  // EP-WM-16: a post counts even if a message that waited for it is gone with it at once.
  void post_begins();
  void post_failed() { posted_peak_.store(0); }
  void posted();

 private:
  SoftQueuePair& queue_pair_;
  QueuePairEvents& events_;
  std::atomic<std::uint32_t> posted_peak_{0};  // receives posted at the last post that test() has not seen
  std::atomic<bool> set_{false};
  std::atomic<std::int32_t> soft_{kUnlimited};
  std::atomic<std::int32_t> hard_{kUnlimited};
  bool soft_armed_ = false;
  Task task_{[this] { test(); }};
};

}  // namespace anydat::nic::soft
