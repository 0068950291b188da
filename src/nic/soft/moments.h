// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "nic/engine.h"
#include "nic/moment.h"
#include "nic/run_queue.h"
#include "nic/timer.h"

namespace anydat::nic::soft {

// The moment (nic/moment.h) for posts. Where no thread polls the engine tells none, as in a program that polls the
// memory which RDMA Writes change; and a look at the clock costs a sixth of such a Write. So after some such looks the
// progress thread looks at it, every few milliseconds for a while, in place of those who post.
//
// Thread safety: now() and ticks() from any thread, also with a lock that the engine's tasks may need; all else with
// the engine held.
class Moments {
 public:
  explicit Moments(Engine& engine) : engine_(engine), task_([this] { keep(); }), timer_([this] { look(); }) {}

  // For who has found none in Engine::moment(), or that what he knows is of another.
  std::uint64_t now() {
    const std::uint64_t known = engine_.moment();
    return known != kNoMoment ? known : look_at_clock();
  }
  std::uint64_t ticks() const { return engine_.ticks(); }
  void stop();  // before the engine

 private:
  static constexpr unsigned kLooks = 32;
  static constexpr os::Nanoseconds kEvery = 4'000'000;
  static constexpr unsigned kTimes = 64;  // a quarter of a second: then posts tell again whether it is wanted

  std::uint64_t look_at_clock();
  void keep();
  void look();

  Engine& engine_;
  std::atomic<unsigned> looks_{0};  // of posts; some may go uncounted
  unsigned left_ = 0;               // times that the timer runs yet
  Task task_;
  Timer timer_;
};

}  // namespace anydat::nic::soft
