// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace anydat::nic::soft {

// Which bytes of a message have come, where they come in any order.
class ByteRanges {
 public:
  // Stretches that do not touch each other; a peer that makes more of them is not served.
  static constexpr std::size_t kStretchesMax = 1024;

  // [begin, end) has come. False if some of it had come before, or there are too many stretches; nothing has changed
  // then. Of length 0 it changes nothing.
  bool add(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return true;
    const auto next = std::upper_bound(stretches_.begin(), stretches_.end(), begin,
                                       [](std::uint64_t at, const Stretch& stretch) { return at < stretch.begin; });
    const bool has_previous = next != stretches_.begin();
    const bool has_next = next != stretches_.end();
    if (has_previous && std::prev(next)->end > begin) return false;
    if (has_next && next->begin < end) return false;
    const bool joins_previous = has_previous && std::prev(next)->end == begin;
    const bool joins_next = has_next && next->begin == end;
    if (joins_previous && joins_next) {
      std::prev(next)->end = next->end;
      stretches_.erase(next);
    } else if (joins_previous) {
      std::prev(next)->end = end;
    } else if (joins_next) {
      next->begin = begin;
    } else {
      if (stretches_.size() == kStretchesMax) return false;
      stretches_.insert(next, {begin, end});
    }
    return true;
  }

  void clear() { stretches_.clear(); }
  std::size_t stretch_count() const { return stretches_.size(); }

 private:
  struct Stretch {
    std::uint64_t begin;
    std::uint64_t end;
  };
  std::vector<Stretch> stretches_;  // in order; between any two of them something is missing
};

}  // namespace anydat::nic::soft
