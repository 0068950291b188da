// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "nic/types.h"

namespace anydat::nic::soft {

// A part of one segment, or of whatever has an address and a length: where it is, how long, and how much of the segment
// there is from its beginning on.
struct Piece {
  std::uint64_t address, count, room;
  std::byte* bytes() const { return reinterpret_cast<std::byte*>(address); }
};

// Visits the pieces of a message's bytes [offset, offset + count), none of which is empty, in their order. Ends where
// visit(piece) answers false; true: it has come to the end.
template <typename Part, typename Visit>
bool for_each_piece(std::span<const Part> segments, std::uint64_t offset, std::uint64_t count, Visit&& visit) {
  for (const Part& segment : segments) {
    if (count == 0) break;
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const std::uint64_t room = segment.length - offset;
    const Piece piece{segment.address + offset, std::min(count, room), room};
    if constexpr (std::is_void_v<std::invoke_result_t<Visit, const Piece&>>) {
      visit(piece);
    } else if (!visit(piece)) {
      return false;
    }
    count -= piece.count;
    offset = 0;
  }
  return true;
}

// Copies bytes to where a message's bytes from `offset` on are to go. Requires: the segments have room for them.
void scatter(std::span<const Segment> segments, std::uint64_t offset, const std::byte* bytes, std::size_t count);

// The memory where they are to go, as far as `pieces` has room. Returns how many pieces these are.
template <typename Part>
std::size_t pieces_of(std::span<const Part> segments, std::uint64_t offset, std::uint64_t count,
                      std::span<iovec> pieces) {
  std::size_t used = 0;
  for_each_piece(segments, offset, count, [&](const Piece& piece) {
    if (used == pieces.size()) return false;
    pieces[used++] = {piece.bytes(), piece.count};
    return true;
  });
  return used;
}

}  // namespace anydat::nic::soft
