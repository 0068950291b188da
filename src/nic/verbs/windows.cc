// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/windows.h"

#include <new>
#include <utility>

#include "nic/verbs/window.h"

namespace anydat::nic::verbs {

void Windows::region_goes(std::uint32_t key) {
  if (pending_binds_ == 0) return;
  for (VerbsWindow* const window : all_) window->drop_pending_on(key);
}

void Windows::drop_part(MemoryRegion memory, std::uint32_t key, VerbsWindow& window) {
  Reaper::Job job;
  job.memory = std::move(memory);
  try {
    job.done = [this, key, &window] {
      leaving_.erase(leaving_.find(key));
      window.part_gone();
    };
    leaving_.insert(key);
  } catch (const std::bad_alloc&) {
    job.memory = {};
    return window.part_gone();
  }
  reaper_.give(std::move(job));
}

}  // namespace anydat::nic::verbs
