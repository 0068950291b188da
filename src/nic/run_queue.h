// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>

#include "base/list.h"
#include "os/lock.h"

namespace anydat::nic {

// Something that has to be done with the engine held, soon, by whichever thread holds it then. Owned by the object that
// schedules it, and alive until it ran or was cancelled.
class Task {
 public:
  explicit Task(std::function<void()> action) : action_(std::move(action)) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

 private:
  friend class RunQueue;
  std::function<void()> action_;
  base::ListLinks<Task> links_;
};

// Tasks in the order in which they were added. Adding cannot fail. The engine runs them before it is released.
//
// Thread safety: add() and the looks may be called by any thread, run() and cancel() with the engine held.
class RunQueue {
 public:
  // A task that is there already is not added again; one that runs is.
  void add(Task& task);
  // False may be out of date at once. A thread that reads true finds the tasks whose adding it has seen.
  bool pending() const { return pending_.load(std::memory_order_relaxed); }
  // The same in one order with what every add() did before it returned, and with the engine's releases.
  bool pending_in_order() const { return pending_.load(); }

  void run();  // until there are none
  void cancel(Task& task);

 private:
  Task* take();

  os::SpinLock lock_;
  base::List<Task, &Task::links_> tasks_ ANYDAT_GUARDED_BY(lock_);
  std::atomic<bool> pending_{false};
};

}  // namespace anydat::nic
