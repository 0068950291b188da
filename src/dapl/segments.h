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
    regions_seen_ = regions.removals();
    // One segment is what most posts have, and this is on the way of every message.
    if (count == 1 && rules.max_segments >= 1 && iov && iov->segment_length != 0) [[likely]] {
      const nic::RegionCheck result =
          regions.check(iov->lmr_context, iov->virtual_address, iov->segment_length, rules.zone, rules.rights);
      if (result != nic::RegionCheck::ok) [[unlikely]]
        return bad_segment(rules, 0, *iov, result);
      segments_[0] = {iov->lmr_context, 0, iov->virtual_address, iov->segment_length};
      count_ = 1;
      length_ = iov->segment_length;
      return DAT_SUCCESS;
    }
    return check_any(regions, rules, count, iov);
  }

  std::span<const nic::Segment> span() const { return {segments_, count_}; }
  std::uint64_t length() const { return length_; }
  std::uint64_t regions_seen() const { return regions_seen_; }

 private:
  DAT_RETURN check_any(const nic::RegionTable& regions, SegmentRules rules, DAT_COUNT count,
                       const DAT_LMR_TRIPLET* iov);
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
