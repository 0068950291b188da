// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/copy.h"

#include "base/computed.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace anydat::nic::soft {

#if defined(__x86_64__)
namespace {

constexpr std::size_t kWideCopyFrom = 1024;

enum class Vectors : std::uint8_t { unknown, of_16_bytes, of_32_bytes, of_64_bytes };

Vectors widest_vectors() {
  // The first processors with vectors of 64 bytes slow down for long when they use them; those that have BITALG do not.
  static constinit base::Computed<Vectors, Vectors::unknown> answer;
  return answer.get([] {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bitalg")) return Vectors::of_64_bytes;
    return __builtin_cpu_supports("avx") ? Vectors::of_32_bytes : Vectors::of_16_bytes;
  });
}

enum class FastStrings : std::uint8_t { unknown, no, yes };

bool has_fast_strings() {
  static constinit base::Computed<FastStrings, FastStrings::unknown> answer;
  return answer.get([] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kEnhancedRepMovsb = 1u << 9;
    const bool has = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kEnhancedRepMovsb) != 0;
    return has ? FastStrings::yes : FastStrings::no;
  }) == FastStrings::yes;
}

// These two: a multiple of 256 bytes, in ascending order. Prefetching the target gains on some machines what it
// loses on others.
__attribute__((target("avx"))) void copy_ascending_by_32(std::byte* to, const std::byte* from, std::size_t count) {
  for (const std::byte* const end = from + count; from != end; to += 128, from += 128) {
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

__attribute__((target("avx512f"))) void copy_ascending_by_64(std::byte* to, const std::byte* from, std::size_t count) {
  for (const std::byte* const end = from + count; from != end; to += 256, from += 256) {
    const __m512i a = _mm512_loadu_si512(from);
    const __m512i b = _mm512_loadu_si512(from + 64);
    const __m512i c = _mm512_loadu_si512(from + 128);
    const __m512i d = _mm512_loadu_si512(from + 192);
    _mm512_storeu_si512(to, a);
    asm volatile("" ::: "memory");
    _mm512_storeu_si512(to + 64, b);
    asm volatile("" ::: "memory");
    _mm512_storeu_si512(to + 128, c);
    asm volatile("" ::: "memory");
    _mm512_storeu_si512(to + 192, d);
    asm volatile("" ::: "memory");
  }
}

}  // namespace
#endif

std::size_t copy_ascending_wide(std::byte* to, const std::byte* from, std::size_t count) {
  const std::byte* const begin = from;
#if defined(__x86_64__)
  if (count >= kWideCopyFrom && widest_vectors() != Vectors::of_16_bytes) {
    const std::size_t wide = count / 256 * 256;
    if (widest_vectors() == Vectors::of_64_bytes) {
      copy_ascending_by_64(to, from, wide);
    } else {
      copy_ascending_by_32(to, from, wide);
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

bool copy_by_string_instruction([[maybe_unused]] std::byte* to, [[maybe_unused]] const std::byte* from,
                                [[maybe_unused]] std::size_t count) {
#if defined(__x86_64__)
  if (!has_fast_strings()) return false;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
  return true;
#else
  return false;
#endif
}

}  // namespace anydat::nic::soft
