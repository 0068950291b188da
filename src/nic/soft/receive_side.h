// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "nic/adapter.h"
#include "nic/soft/arriving_messages.h"
#include "nic/soft/copy_message.h"
#include "nic/soft/delivery_batch.h"
#include "nic/soft/endpoint_watermarks.h"
#include "nic/soft/incoming.h"
#include "nic/soft/receive_buffers.h"
#include "nic/soft/receiver_not_ready.h"

namespace anydat::nic::soft {

class SoftAdapter;
class SoftQueuePair;

// The receiving side of a software queue pair: how its messages get into their receives (ReceiveBuffers) and complete.
// Those that have a receive and are not whole are ArrivingMessages; while one finds none, ReceiverNotReady waits for
// it; EndpointWatermarks counts both.
//
// A call that ends the connection says so in what it returns, and what else may have ended it is told by the state.
//
// Thread safety: posts and counts from any thread; everything else with the engine held. Lives and dies with its queue
// pair.
class ReceiveSide {
 public:
  // `shared`: null if it has receives of its own.
  ReceiveSide(SoftQueuePair& queue_pair, SoftAdapter& adapter, ReceivePool* shared, QueuePairEvents& events,
              QueuePair::Counters& counters);
  ReceiveSide(const ReceiveSide&) = delete;
  ReceiveSide& operator=(const ReceiveSide&) = delete;
  Status init(const QueuePairLimits& limits);
  // Its limits are set with the queue pair's send lock, since late posts take receives, too.
  ReceiveBuffers& buffers() { return buffers_; }
  const ReceiveBuffers& buffers() const { return buffers_; }

  // ---- the consumer's side, as in QueuePair
  Status post(const RecvRequest& request);
  Status post_row(const RecvRow& row, std::size_t& posted);
  void set_watermarks(std::int32_t soft, std::int32_t hard);
  EndpointWatermarks& watermarks() { return watermarks_; }
  // With the send lock.
  void set_queue(CompletionQueue* queue) { queue_.store(queue); }
  QueuePair::RecvInfo info() const;
  // Whatever deliver_straight() goes by has changed: the zone, the queue, a watermark.
  void note_straight_way();

  // ---- for the stream
  // An Incoming lives until finish() or the end of the connection, and messages finish in order.
  Incoming* begin(std::uint64_t length, bool solicited);  // null: no buffer now, or the connection has just broken
  bool extend(Incoming& message, std::uint64_t length);   // it turns out to be longer; false: the connection has broken
  bool place(Incoming& message, const std::byte* bytes, std::size_t count);  // false: the connection has broken
  // Where its next `count` bytes go, or the first of them, for a stream that puts them there itself and adds to
  // `placed`. 0 pieces: the connection has broken.
  std::size_t aim(Incoming& message, std::size_t count, std::span<iovec> pieces);
  WorkStatus check(const Incoming& message) const {
    return buffers_.check(message.buffer, message.buffer.all(), message.length);
  }
  void fail(Incoming& message, WorkStatus status);  // breaks the connection
  bool finish(Incoming& message);                   // false: the connection has broken
  // Places it, and finishes what is whole now, in the order of the messages. Not to be mixed with the calls around.
  SegmentResult place_segment(const ArrivingSegment& segment);
  // begin, place and finish in one, for a message that is wholly there. False if there is no buffer for it now. The
  // completion may wait in the adapter's batch, which the caller flushes.
  bool deliver(const std::byte* bytes, std::size_t length, bool solicited) {
    const auto not_the_last = [] { return false; };
    const auto memory_is_there = [](const Segment&, ResidentPages::Stretch&) { return true; };
    return deliver_straight(bytes, length, solicited, not_the_last, memory_is_there) ||
           deliver_otherwise(bytes, length, solicited);
  }
  // The same if it is as nearly all are, and `there(piece, seen)`, of its memory and what has been seen of that of its
  // pool: false may also mean that nothing has happened. If none waits before it, and it is the `last()` that is there,
  // its completion does not wait either.
  template <typename Last, typename There>
  bool deliver_straight(const std::byte* bytes, std::size_t length, bool solicited, Last&& last, There&& there);
  // The same of immediate data, behind a Write of that length, which is in place.
  bool deliver_immediate(std::uint64_t length, std::uint32_t value, bool solicited);
  ArrivingMessages& arriving() { return arriving_; }
  // What a message has ended the connection with on its own account, if one has.
  WorkStatus failure() const { return failed_status_; }
  const Incoming* failed_message() const { return failed_message_; }  // null also if it was delivered straight
  ReceiverNotReady& not_ready() { return not_ready_; }

  // ---- for the adapter's batch
  // A completion of ours found no room (EVM-54, SRQ-ACC-11).
  void completion_lost(const Completion& completion);

