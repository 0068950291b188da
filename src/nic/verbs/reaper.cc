// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/reaper.h"

#include <new>
#include <utility>

#include "os/thread_signals.h"

namespace anydat::nic::verbs {

Reaper::Reaper(Engine& engine) : engine_(engine), task_{[this] { call_done(); }} {}

Status Reaper::start() {
  const os::SignalsOfOurThreads mask;
  try {
    return thread_.start([this] { thread(); }) ? Status::ok : Status::no_memory;
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
}

void Reaper::stop() {
  {
    const std::lock_guard guard(lock_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  os::Guard guard(engine_);
  engine_.cancel_task(task_);
}

void Reaper::give(Job job) {
  engine_.assert_held();
  bool kept = false;
  try {
    const std::lock_guard guard(lock_);
    // Room for what is to be called, which must not fail when the job is done.
    done_.reserve(done_.size() + waiting_.size() + static_cast<std::size_t>(working_) + 1);
    waiting_.push_back(std::move(job));
    kept = true;
  } catch (const std::bad_alloc&) {
  }
  if (kept) return changed_.notify_all();
  give_back(job);
  if (job.done) job.done();
}

void Reaper::give_back(Job& job) {
  job.queue_pair.reset();
  job.memory = {};
  job.shared.reset();
  job.completions.reset();
  job.pd.reset();
}

void Reaper::call_done() {
  engine_.assert_held();
  for (;;) {
    std::function<void()> next;
    {
      const std::lock_guard guard(lock_);
      if (done_.empty()) return;
      next = std::move(done_.front());
      done_.erase(done_.begin());
    }
    if (next) next();
  }
}

void Reaper::finish() {
  {
    // By itself, since it may be the reaper's own thread that comes here.
    std::unique_lock held(lock_);
    for (;;) {
      while (work(held)) {
      }
      if (working_ == 0) break;
      changed_.wait(held, [this] { return !waiting_.empty() || working_ == 0; });
    }
  }
  call_done();
}

bool Reaper::help() {
  std::unique_lock held(lock_);
  if (work(held)) return true;
  if (working_ == 0) return false;
  changed_.wait(held, [this, seen = finished_] { return finished_ != seen || !waiting_.empty(); });
  return true;
}

// Does the oldest job that no thread is at.
bool Reaper::work(std::unique_lock<std::mutex>& held) {
  if (waiting_.empty()) return false;
  Job job = std::move(waiting_.front());
  waiting_.pop_front();
  ++working_;
  held.unlock();
  give_back(job);
  held.lock();
  --working_;
  ++finished_;
  done_.push_back(std::move(job.done));
  changed_.notify_all();
  return true;
}

void Reaper::thread() {
  std::unique_lock held(lock_);
  for (;;) {
    while (work(held)) {
      held.unlock();
      engine_.schedule(task_);
      held.lock();
    }
    if (stopping_) return;
    changed_.wait(held, [this] { return stopping_ || !waiting_.empty(); });
  }
}

}  // namespace anydat::nic::verbs
