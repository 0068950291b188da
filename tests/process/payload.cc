// SPDX-License-Identifier: BSD-3-Clause
#include "payload.h"

#include <algorithm>
#include <cstring>

namespace anydat::test {
namespace {

// Calls use(offset, word, count) for each 8 bytes of the message, the last time perhaps for fewer. Stops at false.
template <typename Use>
bool for_each_word(std::size_t length, std::uint64_t seed, std::uint64_t number, Use&& use) {
  std::uint64_t word = mixed(seed, number);
  for (std::size_t offset = 0; offset < length; offset += sizeof word) {
    if (!use(offset, word, std::min(sizeof word, length - offset))) {
      return false;
    }
    word = word * 6364136223846793005u + 1442695040888963407u;
  }
  return true;
}

}  // namespace

std::uint64_t mixed(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15u + number * 0xd1342543de82ef95u + 0x2545f4914f6cdd1du;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void fill_message(std::span<std::byte> memory, std::uint64_t seed, std::uint64_t number) {
  for_each_word(memory.size(), seed, number, [&](std::size_t offset, std::uint64_t word, std::size_t count) {
    std::memcpy(memory.data() + offset, &word, count);
    return true;
  });
}

bool is_message(std::span<const std::byte> memory, std::uint64_t seed, std::uint64_t number) {
  return for_each_word(memory.size(), seed, number, [&](std::size_t offset, std::uint64_t word, std::size_t count) {
    return std::memcmp(memory.data() + offset, &word, count) == 0;
  });
}

}  // namespace anydat::test
