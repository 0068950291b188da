// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

namespace anydat::nic {

// What the threads of a program do for its adapter: a thread that sleeps on its behalf goes by it, and leaves alone
// what others look at in any case.
//
// Thread safety: any thread.
class Activity {
 public:
  // ---- for the engine
  void note_pass() {
    passes_.store(passes() + 1, std::memory_order_relaxed);
  }  // by a thread that polls, with the engine
  void note_post() { posts_.store(posts() + 1, std::memory_order_relaxed); }
  // A post relies on the next pass, whichever thread makes it.
  void rely_on_pass() {
    want_pass();
    passes_.fetch_add(1, std::memory_order_relaxed);
  }
  void want_pass() { pass_wanted_.store(true); }
  void pass_begins() {
    if (pass_wanted_.load(std::memory_order_relaxed)) pass_wanted_.store(false);
  }

  // ---- for those who wait
  // Passes by threads that poll, and posts that rely on the next.
  std::uint64_t passes() const { return passes_.load(std::memory_order_relaxed); }
  // Noted ones, but for some of those made at the same moment.
  std::uint64_t posts() const { return posts_.load(std::memory_order_relaxed); }
  bool pass_wanted() const { return pass_wanted_.load(); }

 private:
  std::atomic<std::uint64_t> passes_{0};
  std::atomic<std::uint64_t> posts_{0};
  std::atomic<bool> pass_wanted_{false};
};

}  // namespace anydat::nic
