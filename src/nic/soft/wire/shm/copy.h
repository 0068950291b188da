// SPDX-License-Identifier: BSD-3-Clause
// Copies between consumer memory and shared memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "nic/types.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__SSE2__)
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
  for (const nic::Segment& segment : segments) {
    if (count == 0) return;
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const std::uint64_t part = std::min(count, segment.length - offset);
    sink(reinterpret_cast<const std::byte*>(segment.address + offset), static_cast<std::size_t>(part));
    count -= part;
    offset = 0;
  }
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

#if defined(__x86_64__)
inline constexpr std::size_t kWideCopyFrom = 1024;

inline bool has_avx() {
  static const bool answer = __builtin_cpu_supports("avx") != 0;
  return answer;
}

// From here on neither memory is likely to be in the caches that are near, and the stores are what is waited for.
inline constexpr std::size_t kFetchTargetFrom = 256 << 10;
inline constexpr std::size_t kFetchedAhead = 1024;

// A multiple of 128 bytes, as copy_ascending() does.
template <bool fetch_target>
__attribute__((target("avx"))) inline void copy_ascending_avx(std::byte* to, const std::byte* from, std::size_t count) {
  for (const std::byte* const end = from + count; from != end; to += 128, from += 128) {
    if (fetch_target) {
      __builtin_prefetch(to + kFetchedAhead, 1);
      __builtin_prefetch(to + kFetchedAhead + 64, 1);
    }
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32));
    const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 64));
    const __m256i d = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 96));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a);
    asm volatile("" ::: "memory");
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), b);
    asm volatile("" ::: "memory");
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 64), c);
    asm volatile("" ::: "memory");
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 96), d);
    asm volatile("" ::: "memory");
  }
}
#endif

// The part of copy_ascending() in pieces of 64 bytes and more. Returns how many bytes it has copied.
inline std::size_t copy_ascending_wide(std::byte* to, const std::byte* from, std::size_t count) {
  const std::byte* const begin = from;
#if defined(__x86_64__)
  if (count >= kWideCopyFrom && has_avx()) {
    const std::size_t wide = count / 128 * 128;
    if (count >= kFetchTargetFrom) {
      copy_ascending_avx<true>(to, from, wide);
    } else {
      copy_ascending_avx<false>(to, from, wide);
    }
    to += wide, from += wide, count -= wide;
  }
#endif
#if defined(__SSE2__)
  // This processor makes stores visible in the order of the program; the compiler is told to keep it, too.
  for (; count >= 64; to += 64, from += 64, count -= 64) {
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* target = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_storeu_si128(target, a);
    asm volatile("" ::: "memory");
    _mm_storeu_si128(target + 1, b);
    asm volatile("" ::: "memory");
    _mm_storeu_si128(target + 2, c);
    asm volatile("" ::: "memory");
    _mm_storeu_si128(target + 3, d);
    asm volatile("" ::: "memory");
  }
#endif
  return static_cast<std::size_t>(from - begin);
}

// Copies so that the bytes become visible in ascending order, the last one last (RDW-11), and aligned words of 8 bytes
// whole: who polls the end of a buffer, or a counter in it, must not be misled.
inline void copy_ascending(std::byte* to, const std::byte* from, std::size_t count) {
  if (count >= 64) {
    const std::size_t copied = copy_ascending_wide(to, from, count);
    to += copied, from += copied, count -= copied;
  }
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, from + i, sizeof word);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(to + i), word, __ATOMIC_RELEASE);
  }
  for (; i < count; ++i) {
    __atomic_store_n(reinterpret_cast<std::uint8_t*>(to + i), static_cast<std::uint8_t>(from[i]), __ATOMIC_RELEASE);
  }
}

}  // namespace anydat::nic::soft::shm
