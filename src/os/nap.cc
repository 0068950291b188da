// SPDX-License-Identifier: BSD-3-Clause
#include "os/nap.h"

#include <cerrno>

namespace anydat::os {

Nap::Nap() {
  sem_init(&semaphore_, 0, 0);
}

Nap::~Nap() {
  sem_destroy(&semaphore_);
}

Nap::End Nap::sleep(Nanoseconds deadline) {
  const timespec until = to_timespec(deadline);
  if (sem_clockwait(&semaphore_, CLOCK_MONOTONIC, &until) == 0) return End::woken;
  return errno == ETIMEDOUT ? End::timed_out : End::interrupted;
}

void Nap::wake() {
  sem_post(&semaphore_);
}

}  // namespace anydat::os
