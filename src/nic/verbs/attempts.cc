// SPDX-License-Identifier: BSD-3-Clause
// Attempts to connect as the adapter sees them: the call of the kernel, and what is left of those that are given up.
#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "nic/verbs/adapter.h"
#include "nic/verbs/shared_queue.h"
#include "os/cancel.h"

namespace anydat::nic::verbs {

KernelCalls::Ref VerbsAdapter::dial(rdma_cm_id* id, rdma_conn_param parameters,
                                    std::span<const std::byte> private_data) {
  const auto run = [id, parameters, data = std::vector(private_data.begin(), private_data.end())]() mutable {
    parameters.private_data = data.data();
    parameters.private_data_len = static_cast<std::uint8_t>(std::min<std::size_t>(data.size(), 255));
    const os::CancelOn point(true);
    return rdma_connect(id, &parameters) == 0 ? 0 : errno;
  };
  return kernel_calls_.start(run, [id](int error) { static_cast<CmHandler*>(id->context)->on_dialled(id, error); });
}

void VerbsAdapter::abandon(AbandonedAttempt attempt) {
  if (attempt.id) attempt.id->context = static_cast<CmHandler*>(&abandoned_);
  if (attempt.dial) kernel_calls_.cancel(*attempt.dial);
  try {
    abandoned_.attempts.push_back(std::move(attempt));
  } catch (const std::bad_alloc&) {
    // However long that takes.
    if (const KernelCalls::Ref dial = std::exchange(attempt.dial, nullptr)) kernel_calls_.await(*dial);
    drop(attempt);
  }
}

void VerbsAdapter::drop(AbandonedAttempt& attempt) {
  if (attempt.dial) {
    attempt.unwanted = true;
  } else {
    attempt.id.reset();
  }
  Reaper::Job job;
  job.queue_pair = std::move(attempt.queue_pair);
  job.pd = std::move(attempt.pd);
  Cq* const cq = std::exchange(attempt.cq, nullptr);
  SharedQueue* const shared = std::exchange(attempt.counted, false) ? attempt.shared : nullptr;
  const std::uint32_t room = attempt.cq_room;
  if (!job.queue_pair && !cq && !shared) return;
  const auto done = [this, cq, shared, room] {
    if (cq) completions_.queues().release(cq, room);
    if (shared) shared->detach();
  };
  try {
    job.done = done;
  } catch (const std::bad_alloc&) {
    job = {};
    return done();
  }
  reaper_.give(std::move(job));
}

void VerbsAdapter::drop_abandoned(const SharedQueue* shared) {
  for (AbandonedAttempt& attempt : abandoned_.attempts) {
    if (attempt.shared == shared) drop(attempt);
  }
  abandoned_.forget_dropped();
}

// Whatever it is, it is the answer, or stands for it.
void VerbsAdapter::Abandoned::on_cm_event(const CmEvent& event) {
  for (AbandonedAttempt& attempt : attempts) {
    if (attempt.id.get() == event.id) adapter.drop(attempt);
  }
  forget_dropped();
}

void VerbsAdapter::Abandoned::on_dialled(rdma_cm_id* id, int error) {
  for (AbandonedAttempt& attempt : attempts) {
    if (attempt.id.get() != id) continue;
    attempt.dial.reset();
    if (error != 0 || attempt.unwanted) adapter.drop(attempt);
  }
  forget_dropped();
}

}  // namespace anydat::nic::verbs
