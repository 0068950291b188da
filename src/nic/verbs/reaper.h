// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "nic/engine.h"
#include "nic/verbs/resources.h"
#include "os/thread.h"

namespace anydat::nic::verbs {

// Gives queue pairs, queues and registered memory back to the kernel, on a thread of its own: that may take long, a
// region of many pages for instance, and other connections must not wait for it.
//
// Thread safety: as each method says. Its lock is a leaf, and is not held while the kernel works.
class Reaper {
 public:
  struct Job {
    // The last goes first, as each keeps those before it.
    PdPtr pd;
    CqPtr completions;
    SrqPtr shared;
    MemoryRegion memory;
    QpPtr queue_pair;
    std::function<void()> done;  // with the engine held, once all that is gone; must not throw
  };

  explicit Reaper(Engine& engine);
  ~Reaper() { stop(); }
  Status start();
  void stop();  // all jobs are done afterwards, but for what is left to be called

  // With the engine held. Without memory for it the job is done before this returns.
  void give(Job job);
  // With the engine held: calls what is to be called of the jobs that are done.
  void call_done();
  // With the engine held: the same when all jobs are done; those that no thread is at it does itself.
  void finish();
  // Without the engine. True when a job is done, by the caller if no thread is at it; false if there was none.
  bool help();

 private:
  static void give_back(Job& job);
  bool work(std::unique_lock<std::mutex>& held);
  void thread();

  Engine& engine_;
  Task task_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::vector<std::function<void()>> done_;
  int working_ = 0;
  std::uint64_t finished_ = 0;
  bool stopping_ = false;
  os::Thread thread_;
};

// What several keep, until the last of them gives it to the reaper. With the engine held.
struct KeptParts {
  explicit KeptParts(Reaper& to) : reaper(to) {}
  KeptParts(const KeptParts&) = delete;
  KeptParts& operator=(const KeptParts&) = delete;
  ~KeptParts() { reaper.give(std::move(parts)); }

  Reaper& reaper;
  Reaper::Job parts;
};

}  // namespace anydat::nic::verbs
