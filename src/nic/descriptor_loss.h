// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "nic/loop.h"
#include "os/poller.h"
#include "os/ticks.h"

namespace anydat::nic {

class Waiting;

// Whether the descriptors of an adapter are this library's: a program may close them with its own (closefrom, daemons),
// and have other files by their numbers. That is noticed at each sleep, and by a thread that asks; then it is told of
// once, and nothing is watched any more.
//
// Thread safety: any thread, where nothing else is said. Lives and dies with its engine.
class DescriptorLoss {
 public:
  // Parts of the engine. The poller stands for all descriptors.
  DescriptorLoss(os::Poller& poller, Loop& loop, Waiting& waiting) : poller_(poller), loop_(loop), waiting_(waiting) {}
  DescriptorLoss(const DescriptorLoss&) = delete;
  DescriptorLoss& operator=(const DescriptorLoss&) = delete;

  // `action` is called once they are lost, with the engine held. To be set before anything is watched.
  void when_told(std::function<void()> action) { action_ = std::move(action); }
  // To be asked before a socket is used that the program may have taken the number of. Looks once in a millisecond, in
  // which no program opens as many files as it takes to get a number of ours (os/descriptors.h).
  bool descriptors_are_ours() {
    const std::uint64_t now = os::ticks(steady_counter_);
    if (now - checked_.load(std::memory_order_relaxed) >= kTicksPerCheck) [[unlikely]]
      check(now);
    return !lost_.load(std::memory_order_relaxed);
  }
  // For who meets a descriptor that is another's.
  void note();
  bool noted() const { return lost_.load(); }
  void tell();  // if it has not been told; with the engine held

 private:
  static constexpr std::uint64_t kTicksPerCheck = 3'000'000;  // 1 ms at 3 GHz

  void check(std::uint64_t now);

  os::Poller& poller_;
  Loop& loop_;
  Waiting& waiting_;
  std::function<void()> action_;  // until it has been called; with the engine held
  std::atomic<bool> lost_{false};
  std::atomic<std::uint64_t> checked_{0};  // when they were looked at
  const bool steady_counter_ = os::has_steady_counter();
};

}  // namespace anydat::nic
