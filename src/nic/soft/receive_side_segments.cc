// SPDX-License-Identifier: BSD-3-Clause
// The receiving side: messages whose segments overtake each other on their way.
#include <algorithm>

#include "nic/soft/queue_pair.h"
#include "nic/soft/receive_side.h"
#include "nic/soft/scatter.h"

namespace anydat::nic::soft {

namespace {

// How far ahead of the oldest message that is not whole one may be. A peer that sends only high numbers takes a shared
// buffer with each (EP-RQ-8), so there is an end to it even where no watermark is set.
constexpr std::uint64_t kAheadMax = 1024;

}  // namespace

// Its buffer is the next one there is, of a shared queue. Of a queue of its own each receive belongs to one message
// from the start (EP-RQ-2), so those before it get theirs first.
Incoming* ReceiveSide::find_or_begin(std::uint64_t number, bool solicited) {
  if (Incoming* const there = arriving_.find(number)) return there;
  if (buffers_.shared()) return begin_at(number, 0, solicited);
  Incoming* message = nullptr;
  for (std::uint64_t next = arriving_.newest() + 1; next <= number; ++next) {
    message = begin_at(next, 0, solicited);
    if (!message) return nullptr;
  }
  return message;
}

SegmentResult ReceiveSide::place_segment(const ArrivingSegment& segment) {
  if (segment.number <= arriving_.finished() || segment.number - arriving_.finished() > kAheadMax)
    return SegmentResult::bad_number;
  const std::uint64_t end = segment.offset + segment.bytes.size();
  if (end < segment.offset) return SegmentResult::bad_offset;
  Incoming* message = find_or_begin(segment.number, segment.solicited);
  if (!message) return is_over(queue_pair_.state()) ? SegmentResult::broken : SegmentResult::no_buffer;
  // Two ends, something behind the end, or an end before what is there already.
  if (message->end_known && (segment.last || end > message->length)) return SegmentResult::bad_offset;
  if (segment.last && end < message->length) return SegmentResult::bad_offset;
  if (!message->arrived.add(segment.offset, end)) return SegmentResult::bad_offset;
  if (!extend(*message, std::max(message->length, end))) return SegmentResult::broken;
  scatter(message->buffer.all(), segment.offset, segment.bytes.data(), segment.bytes.size());
  message->placed += segment.bytes.size();
  message->solicited = segment.solicited;
  message->end_known |= segment.last;

  // EP-RQ-7: nothing is delivered before what was sent before it.
  while (arriving_.next_is_there()) {
    Incoming& oldest = arriving_.oldest();
    if (!oldest.end_known || oldest.placed < oldest.length) break;
    if (!finish(oldest)) return SegmentResult::broken;
  }
  return SegmentResult::done;
}

}  // namespace anydat::nic::soft
