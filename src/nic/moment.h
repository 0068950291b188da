// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace anydat::nic {

// A time of Engine::ticks() in units of a third of a millisecond or so, for what is remembered for some milliseconds.
// It comes round after a minute or more.
constexpr int kMomentBits = 18;
constexpr std::uint64_t kMomentMask = (std::uint64_t{1} << kMomentBits) - 1;
constexpr std::uint64_t moment_of(std::uint64_t ticks) {
  return ticks >> 20 & kMomentMask;
}
constexpr std::uint64_t kNoMoment = std::uint64_t{1} << 31;  // what is no time

}  // namespace anydat::nic
