// SPDX-License-Identifier: BSD-3-Clause
// Copies between consumer memory and shared memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "nic/soft/scatter.h"
#include "nic/types.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace anydat::nic::soft::shm {

// Calls sink(bytes, count) for the parts of `segments` that make up [offset, offset + count) of the message.
template <typename Sink>
void gather(std::span<const nic::Segment> segments, std::uint64_t offset, std::uint64_t count, Sink&& sink) {
  if (segments.size() == 1) [[likely]] {
    if (count > 0) {
      sink(reinterpret_cast<const std::byte*>(segments[0].address + offset), static_cast<std::size_t>(count));
    }
    return;
  }
  for_each_piece(segments, offset, count,
                 [&](const Piece& piece) { sink(static_cast<const std::byte*>(piece.bytes()), piece.count); });
}

// Copies past the caches: the bytes are for another processor, and would only push out what this one needs. `to` is
// best aligned to 16. Requires a release store afterwards that is preceded by streamed_stores_done().
inline void copy_streaming(std::byte* to, const std::byte* from, std::size_t count) {
#if defined(__SSE2__)
  const std::size_t lead = std::min<std::size_t>(count, (16 - reinterpret_cast<std::uintptr_t>(to) % 16) % 16);
  std::memcpy(to, from, lead);
  to += lead, from += lead, count -= lead;
  for (; count >= 64; to += 64, from += 64, count -= 64) {
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* target = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
#endif
  std::memcpy(to, from, count);
}

// Non-temporal stores are not ordered by a release store; this orders them before it.
inline void streamed_stores_done() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

inline void gather_streaming(std::byte* to, std::span<const nic::Segment> segments, std::uint64_t offset,
                             std::uint64_t count) {
  gather(segments, offset, count, [&](const std::byte* from, std::size_t part) {
    copy_streaming(to, from, part);
    to += part;
  });
  streamed_stores_done();
}

}  // namespace anydat::nic::soft::shm
