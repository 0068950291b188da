// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "nic/moment.h"
#include "os/clock.h"
#include "os/processor.h"
#include "os/ticks.h"

namespace anydat::nic {

// What those who poll do by time, not by how often they poll: look at what is dear to look at, and let others have the
// processor when they poll in vain.
//
// Reading the clock costs a third of an empty pass, so when passes follow each other fast, the clock is read in every
// fourth only. A pause after such passes is noticed three passes late.
//
// Thread safety: give_way() and moment() by any thread; all else by one thread at a time.
class PollClock {
 public:
  // What is dear to look at is looked at that often, as long as anybody polls.
  static constexpr os::Nanoseconds kLookEvery = 50'000;

  struct Pass {
    bool looks_by_time = false;  // it is time to look at everything
    bool gives_way = false;      // it is time to give way, unless this pass brings something
    bool follows_fast = false;   // passes follow each other within a microsecond or two
  };
  // One more pass begins. True: it does nothing by time. Else read() says what it does.
  bool begin_unread_pass() {
    if (unread_ == 0) return false;
    --unread_;
    return true;
  }
  Pass read();
  // The pass has brought something.
  void note_progress() { progress_ = true; }
  // Everything has been looked at.
  void looked();

  // The time, at most a few milliseconds late, for a thread that has none to read a clock; kNoMoment where no thread
  // looks at one. As read() has found it, or one of these:
  std::uint64_t moment() const { return moment_.load(std::memory_order_relaxed); }
  void note_moment() { note_moment(os::ticks(steady_)); }
  // No thread polls for now. The next pass reads the clock.
  void stop() {
    unread_ = 0;
    if (!kept_) moment_.store(kNoMoment, std::memory_order_relaxed);
  }
  // There is a moment also when no thread polls: a caller that wants it so calls note_moment() every few milliseconds.
  void keep_moment(bool keep) {
    kept_ = keep;
    note_moment();
  }

  // Another thread on this processor may be the peer that is waited for. Where none wants the processor, it is offered
  // less often. Not with the engine held.
  void give_way();

 private:
  static constexpr unsigned kUnread = 3;                  // passes between two that read the clock
  static constexpr unsigned kStretchMax = 3;              // from 6 us in vain to 50
  static constexpr std::uint64_t kTicksAtFirst = 40'000;  // 8 us at 5 GHz
  static constexpr std::uint64_t kTicksPerLookMin = 5'000;
  static constexpr std::uint64_t kTicksPerLookMax = 1'000'000;

  void note_moment(std::uint64_t now) {
    const std::uint64_t moment = moment_of(now);
    if (moment != this->moment()) moment_.store(moment, std::memory_order_relaxed);
  }

  unsigned unread_ = 0;    // passes until the clock is read again
  bool progress_ = false;  // since it was read
  bool kept_ = false;      // the moment
  const bool steady_ = os::has_steady_counter();
  std::uint64_t now_ = os::ticks(steady_);
  std::uint64_t looked_ = now_;
  os::Nanoseconds looked_ns_ = os::now_ns();
  // A guess at first, which looked() puts right: on the small side, since until then the looks come that often, but
  // not below what looked() can measure. Written like those above.
  std::atomic<std::uint64_t> ticks_per_look_{kTicksAtFirst};
  std::atomic<std::uint64_t> vain_since_{now_};
  std::atomic<unsigned> stretch_{0};
  // Read with each post, by threads that may poll nothing: not beside what changes with each pass.
  alignas(64) std::atomic<std::uint64_t> moment_{kNoMoment};
};

}  // namespace anydat::nic
