// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <dat/udat.h>

#include <span>

#include "nic/region_table.h"
#include "nic/types.h"

namespace anydat::dapl {

inline constexpr DAT_COUNT kSegmentsMax = 64;

// What the local I/O vector of a post must satisfy.
struct SegmentRules {
  const char* call;
  DAT_COUNT max_segments;
  const char* whose_limit;
  nic::ZoneId zone;
  std::uint32_t rights;
  const char* no_local_read_hint = "";  // ends the sentence about a source without LOCAL_READ
};

inline nic::Segment to_nic(const DAT_LMR_TRIPLET& segment) {
  return {segment.lmr_context, 0, segment.virtual_address, segment.segment_length};
}

// One segment, and nothing wrong with it: nearly all posts are so, and their way is short. Any other goes the long one,
// which says what is wrong if something is.
inline bool is_plain(const nic::RegionTable& regions, DAT_COUNT count, const DAT_LMR_TRIPLET* iov, nic::ZoneId zone,
                     std::uint32_t rights) {
  return count == 1 && iov && iov->segment_length != 0 &&
         regions.check(iov->lmr_context, iov->virtual_address, iov->segment_length, zone, rights) ==
             nic::RegionCheck::ok;
}

// A consumer's I/O vector, checked (DTO-4 to DTO-11) and in the NIC's terms. The consumer's array may go afterwards.
class CheckedSegments {
 public:
  DAT_RETURN check(const nic::RegionTable& regions, const SegmentRules& rules, DAT_COUNT count,
                   const DAT_LMR_TRIPLET* iov);

  std::span<const nic::Segment> span() const { return {segments_, count_}; }
  std::uint64_t length() const { return length_; }
  std::uint64_t regions_seen() const { return regions_seen_; }

 private:
  static DAT_RETURN bad_vector(const SegmentRules& rules, DAT_COUNT count, const DAT_LMR_TRIPLET* iov);
  static DAT_RETURN bad_segment(const SegmentRules& rules, DAT_COUNT index, const DAT_LMR_TRIPLET& segment,
                                nic::RegionCheck why);
  static DAT_RETURN too_long(const SegmentRules& rules);

  std::size_t count_;
  std::uint64_t length_;
  std::uint64_t regions_seen_;
  nic::Segment segments_[kSegmentsMax];
};

}  // namespace anydat::dapl
