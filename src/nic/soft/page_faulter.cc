// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/page_faulter.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/list.h"
#include "nic/run_safely.h"
#include "os/futex.h"
#include "os/lock.h"
#include "os/page_map.h"
#include "os/processor.h"
#include "os/thread.h"
#include "os/thread_signals.h"

namespace anydat::nic::soft {

namespace {

// Each may be stuck in a page that never comes; what is asked then waits until one of them is free again.
constexpr unsigned kThreadsMax = 16;
// A thread without anything to do is there for so long.
constexpr os::Nanoseconds kIdleLife = os::kNsPerSecond;
// A thread that the system has no room for is tried again after this.
constexpr os::Nanoseconds kThreadRetry = 100'000'000;

}  // namespace

// The memory of a request that is pending, page by page. The thread that works on one frees it if the request was
// cancelled meanwhile; else tell() or cancel() do. All with the lock of what is shared.
struct PageFaulter::Job {
  Request* request;    // null: cancelled
  std::uint64_t next;  // page
  std::uint64_t end;
  bool to_write;
  bool there = true;
  std::vector<Pages> untold{};  // some may be missing where there is no memory
  base::ListLinks<Job> links{};
  using List = base::List<Job, &Job::links>;
  List* in = nullptr;  // null: a thread has it
  base::ListLinks<Job> under_way_links{};
  List followers{};  // that need the page in which a thread is with this one

  void move_to(List& list) {
    leave_list();
    list.push_back(*this);
    in = &list;
  }
  void note_untold(std::uint64_t page) {
    if (!untold.empty() && untold.back().end == page) {
      untold.back().end += os::kPageBytes;
      return;
    }
    try {
      untold.push_back({page, page + os::kPageBytes});
    } catch (const std::bad_alloc&) {
      // It is asked for again.
    }
  }
  void leave_list() {
    if (in) in->remove(*this);
    in = nullptr;
  }
};

// What the threads know, and all that they touch once the adapter has gone.
struct PageFaulter::Shared {
  os::Mutex lock;
  Job::List waiting ANYDAT_GUARDED_BY(lock);
  base::List<Job, &Job::under_way_links> under_way ANYDAT_GUARDED_BY(lock);  // its thread may be stuck
  Job::List finished ANYDAT_GUARDED_BY(lock);
  unsigned threads ANYDAT_GUARDED_BY(lock) = 0;
  unsigned idle ANYDAT_GUARDED_BY(lock) = 0;    // or just starting
  bool called ANYDAT_GUARDED_BY(lock) = false;  // for more threads, which have not come
  bool over ANYDAT_GUARDED_BY(lock) = false;
  std::atomic<std::uint32_t> bell{0};
  // Of the adapter, while it is not over.
  Engine* engine = nullptr;
  Task* task = nullptr;

