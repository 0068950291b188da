// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/segments.h"

#include "dapl/error.h"

namespace anydat::dapl {

nic::RegionCheck locate(const nic::RegionTable& regions, const Segment& named, nic::ZoneId zone, std::uint32_t rights,
                        std::uint64_t& where) {
  const std::optional<nic::Region> region = regions.find(named.key);
  if (!region) return nic::RegionCheck::unknown_key;
  if ((region->rights & nic::access::kWindow) != 0) return nic::RegionCheck::no_right;
  return region->resolve(named.address, named.length, zone, rights, where);
}

template <typename AnySegment>
Error CheckedSegments::check(const nic::RegionTable& regions, const SegmentRules& rules, Count count,
                             const AnySegment* iov) {
  regions_seen_ = regions.removals();
  count_ = 0;
  length_ = 0;
  if (count == 0) return kSuccess;
  if (count < 0 || count > rules.max_segments || !iov) return bad_vector(rules, count, iov != nullptr);
  Segment* to = segments_;
  std::uint64_t length = 0;
  for (Count i = 0; i < count; ++i) {
    *to = whole(iov[i]);
    if (to->length == 0) continue;  // DTO-6
    if (regions.check(to->key, to->address, to->length, rules.zone, rules.rights) != nic::RegionCheck::ok)
        [[unlikely]] {
      if (const Error error = look_closer(regions, rules, i, *to)) return error;
    }
    if (__builtin_add_overflow(length, to->length, &length)) return too_long(rules);
    ++to;
  }
  count_ = static_cast<std::size_t>(to - segments_);
  length_ = length;
  return kSuccess;
}
template Error CheckedSegments::check(const nic::RegionTable&, const SegmentRules&, Count, const Segment*);
template Error CheckedSegments::check(const nic::RegionTable&, const SegmentRules&, Count, const PackedSegment*);

// It lies in a zero-based region, and is put where that is; or it is refused.
Error CheckedSegments::look_closer(const nic::RegionTable& regions, const SegmentRules& rules, Count index,
                                   Segment& segment) {
  const Segment named = segment;
  const nic::RegionCheck result = locate(regions, named, rules.zone, rules.rights, segment.address);
  return result == nic::RegionCheck::ok ? kSuccess : bad_segment(rules, index, named, result);
}

Error CheckedSegments::bad_vector(const SegmentRules& rules, Count count, bool given) {
  if (count > 0 && !given) {
    return fail(Argument::local_iov, "{}: num_segments is {}, but local_iov is NULL", rules.call, count);
  }
  return fail(Argument::num_segments, "{}: num_segments {} is not between 0 and {} limit of {}", rules.call, count,
              rules.whose_limit, rules.max_segments);
}

Error CheckedSegments::bad_segment(const SegmentRules& rules, Count index, const Segment& segment,
                                   nic::RegionCheck why) {
  switch (why) {
    case nic::RegionCheck::out_of_bounds:
      return fail(Argument::local_iov, "{}: segment {}, {} bytes at {:#x}, reaches outside the LMR with context {:#x}",
                  rules.call, index, segment.length, segment.address, segment.key);
    case nic::RegionCheck::wrong_zone:
      return fail(
          Code::protection_violation, Detail::none,
          "{}: segment {} lies in the LMR with context {:#x}, whose protection zone is not zone {} of the queue",
          rules.call, index, segment.key, rules.zone);
    case nic::RegionCheck::no_right:
      return fail(Code::privileges_violation,
                  rules.rights == nic::access::kLocalRead ? Detail::privileges_read : Detail::privileges_write,
                  "{}: segment {} needs privilege {:#x}, which the LMR with context {:#x} does not have{}", rules.call,
                  index, rules.rights, segment.key,
                  rules.rights == nic::access::kLocalRead ? rules.no_local_read_hint : "");
    default:
      return fail(Code::privileges_violation, Detail::none,
                  "{}: segment {} names the LMR context {:#x}; no live LMR has it", rules.call, index, segment.key);
  }
}

Error CheckedSegments::too_long(const SegmentRules& rules) {
  return fail(Argument::local_iov, "{}: the segment lengths add up to more than 64 bits", rules.call);
}

}  // namespace anydat::dapl
