// SPDX-License-Identifier: BSD-3-Clause
// What is in a message, so that both sides have real work: the sender writes into each, the receiver reads from each.
//
// A message begins with its sequence number (as many low bytes of it as fit) and, from 9 bytes on, ends with a mark.
// The receiver adds up the numbers and looks at every mark. The sum of a run is known beforehand, so a message that
// was lost, repeated or torn at either end shows.
#ifndef ANYDAT_TOOLS_DATPERF_MESSAGE_H
#define ANYDAT_TOOLS_DATPERF_MESSAGE_H

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace datperf {

inline constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 30;
inline constexpr std::uint32_t kEndpointsMax = 65536;
inline constexpr std::uint32_t kAtOnceMax = 64;
inline constexpr std::uint32_t kWindowMax = 4096;  // and of what a batch may be
inline constexpr std::uint32_t kSlotsMax = 16384;
inline constexpr std::uint64_t kItersMax = 1'000'000'000'000;  // of a phase that is announced
inline constexpr std::byte kMark{0x5a};

inline void stamp(std::byte* message, std::uint64_t size, std::uint64_t sequence) {
  if (size >= sizeof sequence) [[likely]] {
    std::memcpy(message, &sequence, sizeof sequence);
  } else {
    for (std::uint64_t i = 0; i < size; ++i) message[i] = static_cast<std::byte>(sequence >> (8 * i));
  }
  if (size > sizeof sequence) message[size - 1] = kMark;
}

// The part of a sequence number that a message of this size carries.
inline std::uint64_t carried(std::uint64_t size, std::uint64_t sequence) {
  return size >= sizeof sequence ? sequence : sequence & ((std::uint64_t{1} << (8 * size)) - 1);
}

// Reads what others may be writing just then, as they may because the user wants it so (alike()), or what the next
// message is written over once the peer has the answer, an order that goes through another process: the thread
// sanitizer shall not see it.
#if defined(__SANITIZE_THREAD__)
#define ANYDAT_DATPERF_UNSEEN [[gnu::no_sanitize_thread]]
#else
#define ANYDAT_DATPERF_UNSEEN
#endif

struct Tally {
  std::uint64_t sum = 0;  // of the sequence numbers
  std::uint64_t bad = 0;  // marks that were not there

  // Reads both ends of the message; returns its sequence number as carried.
  std::uint64_t read(const std::byte* message, std::uint64_t size) {
    std::uint64_t sequence = 0;
    if (size >= sizeof sequence) [[likely]] {
      std::memcpy(&sequence, message, sizeof sequence);
    } else {
      for (std::uint64_t i = 0; i < size; ++i) sequence |= std::to_integer<std::uint64_t>(message[i]) << (8 * i);
    }
    if (size > sizeof sequence) bad += message[size - 1] != kMark;
    sum += sequence;
    return sequence;
  }

  // The same, where the next one may be arriving in its place.
  ANYDAT_DATPERF_UNSEEN std::uint64_t read_alike(const std::byte* message, std::uint64_t size) {
    std::uint64_t sequence = 0;
    for (std::uint64_t i = 0; i < size && i < sizeof sequence; ++i) {
      sequence |= std::to_integer<std::uint64_t>(message[i]) << (8 * i);
    }
    if (size > sizeof sequence) bad += message[size - 1] != kMark;
    sum += sequence;
    return sequence;
  }
};

// What the tally of messages 0 .. count-1 must be. Slow on purpose-built sizes below 8, so not for the measured part.
inline std::uint64_t expected_sum(std::uint64_t size, std::uint64_t count) {
  if (size >= 8) return count % 2 == 0 ? count / 2 * (count - 1) : (count - 1) / 2 * count;
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum += carried(size, i);
  return sum;
}

// RDMA fills a slot without telling its owner, so there each message ends with a byte that changes from one to the next
// on its connection, of which it is the `turn`-th, and is never 0. Bytes appear in ascending order: a reader that sees
// the last one sees them all.
inline std::byte tail_of(std::uint64_t turn) {
  return static_cast<std::byte>(1 + turn % 255);
}

// A message of one word is written and read as one, as programs do with a flag or a counter: a byte written on its own
// into a word that is read right afterwards would hold up the processor.
inline constexpr int kTailInWord = std::endian::native == std::endian::little ? 56 : 0;  // in bits

inline std::uint64_t word_of(std::uint64_t sequence, std::uint64_t turn) {
  return (sequence & ~(std::uint64_t{0xff} << kTailInWord)) | std::to_integer<std::uint64_t>(tail_of(turn))
                                                                  << kTailInWord;
}
inline std::byte tail_of_word(std::uint64_t word) {
  return static_cast<std::byte>(word >> kTailInWord);
}

inline void stamp_slot(std::byte* slot, std::uint64_t size, std::uint64_t sequence, std::uint64_t turn) {
  if (size == sizeof sequence) {
    stamp(slot, size, word_of(sequence, turn));
    return;
  }
  stamp(slot, size, sequence);
  slot[size - 1] = tail_of(turn);
}

inline bool slot_holds(const std::byte* slot, std::uint64_t size, std::uint64_t sequence, std::uint64_t turn) {
  if (size == sizeof sequence) {
    const std::uint64_t word = word_of(sequence, turn);
    return std::memcmp(slot, &word, sizeof word) == 0;
  }
  const std::uint64_t head_bytes = size - 1 < sizeof sequence ? size - 1 : sizeof sequence;
  return std::memcmp(slot, &sequence, head_bytes) == 0 && slot[size - 1] == tail_of(turn);
}

// Makes sure that what is found in the slot later was put there later.
inline void clear_slot(std::byte* slot, std::uint64_t size) {
  const std::uint64_t none = ~std::uint64_t{0};
  std::memcpy(slot, &none, size < sizeof none ? size : sizeof none);
  slot[size - 1] = std::byte{0};
}

// The number that messages carry which are all alike: see alike().
inline constexpr std::uint64_t kAlike = 0x616c696b65;

// What the sides send each other between phases (set-up, warm-up, measurement): a message of its own.
struct Report {
  std::uint64_t magic = kMagic;
  char wire[11] = {};             // what carries the connections at the server; not ended by 0 if it is as long
  std::uint8_t failed = 0;        // 1: what arrived was not what was sent
  std::uint32_t rmr_context = 0;  // RDMA, at set-up: the memory that the other side may use, in slots
  std::uint64_t target_address = 0;
  std::uint64_t cpu_ns = 0;       // processor time the server used in the phase
  std::uint64_t elapsed_ns = 0;   // how long the phase took, as the server saw it
  std::uint64_t messages = 0;     // from the server: that it has looked at; from the client: of the next phase
  std::uint32_t private_kib = 0;  // by how much memory has grown at set-up (Footprint), with several clients
  std::uint32_t system_kib = 0;

  static constexpr std::uint64_t kMagic = 0x646174706572665f;
};
static_assert(sizeof(Report) == 64, "fits the smallest buffer a side posts");

}  // namespace datperf

#endif
