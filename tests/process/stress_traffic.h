// SPDX-License-Identifier: BSD-3-Clause
// What both sides of the stress test derive from the same few numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "payload.h"

namespace anydat::test {

inline constexpr int kStressProcesses = 8;
inline constexpr int kStressEndpoints = 8;  // of each process
inline constexpr std::size_t kStressLongest = 1u << 20;

// One connection, as the client announces it in the private data of its request.
struct StressPlan {
  std::uint64_t seed;
  std::uint32_t process;
  std::uint32_t life;   // which process of that number it is
  std::uint32_t total;  // messages
  std::uint32_t ends_abruptly;

  static StressPlan make(std::uint64_t seed, std::uint32_t process, std::uint32_t life) {
    const std::uint64_t dice = mixed(seed, ~std::uint64_t{0});
    return {.seed = seed,
            .process = process,
            .life = life,
            .total = 1 + static_cast<std::uint32_t>(dice % 60),
            .ends_abruptly = (dice >> 32) % 5 == 0 ? 1u : 0u};
  }

  // Of message `number`: from nothing to 1 MiB, each power of two equally likely.
  std::size_t length(std::uint64_t number) const {
    const std::uint64_t dice = mixed(seed, number | std::uint64_t{1} << 40);
    const std::uint64_t limit = std::uint64_t{1} << (dice & 0xff) % 21;
    return static_cast<std::size_t>(std::min<std::uint64_t>((dice >> 8) % (limit + 1), kStressLongest));
  }
};

}  // namespace anydat::test
