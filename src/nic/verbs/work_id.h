// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace anydat::nic::verbs {

// What the device is given with a piece of work and gives back when it is done: whose it is, and which. Completions may
// come after their queue pair has gone, so a queue pair is named by a tag that is not used again soon.
struct WorkId {
  enum class Queue : std::uint8_t { send, recv, shared };  // of shared receives the completion names the queue pair

  Queue queue;
  std::uint32_t tag;   // 30 bits
  std::uint32_t slot;  // of a receive; of a request, the low bits of its number

  std::uint64_t packed() const {
    return std::uint64_t{static_cast<std::uint8_t>(queue)} << 62 | std::uint64_t{tag} << 32 | slot;
  }
  static WorkId unpacked(std::uint64_t word) {
    return {static_cast<Queue>(word >> 62), static_cast<std::uint32_t>(word >> 32) & 0x3fffffff,
            static_cast<std::uint32_t>(word)};
  }
};

// Said with a Send whose sender asks for attention, as immediate data: completions do not tell of it otherwise.
inline constexpr std::uint32_t kSolicited = 0x64617421;

}  // namespace anydat::nic::verbs
