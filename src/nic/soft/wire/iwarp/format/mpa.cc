// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/format/mpa.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string_view>

#include "base/big_endian.h"

namespace anydat::nic::soft::iwarp {
namespace {

// Sixteen bytes that no other protocol begins with (RFC 5044, section 7.1.1).
constexpr std::string_view kRequestKey = "MPA ID Req Frame";
constexpr std::string_view kReplyKey = "MPA ID Rep Frame";
constexpr std::size_t kKeyBytes = 16;
static_assert(kRequestKey.size() == kKeyBytes && kReplyKey.size() == kKeyBytes);

constexpr std::size_t kFlagsAt = kKeyBytes;
constexpr std::size_t kRevisionAt = kKeyBytes + 1;
constexpr std::size_t kLengthAt = kKeyBytes + 2;

constexpr std::byte kMarkers{0x80};
constexpr std::byte kCrc{0x40};
constexpr std::byte kRejected{0x20};
constexpr std::byte kEnhanced{0x10};

// The two high bits of the words that hold IRD and ORD.
constexpr std::uint16_t kPeerToPeer = 0x8000;
constexpr std::uint16_t kRtrEmptyFrame = 0x4000;
constexpr std::uint16_t kRtrWrite = 0x8000;
constexpr std::uint16_t kRtrRead = 0x4000;

Enhanced load_enhanced(const std::byte* from) {
  const auto ird = base::load_big<std::uint16_t>(from);
  const auto ord = base::load_big<std::uint16_t>(from + 2);
  return {.ird = static_cast<std::uint16_t>(ird & kReadDepthMax),
          .ord = static_cast<std::uint16_t>(ord & kReadDepthMax),
          .peer_to_peer = (ird & kPeerToPeer) != 0,
          .rtr_empty_frame = (ird & kRtrEmptyFrame) != 0,
          .rtr_write = (ord & kRtrWrite) != 0,
          .rtr_read = (ord & kRtrRead) != 0};
}

void store_enhanced(std::byte* to, const Enhanced& enhanced) {
  assert(enhanced.ird <= kReadDepthMax && enhanced.ord <= kReadDepthMax);
  base::store_big(to, static_cast<std::uint16_t>(enhanced.ird | (enhanced.peer_to_peer ? kPeerToPeer : 0) |
                                                 (enhanced.rtr_empty_frame ? kRtrEmptyFrame : 0)));
  base::store_big(to + 2, static_cast<std::uint16_t>(enhanced.ord | (enhanced.rtr_write ? kRtrWrite : 0) |
                                                     (enhanced.rtr_read ? kRtrRead : 0)));
}

bool is(std::byte flags, std::byte bit) {
  return (flags & bit) != std::byte{0};
}

}  // namespace

Parsed parse_start_up(std::span<const std::byte> bytes, bool reply_expected, StartUp& frame, std::size_t& frame_bytes) {
  const std::string_view key = reply_expected ? kReplyKey : kRequestKey;
  const auto begin = bytes.first(std::min(bytes.size(), kKeyBytes));
  const auto agrees = [](std::byte got, char wanted) { return got == static_cast<std::byte>(wanted); };
  if (!std::equal(begin.begin(), begin.end(), key.begin(), agrees)) return Parsed::malformed;
  if (bytes.size() <= kRevisionAt) return Parsed::incomplete;
  StartUp read;
  read.reply = reply_expected;
  read.revision = std::to_integer<std::uint8_t>(bytes[kRevisionAt]);
  if (read.revision == 0) return Parsed::malformed;
  const std::byte flags = bytes[kFlagsAt];
  read.markers = is(flags, kMarkers);
  read.crc = is(flags, kCrc);
  // What is reserved is not looked at: the bit for rejection in a request, that for Enhanced in revision 1.
  read.rejected = reply_expected && is(flags, kRejected);
  const bool enhanced = read.revision >= 2 && is(flags, kEnhanced);

  if (bytes.size() < kStartUpHeaderBytes) {
    // The first byte of the length alone can be too much.
    const bool hopeless =
        bytes.size() > kLengthAt && std::to_integer<std::size_t>(bytes[kLengthAt]) << 8 > kStartUpDataBytesMax;
    return hopeless ? Parsed::malformed : Parsed::incomplete;
  }
  const std::size_t data_bytes = base::load_big<std::uint16_t>(bytes.data() + kLengthAt);
  if (data_bytes > kStartUpDataBytesMax || (enhanced && data_bytes < kEnhancedBytes)) return Parsed::malformed;
  if (bytes.size() - kStartUpHeaderBytes < data_bytes) return Parsed::incomplete;

  read.private_data = bytes.subspan(kStartUpHeaderBytes, data_bytes);
  if (enhanced) {
    read.enhanced = load_enhanced(read.private_data.data());
    read.private_data = read.private_data.subspan(kEnhancedBytes);
  }
  frame = read;
  frame_bytes = kStartUpHeaderBytes + data_bytes;
  return Parsed::whole;
}

std::size_t write_start_up(const StartUp& frame, std::span<std::byte> to) {
  const std::size_t data_bytes = (frame.enhanced ? kEnhancedBytes : 0) + frame.private_data.size();
  assert(data_bytes <= kStartUpDataBytesMax && kStartUpHeaderBytes + data_bytes <= to.size());
  assert(!frame.enhanced || frame.revision >= 2);
  std::memcpy(to.data(), (frame.reply ? kReplyKey : kRequestKey).data(), kKeyBytes);
  std::byte flags{0};
  if (frame.markers) flags |= kMarkers;
  if (frame.crc) flags |= kCrc;
  if (frame.rejected) flags |= kRejected;
  if (frame.enhanced) flags |= kEnhanced;
  to[kFlagsAt] = flags;
  to[kRevisionAt] = static_cast<std::byte>(frame.revision);
  base::store_big(to.data() + kLengthAt, static_cast<std::uint16_t>(data_bytes));
  std::byte* data = to.data() + kStartUpHeaderBytes;
  if (frame.enhanced) {
    store_enhanced(data, *frame.enhanced);
    data += kEnhancedBytes;
  }
  if (!frame.private_data.empty()) std::memcpy(data, frame.private_data.data(), frame.private_data.size());
  return kStartUpHeaderBytes + data_bytes;
}

}  // namespace anydat::nic::soft::iwarp
