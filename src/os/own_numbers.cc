// SPDX-License-Identifier: BSD-3-Clause
#include "os/own_numbers.h"

#include <unistd.h>

namespace anydat::os {

pid_t own_thread_number() {
  return gettid();
}

pid_t own_process_number() {
  return getpid();
}

uid_t own_user() {
  return geteuid();
}

}  // namespace anydat::os
