// SPDX-License-Identifier: BSD-3-Clause
// What members of the C structures are made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "face/dat.h"

namespace anydat::face {

// A size that has fewer bits in this version: the largest there is stands for all above it (D2-TYPE-4).
template <typename Size>
void put(Size& to, std::uint64_t from) {
  to = static_cast<Size>(std::min<std::uint64_t>(from, std::numeric_limits<Size>::max()));
}

inline DAT_IA_ADDRESS_PTR address(const sockaddr* from) {
  return const_cast<DAT_IA_ADDRESS_PTR>(from);
}

}  // namespace anydat::face
