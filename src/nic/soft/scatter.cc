// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/scatter.h"

#include <algorithm>
#include <cstring>

namespace anydat::nic::soft {

void scatter(std::span<const Segment> segments, std::uint64_t offset, const std::byte* bytes, std::size_t count) {
  for (const Segment& segment : segments) {
    if (count == 0) return;
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const std::size_t part = std::min<std::uint64_t>(count, segment.length - offset);
    std::memcpy(reinterpret_cast<std::byte*>(segment.address + offset), bytes, part);
    bytes += part;
    count -= part;
    offset = 0;
  }
}

std::size_t pieces_of(std::span<const Segment> segments, std::uint64_t offset, std::size_t count,
                      std::span<iovec> pieces) {
  std::size_t used = 0;
  for (const Segment& segment : segments) {
    if (count == 0 || used == pieces.size()) break;
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const std::size_t part = std::min<std::uint64_t>(count, segment.length - offset);
    pieces[used++] = {reinterpret_cast<void*>(segment.address + offset), part};
    count -= part;
    offset = 0;
  }
  return used;
}

}  // namespace anydat::nic::soft
