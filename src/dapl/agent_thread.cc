// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/agent_thread.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "os/clock.h"
#include "os/fork.h"
#include "os/futex.h"
#include "os/thread_signals.h"

namespace anydat::dapl {

bool AgentThread::start() {
  os::Guard guard(start_lock_);
  if (thread_.joinable()) return true;
  const os::SignalsOfOurThreads mask;
  try {
    return thread_.start([self = shared_from_this()] { self->run(); }, os::Thread::Stack::of_program);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void AgentThread::submit(std::list<Call>& call) {
  {
    os::Guard guard(lock_);
    due_.splice(due_.end(), call);
  }
  if (bed_.exchange(kAwake) == kAsleep) os::futex_wake(bed_);
}

// False if none is due.
bool AgentThread::make_next_call() {
  std::list<Call> next;
  std::uint64_t outer = 0;
  {
    os::Guard guard(lock_);
    if (due_.empty()) return false;
    next.splice(next.begin(), due_, due_.begin());
    outer = running_;
    running_ = next.front().cno;
  }
  const Call& call = next.front();
  const std::uint32_t forks = os::forks();
  call.agent.function(call.agent.instance_data, call.evd);
  // The agent has forked and come back in the child, whose only thread is this one. There is nothing left for it to do:
  // the process ends as one whose last thread has ended.
  if (os::forks() != forks) std::exit(0);
  {
    os::Guard guard(lock_);
    running_ = outer;
  }
  ended_.fetch_add(1);
  os::futex_wake(ended_);
  return true;
}

void AgentThread::run() {
  runner_.store(this_thread());
  for (;;) {
    bed_.store(kAsleep);
    if (make_next_call()) continue;
    {
      os::Guard guard(lock_);
      if (closing_) return;
    }
    // A thread that submits or closes after the looks above wakes the bed first.
    os::futex_wait(bed_, kAsleep, os::kNever);
  }
}

void AgentThread::forget(Handle evd) {
  os::Guard guard(lock_);
  for (Call& call : due_) {
    if (call.evd == evd) call.evd = nullptr;
  }
}

bool AgentThread::has_calls_locked(std::uint64_t cno) const {
  return running_ == cno || std::any_of(due_.begin(), due_.end(), [cno](const Call& call) { return call.cno == cno; });
}

void AgentThread::finish(std::uint64_t cno) {
  if (runner_.load() == this_thread()) {
    std::list<Call> dropped;
    os::Guard guard(lock_);
    for (auto call = due_.begin(); call != due_.end();) {
      const auto next = std::next(call);
      if (call->cno == cno) dropped.splice(dropped.end(), due_, call);
      call = next;
    }
    return;
  }
  for (;;) {
    const std::uint32_t ended = ended_.load();
    {
      os::Guard guard(lock_);
      if (!has_calls_locked(cno)) return;
    }
    os::futex_wait(ended_, ended, os::kNever);
  }
}

void AgentThread::close() {
  const bool by_an_agent = runner_.load() == this_thread();
  if (by_an_agent) {
    while (make_next_call()) {
    }
  }
  {
    os::Guard guard(lock_);
    closing_ = true;
  }
  if (bed_.exchange(kAwake) == kAsleep) os::futex_wake(bed_);
  if (!thread_.joinable()) return;
  if (by_an_agent) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace anydat::dapl
