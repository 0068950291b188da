// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/counter.h"
#include "nic/run_safely.h"
#include "nic/timer.h"
#include "os/clock.h"
#include "os/poller.h"

namespace anydat::nic {

// Something that has to be looked at to make progress, such as a ring in shared memory. All methods are called with the
// engine held.
class PollSource {
 public:
  virtual ~PollSource() = default;
  // Handles what there is, up to a bounded amount. True if there was anything.
  virtual bool poll() = 0;
  // Looks by time, after a poll(): also where nothing has made itself known. The same answer.
  virtual bool look_by_time() { return false; }
  // Passes follow each other fast; said now and then.
  virtual void note_fast_passes() {}
  // From arm() to disarm() the other side makes one of the engine's descriptors readable when there is something to do
  // here. Whatever came before arm() is found by the poll() that follows it. A source that is removed is disarmed.
  virtual void arm() = 0;
  virtual void disarm() = 0;
};

class FdHandler {
 public:
  virtual ~FdHandler() = default;
  // Called with the engine held. `events` are those of epoll.
  virtual void ready(std::uint32_t events) = 0;
};

// What an engine looks at: sources, descriptors and timers. It never waits.
//
// What it calls may add and remove any of them, also itself.
//
// Thread safety: all with the engine held, but for armed() and timers().next(), which any thread may call.
class Loop {
 public:
  // Once, before anything else. The poller is open and outlives this. Its bell ends a sleep on it, and no handler hears
  // of that.
  void start(os::Poller& poller) { poller_ = &poller; }

  void add_source(PollSource& source);  // may throw std::bad_alloc
  void remove_source(PollSource& source);
  // False when the system has no room for another descriptor.
  bool watch(int fd, std::uint32_t events, FdHandler& handler);
  void change_watch(int fd, std::uint32_t events, FdHandler& handler);
  void unwatch(int fd, FdHandler& handler);
  Timers& timers() { return timers_; }
  const Timers& timers() const { return timers_; }

  // Looks at the sources until there was something, but not more often than that. True if there was anything.
  bool poll_sources(int rounds);
  // The same where it is called: an idle look is a large part of the time in which a message lies unseen.
  [[gnu::always_inline]] bool poll_sources_here(int rounds) {
    bool progress = false;
    int done = 0;
    do {
      for (std::size_t i = 0; i < sources_.size(); ++i) {
        run_safely([&] { progress |= sources_[i]->poll(); });
      }
    } while (++done < rounds && !progress);
    polls_.add(static_cast<std::uint64_t>(done));
    return progress;
  }
  void note_fast_passes() {
    for (PollSource* source : sources_) source->note_fast_passes();
  }
  // Looks at the sources once more, as far as time decides what is looked at, at descriptors and timers.
  bool poll_by_time();
  // They have been found not to be, by this or by another: nothing is ready any more, and no set is changed, which may
  // be the program's by now, with the program's files in it by the numbers of ours.
  bool lost() const { return lost_; }
  void note_loss() { lost_ = true; }

  void arm();
  void disarm();
  bool armed() const { return armed_.load(); }
  bool armed_hint() const { return armed_.load(std::memory_order_relaxed); }

  const base::Counter& polls() const { return polls_; }  // rounds over the sources

 private:
  bool run_descriptors();

  os::Poller* poller_ = nullptr;  // fixed by start()
  bool lost_ = false;
  std::vector<PollSource*> sources_;
  std::span<epoll_event> ready_;  // what the descriptors have brought and is not handled yet
  Timers timers_;
  std::atomic<bool> armed_{false};
  base::Counter polls_;
};

}  // namespace anydat::nic
