// SPDX-License-Identifier: BSD-3-Clause
#include "os/thread.h"

#include <array>
#include <cstddef>
#include <memory>

namespace anydat::os {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::array<std::size_t, 1> kStackBytes{8u << 20};
#else
// Where not even the smaller one is granted, there is a limit that leaves no room for a thread.
constexpr std::array<std::size_t, 2> kStackBytes{512u << 10, 192u << 10};
#endif

using Run = std::function<void()>;

void* call(void* argument) {
  const std::unique_ptr<Run> run(static_cast<Run*>(argument));
  (*run)();
  return nullptr;
}

}  // namespace

bool Thread::start(Run run) {
  auto owned = std::make_unique<Run>(std::move(run));
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  for (const std::size_t bytes : kStackBytes) {
    if (started_) break;
    pthread_attr_setstacksize(&attributes, bytes);
    started_ = pthread_create(&thread_, &attributes, call, owned.get()) == 0;
  }
  pthread_attr_destroy(&attributes);
  // A program may have more thread-local memory than fits into such a stack.
  if (!started_) started_ = pthread_create(&thread_, nullptr, call, owned.get()) == 0;
  if (started_) (void)owned.release();
  return started_;
}

void Thread::join() {
  pthread_join(thread_, nullptr);
  started_ = false;
}

void Thread::detach() {
  pthread_detach(thread_);
  started_ = false;
}

}  // namespace anydat::os
