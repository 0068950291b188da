// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace anydat::nic::soft {

// Bytes of a message, wherever its segments are.
struct CopyRange {
  std::uint64_t offset;
  std::uint64_t count;
};

}  // namespace anydat::nic::soft
