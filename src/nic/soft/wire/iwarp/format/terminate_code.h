// SPDX-License-Identifier: BSD-3-Clause
// Why a stream was ended, as the three layers of iWARP number their errors: RFC 5040 (section 4.8), RFC 5041
// (section 8.2), RFC 5044 (section 8) and RFC 6581 (section 9).
#pragma once

#include <cstdint>
#include <string_view>

namespace anydat::nic::soft::iwarp {

struct TerminateCode {
  std::uint8_t layer;  // four bits
  std::uint8_t type;   // four bits
  std::uint8_t code;

  friend bool operator==(const TerminateCode&, const TerminateCode&) = default;
};

// Of RDMAP. The first three types of it are: ours alone, the peer may not do that, the peer did it wrongly.
namespace rdmap_error {
inline constexpr TerminateCode kLocalCatastrophic{0, 0, 0x00};
inline constexpr TerminateCode kInvalidStag{0, 1, 0x00};
inline constexpr TerminateCode kBaseOrBounds{0, 1, 0x01};
inline constexpr TerminateCode kAccessRights{0, 1, 0x02};
inline constexpr TerminateCode kStagOfOtherStream{0, 1, 0x03};
inline constexpr TerminateCode kOffsetWraps{0, 1, 0x04};
inline constexpr TerminateCode kCannotInvalidate{0, 1, 0x09};
inline constexpr TerminateCode kProtectionUnspecified{0, 1, 0xff};
inline constexpr TerminateCode kVersion{0, 2, 0x05};
inline constexpr TerminateCode kUnexpectedOpcode{0, 2, 0x06};
inline constexpr TerminateCode kStreamCatastrophic{0, 2, 0x07};
inline constexpr TerminateCode kGlobalCatastrophic{0, 2, 0x08};
inline constexpr TerminateCode kOperationCannotInvalidate{0, 2, 0x09};
inline constexpr TerminateCode kOperationUnspecified{0, 2, 0xff};
}  // namespace rdmap_error

namespace ddp_error {
inline constexpr TerminateCode kLocalCatastrophic{1, 0, 0x00};
inline constexpr TerminateCode kInvalidStag{1, 1, 0x00};
inline constexpr TerminateCode kBaseOrBounds{1, 1, 0x01};
inline constexpr TerminateCode kStagOfOtherStream{1, 1, 0x02};
inline constexpr TerminateCode kOffsetWraps{1, 1, 0x03};
inline constexpr TerminateCode kTaggedVersion{1, 1, 0x04};
inline constexpr TerminateCode kInvalidQueue{1, 2, 0x01};
inline constexpr TerminateCode kNoBuffer{1, 2, 0x02};       // for this message sequence number
inline constexpr TerminateCode kSequenceRange{1, 2, 0x03};  // of message sequence numbers
inline constexpr TerminateCode kInvalidOffset{1, 2, 0x04};  // into the message
inline constexpr TerminateCode kMessageTooLong{1, 2, 0x05};
inline constexpr TerminateCode kUntaggedVersion{1, 2, 0x06};
}  // namespace ddp_error

inline constexpr std::uint8_t kMpaLayer = 2;
namespace mpa_error {
inline constexpr TerminateCode kConnectionLost{2, 0, 0x01};
inline constexpr TerminateCode kCrc{2, 0, 0x02};
inline constexpr TerminateCode kMarker{2, 0, 0x03};  // marker and length field disagree on where a frame starts
inline constexpr TerminateCode kStartUp{2, 0, 0x04};
inline constexpr TerminateCode kLocalCatastrophic{2, 0, 0x05};
inline constexpr TerminateCode kInsufficientIrd{2, 0, 0x06};
inline constexpr TerminateCode kNoMatchingRtr{2, 0, 0x07};
}  // namespace mpa_error

// In words, for logs. Codes that no standard defines have words, too.
std::string_view describe(TerminateCode code);

}  // namespace anydat::nic::soft::iwarp
