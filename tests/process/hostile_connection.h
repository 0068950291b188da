// SPDX-License-Identifier: BSD-3-Clause
// Links and connections of hostile peers that have been made as they should be.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "hostile_attacks.h"

namespace anydat::test {

inline constexpr std::uint32_t kOwnName = 77;

inline RawPeer linked(HostileTarget& target) {
  RawPeer peer(target.service());
  if (!peer.shake_hands()) {
    throw std::runtime_error("a correct handshake was refused");
  }
  return peer;
}

struct Connected {
  RawPeer peer;
  std::uint32_t name;  // the target's, for its end
};

inline Connected connected(HostileTarget& target) {
  Connected result{.peer = linked(target), .name = 0};
  result.name = result.peer.connect(target.qualifier(), kOwnName, {});
  if (result.name == 0) {
    throw std::runtime_error("a correct request was not accepted");
  }
  return result;
}

// Sends cells that cannot be meant well, and expects to be cut off.
inline void expect_cut_for(RawPeer& peer, const RawCell& cell) {
  peer.put(cell);
  peer.ring();
  EXPECT_TRUE(peer.cut()) << "kind " << static_cast<int>(cell.kind);
}

inline std::uint64_t odd_number(Random& random) {
  static constexpr std::array<std::uint64_t, 9> kOdd{0,
                                                     1,
                                                     63,
                                                     shm::kInlineBytesMax,
                                                     shm::kInlineBytesMax + 1,
                                                     shm::kBulkBytes,
                                                     std::numeric_limits<std::uint32_t>::max(),
                                                     std::uint64_t{1} << 63,
                                                     std::numeric_limits<std::uint64_t>::max()};
  return random.chance(3) ? random.number() : kOdd[random.below(kOdd.size())];
}

}  // namespace anydat::test
