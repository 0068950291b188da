// SPDX-License-Identifier: BSD-3-Clause
// A thread of the library, with a stack of a size of its own: that of a program's threads may be many megabytes, which
// count against its limits whether they are used or not.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>

namespace anydat::os {

class Thread {
 public:
  // of_program: for a thread that runs the program's code, which may count on a stack as its own threads have. It gets
  // a smaller one where the system has no room for that.
  enum class Stack : bool { ours, of_program };

  Thread() = default;
  ~Thread() = default;  // Requires: joined, detached, or never started.
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // False if the system has no room for another. May throw std::bad_alloc.
  bool start(std::function<void()> run, Stack stack = Stack::ours);
  bool joinable() const { return started_; }
  bool is_current() const;
  void join();
  // It ends where it sleeps next within a CancelOn (os/cancel.h), or in the sleep that it is in. To be joined all the
  // same.
  void cancel();
  void detach();  // it goes on by itself; its end cannot be waited for

 private:
  bool create(std::size_t stack_bytes, void* argument);
  bool create_as_usual(void* argument);
  bool create_on_own_stack(void* argument);

  pthread_t thread_{};
  void* own_stack_ = nullptr;
  bool started_ = false;
};

}  // namespace anydat::os
