// SPDX-License-Identifier: BSD-3-Clause
// dat_evd_wait: who waits for the events of an EVD, and when the wait ends.
#include "dapl/cno.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "nic/engine.h"
#include "os/cancel.h"
#include "os/clock.h"

namespace anydat::dapl {

// Whether a wait for so many may begin.
Error Evd::may_wait_locked(Count threshold) const {
  if (threshold <= 0 || static_cast<std::uint32_t>(threshold) > ring_.capacity()) {
    return fail(Argument::threshold, "dat_evd_wait: threshold {} is not between 1 and the queue length {}", threshold,
                ring_.capacity());
  }
  if (!waitable_) {
    return fail(Code::invalid_state, Detail::evd_unwaitable, "dat_evd_wait: the EVD is unwaitable");
  }
  if (waiter_) return evd_is_waited_on("dat_evd_wait");
  if (threshold > 1 && configuration_ != evd_state::kConfigThreshold) {
    const bool notify = configuration_ == evd_state::kConfigNotify;
    return fail(Code::invalid_state, notify ? Detail::evd_config_notify : Detail::evd_config_solicited,
                "dat_evd_wait: threshold {} on an EVD whose streams are {}; only 1 is possible", threshold,
                notify ? "UNSIGNALLED" : "SOLICITED_WAIT");
  }
  return kSuccess;
}

namespace {

// A microsecond or two, which an answer through shared memory takes at most.
constexpr unsigned kLooksBeforeWait = 64;

}  // namespace

// A thread that becomes the EVD's waiter pays for that as much as a small message takes, so it looks before. Where
// every event notifies and no CNO is there to be triggered, no program can tell whether what comes meanwhile has met a
// waiter or has been there before: a thread is one only while it is really blocked (ruling A60).
Error Evd::wait(Microseconds timeout, Count threshold, Event& event, Count* nmore) {
  const auto take = [&event](const Event& taken) { event = taken; };
  if (!nmore) return fail(Argument::nmore, "dat_evd_wait: nmore is NULL");
  const auto wanted = static_cast<std::uint32_t>(threshold);
  unsigned looks = 0;
  for (bool looked = false;; looked = true) {
    {
      os::Guard guard(lock_);
      if (looked) --about_to_wait_;
      if (dead_) return Error(Code::abort);
      if (const Error error = may_wait_locked(threshold)) return error;
      if (!looked) {
        counting_.wait_calls.add();
        const bool may_look = !cno_ && configuration_ == evd_state::kConfigThreshold;
        looks = timeout == 0 ? 1 : may_look ? kLooksBeforeWait : 0;
      }
      const std::uint32_t count = ring_.queued();
      if (count >= wanted) {
        take_locked(*ring_.look_at_oldest(), take);
        counting_.taken_by_waits.publish(counting_.taken_by_waits.get() + 1);
        *nmore = static_cast<Count>(count - 1);
        return kSuccess;
      }
      if (looked && timeout == 0) {
        *nmore = static_cast<Count>(count);
        return timed_out_;
      }
      ++about_to_wait_;
    }
    if (looked || looks == 0) return block(timeout, threshold, event, nmore);
    // A pass that brings others something may take long, so that is the last.
    for (bool brought = false; looks > 0 && !brought && ring_.queued() < wanted; --looks) brought = poll();
  }
}

Error Evd::block(Microseconds timeout, Count threshold, Event& event, Count* nmore) {
  const auto take = [&event](const Event& taken) { event = taken; };
  const os::Nanoseconds deadline =
      timeout == kInfinite ? os::kForever : os::now_ns() + static_cast<os::Nanoseconds>(timeout) * 1000;
  const auto wanted = static_cast<std::uint32_t>(threshold);
  const os::CancelOff off;
  nic::Waiter waiter(off.was_on());
  bool registered = false;
  nic::WaitResult result = nic::WaitResult::notified;
  for (;;) {
    {
      os::Guard guard(lock_);
      if (!registered) {
        --about_to_wait_;
        // What changed since the caller looked (EVD-WAIT-10, EVD-RESIZE-10).
        if (dead_) return Error(Code::abort);
        if (const Error error = may_wait_locked(threshold)) return error;
        waiter_ = &waiter;
        note_watched_locked();
        threshold_ = wanted;
        turned_away_ = false;
        registered = true;
        counting_.waits.add();
      } else if (result == nic::WaitResult::notified) {
        counting_.wake_ups.add();
      }
      const std::uint32_t count = ring_.queued();
      const bool finished = dead_ || turned_away_ || count >= wanted || result != nic::WaitResult::notified;
      if (finished) {
        waiter_ = nullptr;  // from here on the EVD may go (EVD-FREE-5), once the lock is released
        note_watched_locked();
        if (dead_) return Error(Code::abort);
        if (turned_away_) {
          return fail(Code::invalid_state, Detail::evd_unwaitable, "dat_evd_wait: the EVD became unwaitable");
        }
        if (count >= wanted) {  // TMO-5: also if the time has run out
          take_locked(*ring_.look_at_oldest(), take);
          counting_.taken_by_waits.publish(counting_.taken_by_waits.get() + 1);
          *nmore = static_cast<Count>(count - 1);
          return kSuccess;
        }
        *nmore = static_cast<Count>(count);
        return result == nic::WaitResult::interrupted ? Error(Code::interrupted_call) : timed_out_;
      }
      waiter.rearm();
    }
    try {
      result = engine_.waiting().wait(waiter, deadline);
    } catch (...) {  // the thread was cancelled
      os::Guard guard(lock_);
      waiter_ = nullptr;
      note_watched_locked();
      // What it was woken for is left to the CNO now.
      if (enabled_ && cno_ && ring_.queued() >= wanted) cno_->trigger(*this);
      throw;
    }
  }
}

}  // namespace anydat::dapl
