// SPDX-License-Identifier: BSD-3-Clause
// Threads of a process in a PID namespace below ours have one number there and another here.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace anydat::os {

// Of the threads `here`, by their numbers here in ascending order, the one that is called `there` in its own namespace;
// 0 if it is not found. `ask` answers what the thread of a number here is called there, 0 if there is no such thread,
// and is asked a bounded number of times, since each answer costs some microseconds: both namespaces give their numbers
// in ascending order, so that a few questions find it. Where one of them has begun anew with small numbers meanwhile,
// those that come after it are asked first, and then those before it.
template <typename Ask>
pid_t find_thread_number(std::span<const pid_t> here, pid_t there, Ask&& ask) {
  constexpr int kQuestionsMax = 96;
  int questions = 0;
  std::size_t low = 0, high = here.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const pid_t number = ask(here[middle]);
    ++questions;
    if (number == there) return here[middle];
    (number < there ? low : high) = number < there ? middle + 1 : middle;
  }
  for (std::size_t i = 0; i < here.size() && questions < kQuestionsMax; ++i, ++questions) {
    const pid_t candidate = here[(low + i) % here.size()];
    if (ask(candidate) == there) return candidate;
  }
  return 0;
}

}  // namespace anydat::os
