// SPDX-License-Identifier: BSD-3-Clause
#include "os/thread_signals.h"

#include <initializer_list>

namespace anydat::os {

SignalsOfOurThreads::SignalsOfOurThreads() {
  sigset_t ours;
  sigfillset(&ours);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&ours, signal);
  pthread_sigmask(SIG_SETMASK, &ours, &before_);
}

SignalsOfOurThreads::~SignalsOfOurThreads() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace anydat::os
