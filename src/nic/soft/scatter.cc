// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/scatter.h"

#include <cstring>

namespace anydat::nic::soft {

void scatter(std::span<const Segment> segments, std::uint64_t offset, const std::byte* bytes, std::size_t count) {
  for_each_piece(segments, offset, count, [&](const Piece& piece) {
    std::memcpy(piece.bytes(), bytes, piece.count);
    bytes += piece.count;
  });
}

}  // namespace anydat::nic::soft
