// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/types.h"

namespace anydat::nic::soft {

// Copies bytes to where a message's bytes from `offset` on are to go. Requires: the segments have room for them.
void scatter(std::span<const Segment> segments, std::uint64_t offset, const std::byte* bytes, std::size_t count);

// The memory where they are to go, as far as `pieces` has room. Returns how many pieces these are.
std::size_t pieces_of(std::span<const Segment> segments, std::uint64_t offset, std::size_t count,
                      std::span<iovec> pieces);

}  // namespace anydat::nic::soft
