// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/kernel_calls.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "os/cancel.h"
#include "os/thread_signals.h"

namespace anydat::nic::verbs {

KernelCalls::Ref KernelCalls::start(std::function<int()> run, std::function<void(int error)> done) {
  engine_.assert_held();
  auto call = std::make_shared<Call>();
  call->run = std::move(run);
  call->done = std::move(done);
  {
    const std::lock_guard guard(lock_);
    waiting_.push_back(call);
  }
  begin_worker();
  return call;
}

// Where there are as many as there may be, one of them takes it later; without any it has failed.
void KernelCalls::begin_worker() {
  if (stopping_) return fail_waiting(ECANCELED);
  for (auto worker = workers_.begin(); worker != workers_.end();) {
    bool ended = false;
    {
      const std::lock_guard guard(lock_);
      ended = worker->ended;
    }
    // The last that a thread does is to tell of its call, perhaps by running this itself.
    ended = ended && !worker->thread.is_current();
    if (ended) worker->thread.join();
    worker = ended ? workers_.erase(worker) : std::next(worker);
  }
  if (workers_.size() >= kThreads) return;
  const os::SignalsOfOurThreads mask;
  try {
    workers_.emplace_back();
    Worker& worker = workers_.back();
    if (worker.thread.start([this, &worker] { work(worker); })) return;
    workers_.pop_back();
  } catch (const std::bad_alloc&) {
    if (!workers_.empty() && !workers_.back().thread.joinable()) workers_.pop_back();
  }
  bool any = false;
  {
    const std::lock_guard guard(lock_);
    any = std::any_of(workers_.begin(), workers_.end(), [](const Worker& one) { return !one.ends && !one.ended; });
  }
  if (!any) fail_waiting(ENOMEM);
}

void KernelCalls::fail_waiting(int error) {
  const std::lock_guard guard(lock_);
  for (const Ref& call : waiting_) call->error = error;
  done_.splice(done_.end(), waiting_);
  engine_.add_task(task_);
}

void KernelCalls::work(Worker& self) {
  const os::CancelOff off;
  for (;;) {
    Call* call = nullptr;
    {
      const std::lock_guard guard(lock_);
      self.ended = self.ends || waiting_.empty();
      if (!self.ended) {
        self.at.splice(self.at.end(), waiting_, waiting_.begin());
        call = self.at.front().get();
      }
    }
    if (!call) {
      engine_.schedule(task_);
      return;
    }
    int error = 0;
    try {
      error = call->run();
    } catch (...) {  // the thread was cancelled
      finish(self, EINTR);
      {
        const std::lock_guard guard(lock_);
        self.ended = true;
      }
      engine_.schedule(task_);
      throw;
    }
    finish(self, error);
  }
}

void KernelCalls::finish(Worker& self, int error) {
  {
    const std::lock_guard guard(lock_);
    self.at.front()->error = error;
    done_.splice(done_.end(), self.at);
  }
  changed_.notify_all();
  engine_.schedule(task_);
}

bool KernelCalls::has_begun(const Call& call) {
  engine_.assert_held();
  const std::lock_guard guard(lock_);
  return std::none_of(waiting_.begin(), waiting_.end(), [&](const Ref& one) { return one.get() == &call; });
}

void KernelCalls::cancel(Call& call) {
  engine_.assert_held();
  const std::lock_guard guard(lock_);
  const auto waiting =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const Ref& one) { return one.get() == &call; });
  if (waiting != waiting_.end()) {
    call.error = ECANCELED;
    done_.splice(done_.end(), waiting_, waiting);
    engine_.add_task(task_);
    return;
  }
  for (Worker& worker : workers_) {
    if (worker.at.empty() || worker.at.front().get() != &call || worker.ends) continue;
    worker.ends = true;
    worker.thread.cancel();
  }
}

void KernelCalls::await(Call& call) {
  engine_.assert_held();
  std::unique_lock held(lock_);
  // The thread that would take it may be behind calls of minutes, or need the engine to begin.
  if (std::erase_if(waiting_, [&](const Ref& one) { return one.get() == &call; }) != 0) {
    held.unlock();
    call.run();
    return;
  }
  changed_.wait(held, [&] { return std::erase_if(done_, [&](const Ref& one) { return one.get() == &call; }) != 0; });
}

// Threads that have been cancelled take no further call, so others begin in their places while calls wait.
void KernelCalls::call_done() {
  engine_.assert_held();
  for (;;) {
    Ref call;
    bool more = false;
    {
      const std::lock_guard guard(lock_);
      if (!done_.empty()) {
        call = std::move(done_.front());
        done_.pop_front();
      }
      more = !waiting_.empty();
    }
    if (!call) {
      if (more) begin_worker();
      return;
    }
    call->done(call->error);
  }
}

void KernelCalls::stop() {
  {
    // With the engine: from here on the list of threads is this one's.
    os::Guard engine(engine_);
    stopping_ = true;
    fail_waiting(ECANCELED);
    const std::lock_guard guard(lock_);
    for (Worker& worker : workers_) {
      if (!worker.ended && !std::exchange(worker.ends, true)) worker.thread.cancel();
    }
  }
  for (Worker& worker : workers_) worker.thread.join();
  workers_.clear();
  os::Guard guard(engine_);
  call_done();
  engine_.cancel_task(task_);
}

}  // namespace anydat::nic::verbs