  bool short_of_threads() const ANYDAT_REQUIRES(lock) {
    return waiting.size() > idle && threads < kThreadsMax && !over;
  }
  void ring(int count) {
    bell.fetch_add(1);
    os::futex_wake(bell, count);
  }
  void work();
  bool rest() ANYDAT_REQUIRES(lock);
  void wake_engine() ANYDAT_REQUIRES(lock);
  bool follow(Job& job) ANYDAT_REQUIRES(lock);
  void bring_page(Job& job) ANYDAT_REQUIRES(lock);
};

void PageFaulter::Shared::work() {
  lock.lock();
  --idle;
  while (!over) {
    if (waiting.empty()) {
      if (!rest()) break;
      continue;
    }
    Job& job = *waiting.front();
    job.leave_list();
    if (short_of_threads() && !called) {
      // Those that wait behind this one shall not depend on its page.
      job.move_to(waiting);
      called = true;
      wake_engine();
      continue;
    }
    bring_page(job);
  }
  --threads;
  lock.unlock();
}

// False: nothing has come to do for so long that the thread shall end.
bool PageFaulter::Shared::rest() {
  const std::uint32_t seen = bell.load();
  ++idle;
  lock.unlock();
  const os::Nanoseconds bored_at = os::now_ns() + kIdleLife;
  os::futex_wait(bell, seen, os::to_timespec(bored_at));
  lock.lock();
  --idle;
  return !waiting.empty() || os::now_ns() < bored_at;
}

// The adapter waits for this thread, as for all that are not stuck, before it goes.
void PageFaulter::Shared::wake_engine() {
  engine->add_task(*task);
  lock.unlock();
  engine->run_tasks_if_free();
  lock.lock();
}

// True if a thread is in the page that the job needs next: then the job waits for that one, without a thread.
bool PageFaulter::Shared::follow(Job& job) {
  for (Job* other = under_way.front(); other; other = under_way.after(*other)) {
    if (other->next != job.next) continue;
    job.move_to(other->followers);
    return true;
  }
  return false;
}

// One page at a time, so that it is known which one a thread is stuck in: what needs other pages of the same memory is
// not held up by that one. Requires: the job is in no list.
void PageFaulter::Shared::bring_page(Job& job) {
  if (follow(job)) return;
  under_way.push_back(job);
  const std::uint64_t page = job.next;
  const bool to_write = job.to_write;
  lock.unlock();
  bool untold = false;
  const bool there = os::fault_in(page, os::kPageBytes, to_write, &untold);
  lock.lock();
  under_way.remove(job);
  while (Job* const follower = job.followers.front()) {
    follower->move_to(waiting);
    ring(1);
  }
  if (!job.request) {
    delete &job;
    return;
  }
  job.there = there;
  if (untold) job.note_untold(page);
  job.next += os::kPageBytes;
  if (there && job.next != job.end) {
    job.move_to(waiting);
    return;
  }
  job.move_to(finished);
  wake_engine();
}

PageFaulter::PageFaulter(Engine& engine)
    : engine_(engine), task_([this] { tell(); }), thread_retry_([this] { add_threads(); }) {}

PageFaulter::~PageFaulter() {
  if (!shared_) return;
  {
    os::Guard guard(shared_->lock);
    shared_->over = true;
  }
  shared_->ring(static_cast<int>(kThreadsMax));
  for (bool quiet = false; !quiet;) {
    {
      os::Guard guard(shared_->lock);
      quiet = shared_->threads == shared_->under_way.size();
    }
    if (!quiet) os::sleep_for(50'000);
  }
  os::Guard guard(engine_);
  engine_.cancel_task(task_);
  engine_.cancel_timer(thread_retry_);
}

void PageFaulter::ask(Request& request, std::uint64_t address, std::uint64_t length, bool to_write) {
  engine_.assert_held();
  if (!shared_) {
    shared_ = std::make_shared<Shared>();
    shared_->engine = &engine_;
    shared_->task = &task_;
  }
  const std::uint64_t first = address & ~(os::kPageBytes - 1);
  const std::uint64_t last = (address + std::max<std::uint64_t>(length, 1) - 1) & ~(os::kPageBytes - 1);
  auto* const job = new Job{&request, first, last + os::kPageBytes, to_write};
  request.job_ = job;
  {
    os::Guard guard(shared_->lock);
    if (shared_->follow(*job)) return;
    job->move_to(shared_->waiting);
  }
  shared_->ring(1);
  add_threads();
}

void PageFaulter::cancel(Request& request) {
  engine_.assert_held();
  Job* const job = std::exchange(request.job_, nullptr);
  if (!job) return;
  os::Guard guard(shared_->lock);
  job->request = nullptr;
  if (!job->in) return;
  job->leave_list();
  delete job;
}

void PageFaulter::tell() {
  for (;;) {
    std::unique_ptr<Job> job;
    {
      os::Guard guard(shared_->lock);
      job.reset(shared_->finished.front());
      if (!job) break;
      job->leave_list();
    }
    job->request->job_ = nullptr;
    run_safely([&] { job->request->done_(job->there, job->untold); });
  }
  add_threads();
}

// One for each that waits.
void PageFaulter::add_threads() {
  for (;;) {
    {
      os::Guard guard(shared_->lock);
      shared_->called = false;
      if (!shared_->short_of_threads()) return;
      ++shared_->threads;
      ++shared_->idle;
    }
    if (start_thread()) continue;
    os::Guard guard(shared_->lock);
    --shared_->threads;
    --shared_->idle;
    shared_->called = true;
    engine_.set_timer(thread_retry_, os::now_ns() + kThreadRetry);
    return;
  }
}

bool PageFaulter::start_thread() {
  try {
    const os::SignalsOfOurThreads mask;
    os::Thread thread;
    if (!thread.start([shared = shared_] { shared->work(); })) return false;
    thread.detach();
    return true;
  } catch (const std::bad_alloc&) {
    return false;  // as without room for a thread
  }
}

}  // namespace anydat::nic::soft