  // ---- for the queue pair, in the order of a connection's life
  // The messages up to the one that has failed, if one has. A failure is followed by failures only, so requests are
  // flushed next.
  void flush_to_failed();
  void flush_rest();  // what is arriving, and then what is posted
  void reset() { failed_status_ = WorkStatus::success; }

 private:
  void flush_incoming_to(const Incoming* last);
  void flush_posted();
  void complete(const PostedReceive& receive, WorkStatus status, std::uint64_t length, bool solicited,
                WorkKind kind = WorkKind::recv, std::uint32_t value = 0);
  bool deliver_otherwise(const std::byte* bytes, std::size_t length, bool solicited);
  Incoming* begin_at(std::uint64_t number, std::uint64_t length, bool solicited);  // as begin()
  Incoming* find_or_begin(std::uint64_t number, bool solicited);
  bool take_buffer(Receive& out);
  Event arrival(const PostedReceive& receive, std::uint64_t length, bool solicited) const;

  // What a message of the usual kind meets.
  struct StraightWay {
    CompletionQueue* queue = nullptr;  // null: there is none, or more is to be looked at with each message
    ReceivePool* pool = nullptr;
    ReapCount* reaped = nullptr;  // of a shared pool
    ZoneId zone = kNoZone;
  };
  StraightWay straight_;
  ArrivingMessages arriving_;
  ReceiveBuffers buffers_;

  SoftQueuePair& queue_pair_;
  DeliveryBatch& batch_;  // the adapter's
  QueuePairEvents& events_;
  QueuePair::Counters& counters_;  // the queue pair's

  // Written with the engine and the queue pair's send lock held, so that either is enough to read it.
  std::atomic<CompletionQueue*> queue_{nullptr};

  const Incoming* failed_message_ = nullptr;  // the one that ended the connection
  WorkStatus failed_status_ = WorkStatus::success;
  ReceiverNotReady not_ready_;
  EndpointWatermarks watermarks_;
};

inline Event ReceiveSide::arrival(const PostedReceive& receive, std::uint64_t length, bool solicited) const {
  // What comes first in an event, in one store instead of five.
  struct Head {
    EventKind kind = EventKind::dto_completion;
    WorkStatus status = WorkStatus::success;
    WorkKind operation = WorkKind::recv;
    std::uint8_t notice;
    std::uint32_t detail = 0;
  };
  static_assert(sizeof(Head) == sizeof(std::uint64_t) && offsetof(Event, object) == sizeof(Head) &&
                offsetof(Event, notice) == offsetof(Head, notice) && offsetof(Event, detail) == offsetof(Head, detail));
  const auto head = std::bit_cast<std::uint64_t>(
      Head{.notice = static_cast<std::uint8_t>((receive.unsignalled ? Event::kUnsignalled : 0) |
                                               (solicited ? Event::kSolicited : 0))});
  Event event;
  std::memcpy(static_cast<void*>(&event), &head, sizeof head);
  event.object = events_.owner;
  event.cookie = receive.cookie;
  event.length = length;
  return event;
}

template <typename Last, typename There>
[[gnu::always_inline]] inline bool ReceiveSide::deliver_straight(const std::byte* bytes, std::size_t length,
                                                                 bool solicited, Last&& last, There&& there) {
  if (!straight_.queue) [[unlikely]]
    return false;
  ReceivePool& pool = *straight_.pool;
  const ReceivePool::Slot* const receive = pool.anybody_waits() ? nullptr : pool.next();
  if (!receive || receive->segment_count != 1 || length > receive->first().length ||
      !buffers_.still_checked(*receive, straight_.zone) ||
      !there({0, 0, receive->first().address, length}, pool.seen())) [[unlikely]] {
    return false;
  }
  copy_message(reinterpret_cast<std::byte*>(receive->first().address), bytes, length);
  pool.take_next();
  arriving_.completed_at_once();
  QueuePair::Counters& counters = counters_;
  counters.receives.add();
  counters.receive_bytes.add(length);
  // DTO-14: what the slot says has been read when it is free, which is before its completion is seen.
  CompletionQueue& queue = *straight_.queue;
  if (batch_.empty() && last()) {
    const QueuedEvent event{arrival(*receive, length, solicited), straight_.reaped};
    if (!event.reaped) pool.reaped_by_taker();
    if (!queue.push_quietly(event)) [[unlikely]]
      batch_.add(queue, *this) = event;
  } else {
    batch_.add(queue, *this) = {arrival(*receive, length, solicited), straight_.reaped};
    if (!straight_.reaped) pool.reaped_by_taker();
  }
  return true;
}

}  // namespace anydat::nic::soft
