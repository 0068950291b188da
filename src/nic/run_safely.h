// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <new>

namespace anydat::nic {

void note_no_memory();

// What the engine runs handles a lack of memory by itself, where it is known what to give up for it. Should it not, the
// process still must not end by it.
template <typename Action>
void run_safely(Action&& action) {
  try {
    action();
  } catch (const std::bad_alloc&) {
    note_no_memory();
  }
}

}  // namespace anydat::nic
