// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include "dapl/error.h"
#include "dapl/types.h"
#include "nic/region_table.h"

namespace anydat::dapl {

inline constexpr Count kSegmentsMax = 64;

// What the local I/O vector of a post must satisfy.
struct SegmentRules {
  const char* call;
  Count max_segments;
  const char* whose_limit;
  nic::ZoneId zone;
  std::uint32_t rights;
  const char* no_local_read_hint = "";  // ends the sentence about a source without LOCAL_READ
};

// One segment, and nothing wrong with it: nearly all posts are so, and their way is short. Any other goes the long one,
// which says what is wrong if something is.
template <typename AnySegment>
inline bool is_plain(const nic::RegionTable& regions, Count count, const AnySegment* iov, nic::ZoneId zone,
                     std::uint32_t rights) {
  return count == 1 && iov && iov->length != 0 &&
         regions.check(iov->key, iov->address, iov->length, zone, rights) == nic::RegionCheck::ok;
}

// Bytes that a program names, which are not where the name says if their region is zero-based (D2-LMR-2). `where`:
// their address. A window is no region to a program that names memory of its own.
nic::RegionCheck locate(const nic::RegionTable& regions, const Segment& named, nic::ZoneId zone, std::uint32_t rights,
                        std::uint64_t& where);

// A consumer's I/O vector, checked (DTO-4 to DTO-11) and in the NIC's terms. The consumer's array may go afterwards.
class CheckedSegments {
 public:
  template <typename AnySegment>
  Error check(const nic::RegionTable& regions, const SegmentRules& rules, Count count, const AnySegment* iov);

  std::span<const Segment> span() const { return {segments_, count_}; }
  std::uint64_t length() const { return length_; }
  std::uint64_t regions_seen() const { return regions_seen_; }

 private:
  [[gnu::noinline]] static Error look_closer(const nic::RegionTable& regions, const SegmentRules& rules, Count index,
                                             Segment& segment);
  static Error bad_vector(const SegmentRules& rules, Count count, bool given);
  static Error bad_segment(const SegmentRules& rules, Count index, const Segment& segment, nic::RegionCheck why);
  static Error too_long(const SegmentRules& rules);

  std::size_t count_;
  std::uint64_t length_;
  std::uint64_t regions_seen_;
  Segment segments_[kSegmentsMax];
};

}  // namespace anydat::dapl
