// SPDX-License-Identifier: BSD-3-Clause
// The software NIC's queue pair: what it is made of, and what is set of its parts together.
#include "nic/soft/queue_pair.h"

#include <cassert>

#include "nic/soft/adapter.h"

namespace anydat::nic::soft {

SoftQueuePair::SoftQueuePair(SoftAdapter& adapter, ReceivePool* shared, QueuePairEvents& events)
    : adapter_(adapter),
      sends_(*this, adapter, events),
      receives_(*this, adapter, shared, events, sends_.counters()),
      memory_(*this, adapter.memory_users(), adapter.scopes().next()),
      connection_(*this, adapter, events) {}

SoftQueuePair::~SoftQueuePair() = default;

Status SoftQueuePair::init(const QueuePairLimits& limits) {
  if (const Status status = receives_.init(limits); status != Status::ok) return status;
  reads_in_ = limits.reads_in;
  os::Guard guard(sends_.lock());
  sends_.requests().set_limits(limits, std::nullopt);
  return Status::ok;
}

// ---- configuration

void SoftQueuePair::set_zone(ZoneId zone) {
  memory_.set_zone(zone);
  receives_.note_straight_way();
}

void SoftQueuePair::set_completion_queues(CompletionQueue* recv, CompletionQueue* send) {
  {
    os::Guard guard(sends_.lock());
    receives_.set_queue(recv);
    sends_.requests().set_queue(send);
  }
  receives_.note_straight_way();
}

Status SoftQueuePair::set_limits(const QueuePairLimits& limits) {
  os::Guard guard(sends_.lock());
  // Both or neither: what is refused has changed nothing (EP-MODIFY-1).
  std::optional<SendRing::Storage> room = sends_.requests().room_within(limits);
  if (room && !room->ring) return Status::no_memory;
  if (const Status status = receives_.buffers().set_limits(limits); status != Status::ok) return status;
  sends_.requests().set_limits(limits, std::move(room));
  reads_in_ = limits.reads_in;
  return Status::ok;
}

std::uint32_t SoftQueuePair::takes() const {
  return adapter_.info().abilities & ~(shows_immediates_ ? 0 : ability::kImmediate);
}

Status SoftQueuePair::post_recvs(const RecvRow& row, std::size_t& posted) {
  return receives_.watermarks().any() ? QueuePair::post_recvs(row, posted) : receives_.post_row(row, posted);
}

// ---- the life of its connection

Status SoftQueuePair::connect(const ConnectParameters& parameters) {
  return connection_.establishment().connect(parameters);
}

void SoftQueuePair::reset() {
  sends_.reset();
  connection_.reset();
  memory_.set_scope(adapter_.scopes().next());
  receives_.reset();
  outcomes_.reset();
}

bool SoftQueuePair::cut() {
  set_completion_queues(nullptr, nullptr);
  return connection_.cut();
}

void SoftQueuePair::destroy() {
  [[maybe_unused]] const bool quiet = cut();
  assert(quiet);
  receives_.watermarks().destroy();
  sends_.destroy();
  memory_.leave();
  connection_.destroy();
}

}  // namespace anydat::nic::soft
