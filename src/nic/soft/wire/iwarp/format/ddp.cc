// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/format/ddp.h"

#include <cassert>

#include "base/big_endian.h"

namespace anydat::nic::soft::iwarp {
namespace {

// First byte: tagged, last, four bits that are not looked at, the version of DDP.
constexpr std::byte kTagged{0x80};
constexpr std::byte kLast{0x40};
constexpr std::byte kDdpVersionMask{0x03};
constexpr std::byte kDdpVersion{0x01};
// Second byte: the version of RDMAP, two bits that are not looked at, the opcode.
constexpr std::byte kRdmapVersionMask{0xc0};
constexpr std::byte kRdmapVersion{0x40};
constexpr std::byte kOpcodeMask{0x0f};

constexpr std::size_t kStagAt = 2;
constexpr std::size_t kTaggedOffsetAt = 6;
constexpr std::size_t kQueueAt = 6;
constexpr std::size_t kSequenceAt = 10;
constexpr std::size_t kOffsetAt = 14;

}  // namespace

std::optional<TerminateCode> parse_segment_header(std::span<const std::byte> segment, SegmentHeader& header) {
  // No layer has a code for a segment that ends within its header; it is an operation done wrongly.
  if (segment.empty() || segment.size() < segment_header_bytes(segment[0])) return rdmap_error::kOperationUnspecified;

  // DDP looks at what is its own before it passes the segment up (RFC 5041, sections 7.1 and 8.2).
  const bool tagged = (segment[0] & kTagged) != std::byte{0};
  if ((segment[0] & kDdpVersionMask) != kDdpVersion) {
    return tagged ? ddp_error::kTaggedVersion : ddp_error::kUntaggedVersion;
  }
  const std::byte* at = segment.data();
  const std::uint32_t queue = tagged ? 0 : base::load_big<std::uint32_t>(at + kQueueAt);
  // The last queue is there for its one operation only: RFC 5040 does not have it.
  const auto opcode = static_cast<Opcode>(segment[1] & kOpcodeMask);
  const bool of_last = opcode == Opcode::atomic_response && (segment[1] & kRdmapVersionMask) == kRdmapVersion;
  if (queue >= kQueueCount || (queue == kQueueCount - 1 && !of_last)) return ddp_error::kInvalidQueue;

  if ((segment[1] & kRdmapVersionMask) != kRdmapVersion) return rdmap_error::kVersion;
  // An operation is unexpected, too, where it does not belong (RFC 5040, section 4.1, figure 4).
  if (opcode > Opcode::atomic_response || is_tagged(opcode) != tagged) return rdmap_error::kUnexpectedOpcode;
  if (!tagged && queue_of(opcode) != queue) return rdmap_error::kUnexpectedOpcode;

  header = SegmentHeader{.opcode = opcode, .last = (segment[0] & kLast) != std::byte{0}};
  if (tagged) {
    header.stag = base::load_big<std::uint32_t>(at + kStagAt);
    header.tagged_offset = base::load_big<std::uint64_t>(at + kTaggedOffsetAt);
  } else {
    if (invalidates(opcode)) header.stag = base::load_big<std::uint32_t>(at + kStagAt);
    header.sequence = base::load_big<std::uint32_t>(at + kSequenceAt);
    header.offset = base::load_big<std::uint32_t>(at + kOffsetAt);
  }
  return std::nullopt;
}

std::size_t write_segment_header(const SegmentHeader& header, std::span<std::byte> to) {
  const bool tagged = is_tagged(header.opcode);
  assert(to.size() >= segment_header_bytes(header.opcode));
  to[0] = (tagged ? kTagged : std::byte{0}) | (header.last ? kLast : std::byte{0}) | kDdpVersion;
  to[1] = kRdmapVersion | static_cast<std::byte>(header.opcode);
  std::byte* at = to.data();
  base::store_big(at + kStagAt, header.stag);
  if (tagged) {
    base::store_big(at + kTaggedOffsetAt, header.tagged_offset);
  } else {
    base::store_big(at + kQueueAt, queue_of(header.opcode));
    base::store_big(at + kSequenceAt, header.sequence);
    base::store_big(at + kOffsetAt, header.offset);
  }
  return segment_header_bytes(header.opcode);
}

}  // namespace anydat::nic::soft::iwarp
