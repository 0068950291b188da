// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/page_faulter.h"

#include <deque>
#include <new>
#include <utility>

#include "base/futex.h"
#include "base/lock.h"
#include "base/log.h"
#include "os/page_map.h"
#include "os/processor.h"
#include "os/thread.h"
#include "os/thread_signals.h"

namespace anydat::nic::soft {

namespace {

// Each may be stuck in a page that never comes; what is asked then waits until one of them is free again.
constexpr unsigned kThreadsMax = 16;
// A thread without anything to do is there for so long.
constexpr base::Nanoseconds kIdleLife = base::kNsPerSecond;

}  // namespace

struct PageFaulter::Job {
  std::uint64_t address;
  std::uint64_t length;
  bool to_write;
  bool there = false;
  Request* request;  // with the engine held
};

// What the threads know, and all that they touch once the adapter has gone.
struct PageFaulter::Shared {
  base::Mutex lock;
  std::deque<std::shared_ptr<Job>> waiting ANYDAT_GUARDED_BY(lock);
  std::deque<std::shared_ptr<Job>> finished ANYDAT_GUARDED_BY(lock);
  unsigned threads ANYDAT_GUARDED_BY(lock) = 0;
  unsigned idle ANYDAT_GUARDED_BY(lock) = 0;
  unsigned faulting ANYDAT_GUARDED_BY(lock) = 0;
  bool over ANYDAT_GUARDED_BY(lock) = false;
  std::atomic<std::uint32_t> bell{0};
  // Of the adapter, while it is not over.
  Engine* engine = nullptr;
  Engine::Kick* kick = nullptr;

  void work();
};

void PageFaulter::Shared::work() {
  lock.lock();
  while (!over) {
    if (waiting.empty()) {
      const std::uint32_t seen = bell.load();
      ++idle;
      lock.unlock();
      const base::Nanoseconds bored_at = base::now_ns() + kIdleLife;
      base::futex_wait(bell, seen, base::to_timespec(bored_at));
      lock.lock();
      --idle;
      if (waiting.empty() && base::now_ns() >= bored_at) break;
      continue;
    }
    const std::shared_ptr<Job> job = std::move(waiting.front());
    waiting.pop_front();
    ++faulting;
    lock.unlock();
    job->there = os::fault_in(job->address, job->length, job->to_write);
    lock.lock();
    --faulting;
    if (over) break;
    try {
      finished.push_back(job);
    } catch (const std::bad_alloc&) {
      base::log(base::LogLevel::error, "no memory to tell that memory has arrived");
      continue;
    }
    engine->queue_kick(*kick);
    lock.unlock();
    // The adapter waits for this thread, as for all that are not stuck, before it goes.
    engine->run_kicks_if_free();
    lock.lock();
  }
  --threads;
  lock.unlock();
}

PageFaulter::PageFaulter(Engine& engine) : engine_(engine), kick_([this] { tell(); }) {}

PageFaulter::~PageFaulter() {
  if (!shared_) return;
  {
    base::Guard guard(shared_->lock);
    shared_->over = true;
    shared_->waiting.clear();
  }
  shared_->bell.fetch_add(1);
  base::futex_wake(shared_->bell);
  for (bool quiet = false; !quiet;) {
    {
      base::Guard guard(shared_->lock);
      quiet = shared_->threads == shared_->faulting;
    }
    if (!quiet) os::sleep_for(50'000);
  }
  base::Guard guard(engine_);
  engine_.cancel_kick(kick_);
}

void PageFaulter::ask(Request& request, std::uint64_t address, std::uint64_t length, bool to_write) {
  engine_.assert_held();
  if (!shared_) {
    shared_ = std::make_shared<Shared>();
    shared_->engine = &engine_;
    shared_->kick = &kick_;
  }
  auto job = std::make_shared<Job>(Job{address, length, to_write, false, &request});
  bool needs_thread = false;
  {
    base::Guard guard(shared_->lock);
    shared_->waiting.push_back(job);
    needs_thread = shared_->waiting.size() > shared_->idle && shared_->threads < kThreadsMax;
    if (needs_thread) ++shared_->threads;
  }
  request.job_ = std::move(job);
  if (needs_thread) {
    bool started = false;
    try {
      const os::SignalsOfOurThreads mask;
      os::Thread thread;
      started = thread.start([shared = shared_] { shared->work(); });
      if (started) thread.detach();
    } catch (const std::bad_alloc&) {
      // As without room for a thread.
    }
    if (!started) {
      base::Guard guard(shared_->lock);
      if (--shared_->threads == 0) {
        shared_->waiting.pop_back();
        shared_->finished.push_back(request.job_);
        engine_.queue_kick(kick_);  // runs when the engine is released
      }
    }
  }
  shared_->bell.fetch_add(1);
  base::futex_wake(shared_->bell, 1);
}

void PageFaulter::cancel(Request& request) {
  engine_.assert_held();
  if (!request.job_) return;
  request.job_->request = nullptr;
  {
    base::Guard guard(shared_->lock);
    std::erase(shared_->waiting, request.job_);
  }
  request.job_ = nullptr;
}

void PageFaulter::tell() {
  for (;;) {
    std::shared_ptr<Job> job;
    {
      base::Guard guard(shared_->lock);
      if (shared_->finished.empty()) return;
      job = std::move(shared_->finished.front());
      shared_->finished.pop_front();
    }
    Request* const request = job->request;
    if (!request) continue;
    request->job_ = nullptr;
    request->done_(job->there);
  }
}

}  // namespace anydat::nic::soft
