// SPDX-License-Identifier: BSD-3-Clause
// Which signals a thread of the library takes.
#pragma once

#include <signal.h>

namespace anydat::os {

// For the length of a scope in which threads are started, which inherit the mask. Signals that are sent belong to the
// application's threads: a handler that ran in one of ours would not interrupt a blocked call. Those that an
// instruction brings about belong to the thread that executed it, and stay unblocked: the kernel kills a process whose
// thread has blocked them, although the program may have a handler that mends the cause, a page of its memory for
// instance.
class SignalsOfOurThreads {
 public:
  SignalsOfOurThreads();
  ~SignalsOfOurThreads();
  SignalsOfOurThreads(const SignalsOfOurThreads&) = delete;
  SignalsOfOurThreads& operator=(const SignalsOfOurThreads&) = delete;

 private:
  sigset_t before_;
};

}  // namespace anydat::os
