// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/adapter.h"
#include "nic/soft/byte_ranges.h"
#include "nic/soft/receive_pool.h"

namespace anydat::nic::soft {

// A message that is arriving, with the buffer it took.
struct Incoming {
  Receive buffer;
  std::uint64_t number = 0;  // among the peer's messages, which count from 1 in the order in which they were sent
  std::uint64_t length = 0;  // as far as it is known
  std::uint64_t placed = 0;  // bytes; they come in order, or `arrived` tells which
  bool solicited = false;
  WorkKind kind = WorkKind::recv;
  std::uint32_t value = 0;    // as in Completion
  bool invalidating = false;  // what it names has been found, and waits for its user
  // Of a Send with Invalidate.
  void invalidate(std::uint32_t key) {
    kind = WorkKind::recv_invalidate;
    value = key;
  }
  // Where segments overtake each other.
  bool end_known = false;
  ByteRanges arrived{};
};

// A part of a message, of a wire whose segments overtake each other.
struct ArrivingSegment {
  std::uint64_t number;  // as in Incoming
  std::uint64_t offset;
  std::span<const std::byte> bytes;
  bool last;  // of its message
  bool solicited;
};
enum class SegmentResult : std::uint8_t {
  done,
  no_buffer,   // for its message, or one before it; nothing of it has been used
  bad_number,  // of a message that is whole already, or one too far ahead
  bad_offset,  // bytes that have come before, or lie behind the message's end
  broken,      // the connection has just been
};

}  // namespace anydat::nic::soft
