// SPDX-License-Identifier: BSD-3-Clause
#include "nic/run_queue.h"

#include "nic/run_safely.h"

namespace anydat::nic {

void RunQueue::add(Task& task) {
  {
    os::Guard guard(lock_);
    if (task.links_.listed()) return;
    tasks_.push_back(task);
  }
  pending_.exchange(true);
}

void RunQueue::cancel(Task& task) {
  os::Guard guard(lock_);
  tasks_.remove(task);
}

Task* RunQueue::take() {
  os::Guard guard(lock_);
  return tasks_.pop_front();
}

void RunQueue::run() {
  while (pending()) {
    pending_.exchange(false);
    while (Task* const task = take()) run_safely(task->action_);
  }
}

}  // namespace anydat::nic
