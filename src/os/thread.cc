// SPDX-License-Identifier: BSD-3-Clause
#include "os/thread.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "os/fork.h"
#include "os/lock.h"
#include "os/mapping.h"

namespace anydat::os {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStackBytes = 8u << 20;
constexpr std::size_t kOwnStackBytes = 8u << 20;
#else
constexpr std::size_t kStackBytes = 512u << 10;
// Where that much is not granted.
constexpr std::size_t kOwnStackBytes = 192u << 10;
#endif

using Run = std::function<void()>;

void* call(void* argument) {
  const std::unique_ptr<Run> run(static_cast<Run*>(argument));
  (*run)();
  return nullptr;
}

// Threads that go on by themselves on stacks of ours. That such a thread has left its stack shows when it can be
// joined.
class OnTheirOwn {
 public:
  // May throw std::bad_alloc.
  void add(pthread_t thread, void* stack) {
    Guard guard(lock_);
    threads_.push_back({thread, stack});
  }
  void give_back_stacks() {
    Guard guard(lock_);
    std::erase_if(threads_, [](const OneThread& one) {
      if (pthread_tryjoin_np(one.thread, nullptr) != 0) return false;
      unmap(one.stack, kOwnStackBytes);
      return true;
    });
  }

 private:
  struct OneThread {
    pthread_t thread;
    void* stack;
  };
  Mutex lock_;
  std::vector<OneThread> threads_ ANYDAT_GUARDED_BY(lock_);
};
constinit PerProcess<OnTheirOwn> on_their_own;

}  // namespace

bool Thread::create(std::size_t stack_bytes, void* argument) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const bool created = pthread_create(&thread_, &attributes, call, argument) == 0;
  pthread_attr_destroy(&attributes);
  return created;
}

// For a process that may lock no more memory, and has asked that all be locked. The lowest page is there to be met by a
// stack that outgrows its room.
bool Thread::create_on_own_stack(void* argument) {
  on_their_own->give_back_stacks();
  void* const stack = map_private_unlocked(kOwnStackBytes);
  pthread_attr_t attributes;
  if (!stack || pthread_attr_init(&attributes) != 0) {
    unmap(stack, kOwnStackBytes);
    return false;
  }
  mprotect(stack, page_bytes(), PROT_NONE);
  const bool created = pthread_attr_setstack(&attributes, stack, kOwnStackBytes) == 0 &&
                       pthread_create(&thread_, &attributes, call, argument) == 0;
  pthread_attr_destroy(&attributes);
  if (created) {
    own_stack_ = stack;
  } else {
    unmap(stack, kOwnStackBytes);
  }
  return created;
}

bool Thread::create_as_usual(void* argument) {
  return pthread_create(&thread_, nullptr, call, argument) == 0;
}

bool Thread::start(Run run, Stack stack) {
  auto owned = std::make_unique<Run>(std::move(run));
  // A program may have more thread-local memory than fits into our stacks: then the system chooses one.
  started_ = (stack == Stack::of_program && create_as_usual(owned.get())) || create(kStackBytes, owned.get()) ||
             create_on_own_stack(owned.get()) || create_as_usual(owned.get());
  if (started_) (void)owned.release();
  return started_;
}

bool Thread::is_current() const {
  return started_ && pthread_equal(thread_, pthread_self()) != 0;
}

void Thread::cancel() {
  if (started_) pthread_cancel(thread_);
}

void Thread::join() {
  pthread_join(thread_, nullptr);
  unmap(std::exchange(own_stack_, nullptr), kOwnStackBytes);
  started_ = false;
}

void Thread::detach() {
  started_ = false;
  void* const stack = std::exchange(own_stack_, nullptr);
  try {
    if (stack) return on_their_own->add(thread_, stack);
  } catch (const std::bad_alloc&) {
    // The stack stays.
  }
  // One of the system's is the system's again when the thread ends: it keeps some for the next, 40 MiB at most.
  pthread_detach(thread_);
}

}  // namespace anydat::os
