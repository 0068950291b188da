// SPDX-License-Identifier: BSD-3-Clause
#include "os/fork.h"

#include <pthread.h>

#include "os/descriptors.h"

namespace anydat::os {

namespace {

constinit std::atomic<AfterFork*> first{nullptr};
constinit std::atomic<std::uint32_t> forks_so_far{0};

}  // namespace

void AfterFork::enlist() {
  if (enlisted_.exchange(true)) return;
  next_ = first.load();
  while (!first.compare_exchange_weak(next_, this)) {
  }
}

std::uint32_t forks() {
  return forks_so_far.load(std::memory_order_relaxed);
}

// Only the one thread of the child is there.
void begin_anew_after_fork() {
  ForkHeldOff::in_child();
  forks_so_far.fetch_add(1);
  Descriptors::close_all();
  for (AfterFork* next = first.load(); next; next = next->next_) next->reset_(next->object_);
}

namespace {

[[gnu::constructor]] void ask_to_hear_of_forks() {
  pthread_atfork(ForkHeldOff::prepare, ForkHeldOff::in_parent, begin_anew_after_fork);
}

}  // namespace

}  // namespace anydat::os
