// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <new>

#include "base/log.h"

namespace anydat::nic {

// What the engine runs handles a lack of memory by itself, where it is known what to give up for it. Should it not, the
// process still must not end by it.
template <typename Action>
void run_safely(Action&& action) {
  try {
    action();
  } catch (const std::bad_alloc&) {
    base::log(base::LogLevel::error, "no memory for something that has arrived");
  }
}

}  // namespace anydat::nic
