// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/segments.h"

#include "dapl/error.h"

namespace anydat::dapl {

DAT_RETURN CheckedSegments::check(const nic::RegionTable& regions, const SegmentRules& rules, DAT_COUNT count,
                                  const DAT_LMR_TRIPLET* iov) {
  regions_seen_ = regions.removals();
  count_ = 0;
  length_ = 0;
  if (count == 0) return DAT_SUCCESS;
  if (count < 0 || count > rules.max_segments || !iov) return bad_vector(rules, count, iov);
  for (DAT_COUNT i = 0; i < count; ++i) {
    const DAT_LMR_TRIPLET& from = iov[i];
    if (from.segment_length == 0) continue;  // DTO-6
    const nic::RegionCheck result =
        regions.check(from.lmr_context, from.virtual_address, from.segment_length, rules.zone, rules.rights);
    if (result != nic::RegionCheck::ok) return bad_segment(rules, i, from, result);
    if (__builtin_add_overflow(length_, from.segment_length, &length_)) return too_long(rules);
    segments_[count_++] = to_nic(from);
  }
  return DAT_SUCCESS;
}

DAT_RETURN CheckedSegments::bad_vector(const SegmentRules& rules, DAT_COUNT count, const DAT_LMR_TRIPLET* iov) {
  if (count > 0 && !iov) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "{}: num_segments is {}, but local_iov is NULL", rules.call,
                count);
  }
  return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: num_segments {} is not between 0 and {} limit of {}",
              rules.call, count, rules.whose_limit, rules.max_segments);
}

DAT_RETURN CheckedSegments::bad_segment(const SegmentRules& rules, DAT_COUNT index, const DAT_LMR_TRIPLET& segment,
                                        nic::RegionCheck why) {
  switch (why) {
    case nic::RegionCheck::out_of_bounds:
      return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
                  "{}: segment {}, {} bytes at {:#x}, reaches outside the LMR with context {:#x}", rules.call, index,
                  static_cast<std::uint64_t>(segment.segment_length),
                  static_cast<std::uint64_t>(segment.virtual_address), segment.lmr_context);
    case nic::RegionCheck::wrong_zone:
      return fail(
          DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE,
          "{}: segment {} lies in the LMR with context {:#x}, whose protection zone is not zone {} of the queue",
          rules.call, index, segment.lmr_context, rules.zone);
    case nic::RegionCheck::no_right:
      return fail(DAT_PRIVILEGES_VIOLATION,
                  rules.rights == nic::access::kLocalRead ? DAT_PRIVILEGES_READ : DAT_PRIVILEGES_WRITE,
                  "{}: segment {} needs privilege {:#x}, which the LMR with context {:#x} does not have{}", rules.call,
                  index, rules.rights, segment.lmr_context,
                  rules.rights == nic::access::kLocalRead ? rules.no_local_read_hint : "");
    default:
      return fail(DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE,
                  "{}: segment {} names the LMR context {:#x}; no live LMR has it", rules.call, index,
                  segment.lmr_context);
  }
}

DAT_RETURN CheckedSegments::too_long(const SegmentRules& rules) {
  return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "{}: the segment lengths add up to more than 64 bits",
              rules.call);
}

}  // namespace anydat::dapl
