// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/queue_pair.h"

#include <new>
#include <utility>

#include "nic/verbs/adapter.h"

namespace anydat::nic::verbs {

VerbsQueuePair::VerbsQueuePair(VerbsAdapter& adapter, SharedQueue* shared, QueuePairEvents& events)
    : adapter_(adapter),
      sends_(*this, adapter, events),
      receives_(*this, adapter, shared, events, sends_.counters()),
      device_(*this, adapter),
      connection_(*this, adapter, events) {}

Status VerbsQueuePair::init(const QueuePairLimits& limits) {
  if (const Status status = receives_.init(limits); status != Status::ok) return status;
  SendQueue::Room room(limits, adapter_.device().is_iwarp());
  os::Guard guard(sends_.lock());
  sends_.move_to(std::move(room));
  limits_ = limits;
  return Status::ok;
}

void VerbsQueuePair::set_completion_queues(CompletionQueue* recv, CompletionQueue* send) {
  os::Guard guard(sends_.lock());
  receives_.set_queue(recv);
  sends_.set_queue(send);
}

Status VerbsQueuePair::set_limits(const QueuePairLimits& limits) try {
  // All of it or nothing: what is refused has changed nothing (EP-MODIFY-1). So what may find no memory comes first,
  // and what may not fit comes last of what can fail.
  SendQueue::Room room(limits, adapter_.device().is_iwarp());
  os::Guard guard(sends_.lock());
  if (const Status status = receives_.set_limits(limits); status != Status::ok) return status;
  sends_.move_to(std::move(room));
  limits_ = limits;
  return Status::ok;
} catch (const std::bad_alloc&) {
  return Status::no_memory;
}

Status VerbsQueuePair::post_recv(const RecvRequest& request) {
  const Status status = receives_.post(request);
  // Closing changes the state before it flushes, so a receive posted around that moment is flushed by one of us.
  if (sends_.state_now() == ConnectionState::closed && status == Status::ok) [[unlikely]]
    receives_.flush_late();
  return status;
}

void VerbsQueuePair::reset() {
  connection_.reset();
  sends_.reset();
}

bool VerbsQueuePair::cut() {
  set_completion_queues(nullptr, nullptr);
  return connection_.cut();
}

void VerbsQueuePair::destroy() {
  while (!cut()) adapter_.reaper().finish();
  receives_.flush();
  sends_.destroy();
  connection_.destroy();
}

void VerbsQueuePair::completion_lost(const Completion& completion) {
  if (completion.reaped) completion.reaped->queue.reaped();
  if (completion.status != WorkStatus::success) return;
  connection_.break_soon();  // EVM-54
}

}  // namespace anydat::nic::verbs
