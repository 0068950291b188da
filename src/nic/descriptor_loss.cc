// SPDX-License-Identifier: BSD-3-Clause
#include "nic/descriptor_loss.h"

#include "env/log.h"
#include "nic/run_safely.h"
#include "nic/waiting.h"
#include "os/cancel.h"

namespace anydat::nic {

void DescriptorLoss::check(std::uint64_t now) {
  checked_.store(now, std::memory_order_relaxed);
  if (!poller_.is_ours()) note();
}

void DescriptorLoss::note() {
  if (waiting_.started() && !lost_.exchange(true)) waiting_.cancel_progress_thread();
}

void DescriptorLoss::tell() {
  if (!action_) return;
  loop_.note_loss();
  const std::function<void()> action = std::exchange(action_, nullptr);
  env::log(env::LogLevel::error, "the program has closed descriptors of this library; the adapter is of no use now");
  const os::CancelOff off;
  run_safely(action);
}

}  // namespace anydat::nic
