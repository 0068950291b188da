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
};

// A consumer's I/O vector, checked (DTO-4 to DTO-11) and in the NIC's terms. The consumer's array may go afterwards.
class CheckedSegments {
 public:
  DAT_RETURN check(const nic::RegionTable& regions, const SegmentRules& rules, DAT_COUNT count,
                   const DAT_LMR_TRIPLET* iov) {
    count_ = 0;
    length_ = 0;
    regions_seen_ = regions.removals();
    if (count == 0) return DAT_SUCCESS;
    if (count < 0 || count > rules.max_segments || !iov) [[unlikely]]
      return bad_vector(rules, count, iov);
    std::size_t taken = 0;
    std::uint64_t length = 0;
    for (DAT_COUNT i = 0; i < count; ++i) {
      const DAT_LMR_TRIPLET& from = iov[i];
      if (from.segment_length == 0) continue;  // DTO-6
      const nic::RegionCheck result =
          regions.check(from.lmr_context, from.virtual_address, from.segment_length, rules.zone, rules.rights);
      if (result != nic::RegionCheck::ok) [[unlikely]]
        return bad_segment(rules, i, from, result);
      if (__builtin_add_overflow(length, from.segment_length, &length)) [[unlikely]]
        return too_long(rules);
      segments_[taken++] = {from.lmr_context, 0, from.virtual_address, from.segment_length};
    }
    count_ = taken;
    length_ = length;
    return DAT_SUCCESS;
  }

  std::span<const nic::Segment> span() const { return {segments_, count_}; }
  std::uint64_t length() const { return length_; }
  std::uint64_t regions_seen() const { return regions_seen_; }

 private:
  // By value, so that rules which are kept have no need to be in memory.
  static DAT_RETURN bad_vector(SegmentRules rules, DAT_COUNT count, const DAT_LMR_TRIPLET* iov);
  static DAT_RETURN bad_segment(SegmentRules rules, DAT_COUNT index, const DAT_LMR_TRIPLET& segment,
                                nic::RegionCheck why);
  static DAT_RETURN too_long(SegmentRules rules);

  std::size_t count_;
  std::uint64_t length_;
  std::uint64_t regions_seen_;
  nic::Segment segments_[kSegmentsMax];
};

}  // namespace anydat::dapl
