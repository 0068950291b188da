// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/format/rdmap.h"

#include <cassert>
#include <cstring>

#include "base/big_endian.h"

namespace anydat::nic::soft::iwarp {
namespace {

constexpr std::size_t kSinkStagAt = 0;
constexpr std::size_t kSinkOffsetAt = 4;
constexpr std::size_t kReadBytesAt = 12;
constexpr std::size_t kSourceStagAt = 16;
constexpr std::size_t kSourceOffsetAt = 20;

// An Atomic Request: a word of which four bits say the operation, the response's name, the word's place, and four times
// 64 bits.
constexpr std::size_t kAtomicIdAt = 4;
constexpr std::size_t kAtomicStagAt = 8;
constexpr std::size_t kAtomicOffsetAt = 12;
constexpr std::size_t kAtomicOperandAt = 20;
constexpr std::size_t kAtomicMaskAt = 28;
constexpr std::size_t kAtomicCompareAt = 36;
constexpr std::size_t kAtomicCompareMaskAt = 44;
constexpr std::uint32_t kAtomicOperationMask = 0xf;
constexpr std::uint64_t kWholeWord = ~std::uint64_t{0};

// The word of control that begins a Terminate: layer, type and code in the first two bytes, then what follows it.
constexpr std::byte kLengthValid{0x80};
constexpr std::byte kHasSegmentHeader{0x40};
constexpr std::byte kHasReadRequest{0x20};

bool is(std::byte flags, std::byte bit) {
  return (flags & bit) != std::byte{0};
}

}  // namespace

ReadRequest parse_read_request(std::span<const std::byte> payload) {
  assert(payload.size() >= kReadRequestBytes);
  const std::byte* at = payload.data();
  return {.sink_stag = base::load_big<std::uint32_t>(at + kSinkStagAt),
          .sink_offset = base::load_big<std::uint64_t>(at + kSinkOffsetAt),
          .bytes = base::load_big<std::uint32_t>(at + kReadBytesAt),
          .source_stag = base::load_big<std::uint32_t>(at + kSourceStagAt),
          .source_offset = base::load_big<std::uint64_t>(at + kSourceOffsetAt)};
}

std::size_t write_read_request(const ReadRequest& request, std::span<std::byte> to) {
  assert(to.size() >= kReadRequestBytes);
  std::byte* at = to.data();
  base::store_big(at + kSinkStagAt, request.sink_stag);
  base::store_big(at + kSinkOffsetAt, request.sink_offset);
  base::store_big(at + kReadBytesAt, request.bytes);
  base::store_big(at + kSourceStagAt, request.source_stag);
  base::store_big(at + kSourceOffsetAt, request.source_offset);
  return kReadRequestBytes;
}

bool parse_atomic_request(std::span<const std::byte> payload, AtomicRequest& request) {
  assert(payload.size() >= kAtomicRequestBytes);
  const std::byte* at = payload.data();
  using Operation = AtomicRequest::Operation;
  const auto operation = static_cast<Operation>(base::load_big<std::uint32_t>(at) & kAtomicOperationMask);
  if (operation != Operation::fetch_add && operation != Operation::compare_swap) return false;
  request = {.operation = operation,
             .id = base::load_big<std::uint32_t>(at + kAtomicIdAt),
             .stag = base::load_big<std::uint32_t>(at + kAtomicStagAt),
             .offset = base::load_big<std::uint64_t>(at + kAtomicOffsetAt),
             .operand = base::load_big<std::uint64_t>(at + kAtomicOperandAt),
             .compare = base::load_big<std::uint64_t>(at + kAtomicCompareAt)};
  // A mask of an addition says where carries stop, which all ones would do at each bit.
  const std::uint64_t mask = operation == Operation::fetch_add ? 0 : kWholeWord;
  return base::load_big<std::uint64_t>(at + kAtomicMaskAt) == mask &&
         (operation == Operation::fetch_add || base::load_big<std::uint64_t>(at + kAtomicCompareMaskAt) == kWholeWord);
}

std::size_t write_atomic_request(const AtomicRequest& request, std::span<std::byte> to) {
  assert(to.size() >= kAtomicRequestBytes);
  const bool adds = request.operation == AtomicRequest::Operation::fetch_add;
  std::byte* at = to.data();
  base::store_big(at, static_cast<std::uint32_t>(request.operation));
  base::store_big(at + kAtomicIdAt, request.id);
  base::store_big(at + kAtomicStagAt, request.stag);
  base::store_big(at + kAtomicOffsetAt, request.offset);
  base::store_big(at + kAtomicOperandAt, request.operand);
  base::store_big(at + kAtomicMaskAt, adds ? std::uint64_t{0} : kWholeWord);
  base::store_big(at + kAtomicCompareAt, request.compare);
  base::store_big(at + kAtomicCompareMaskAt, adds ? std::uint64_t{0} : kWholeWord);
  return kAtomicRequestBytes;
}

AtomicResponse parse_atomic_response(std::span<const std::byte> payload) {
  assert(payload.size() >= kAtomicResponseBytes);
  return {.id = base::load_big<std::uint32_t>(payload.data()),
          .was = base::load_big<std::uint64_t>(payload.data() + 4)};
}

std::size_t write_atomic_response(const AtomicResponse& response, std::span<std::byte> to) {
  assert(to.size() >= kAtomicResponseBytes);
  base::store_big(to.data(), response.id);
  base::store_big(to.data() + 4, response.was);
  return kAtomicResponseBytes;
}

ImmediateData parse_immediate(std::span<const std::byte> payload) {
  assert(payload.size() >= kImmediateBytes);
  return {.value = base::load_big<std::uint32_t>(payload.data()),
          .length = base::load_big<std::uint32_t>(payload.data() + 4)};
}

std::size_t write_immediate(const ImmediateData& data, std::span<std::byte> to) {
  assert(to.size() >= kImmediateBytes);
  base::store_big(to.data(), data.value);
  base::store_big(to.data() + 4, data.length);
  return kImmediateBytes;
}

bool parse_terminate(std::span<const std::byte> payload, Terminate& message) {
  if (payload.size() < kTerminateBytesMin) return false;
  const auto first = std::to_integer<std::uint8_t>(payload[0]);
  const std::byte flags = payload[2];
  message = Terminate{};
  message.code = {.layer = static_cast<std::uint8_t>(first >> 4),
                  .type = static_cast<std::uint8_t>(first & 0x0f),
                  .code = std::to_integer<std::uint8_t>(payload[1])};
  std::span<const std::byte> rest = payload.subspan(kTerminateBytesMin);
  // The length has its room if either bit is set.
  if (is(flags, kLengthValid) || is(flags, kHasSegmentHeader)) {
    if (rest.size() < sizeof(std::uint16_t)) return true;
    message.segment_bytes_valid = is(flags, kLengthValid);
    if (message.segment_bytes_valid) message.segment_bytes = base::load_big<std::uint16_t>(rest.data());
    rest = rest.subspan(sizeof(std::uint16_t));
  }
  if (is(flags, kHasSegmentHeader)) {
    if (rest.empty() || rest.size() < segment_header_bytes(rest[0])) return true;
    message.segment_header = rest.first(segment_header_bytes(rest[0]));
    rest = rest.subspan(message.segment_header.size());
  }
  if (is(flags, kHasReadRequest) && rest.size() >= kReadRequestBytes) {
    message.read_request = rest.first(kReadRequestBytes);
  }
  return true;
}

std::size_t write_terminate(const Terminate& message, std::span<std::byte> to) {
  assert(to.size() >= kTerminateBytesMax);
  const bool has_header = !message.segment_header.empty();
  const bool has_request = !message.read_request.empty();
  assert(!has_header || message.segment_header.size() == segment_header_bytes(message.segment_header[0]));
  assert(!has_request || message.read_request.size() == kReadRequestBytes);
  to[0] = static_cast<std::byte>(message.code.layer << 4 | (message.code.type & 0x0f));
  to[1] = static_cast<std::byte>(message.code.code);
  to[2] = (message.segment_bytes_valid ? kLengthValid : std::byte{0}) |
          (has_header ? kHasSegmentHeader : std::byte{0}) | (has_request ? kHasReadRequest : std::byte{0});
  to[3] = std::byte{0};
  std::size_t at = kTerminateBytesMin;
  if (message.segment_bytes_valid || has_header) {
    base::store_big(&to[at], message.segment_bytes_valid ? message.segment_bytes : std::uint16_t{0});
    at += sizeof(std::uint16_t);
  }
  for (const std::span<const std::byte> part : {message.segment_header, message.read_request}) {
    if (part.empty()) continue;
    std::memcpy(&to[at], part.data(), part.size());
    at += part.size();
  }
  return at;
}

Terminate terminate_for(TerminateCode code, std::span<const std::byte> segment, std::size_t segment_bytes) {
  Terminate message;
  message.code = code;
  if (segment.empty() || segment.size() < segment_header_bytes(segment[0])) return message;
  message.segment_bytes_valid = true;
  message.segment_bytes = static_cast<std::uint16_t>(segment_bytes);
  message.segment_header = segment.first(segment_header_bytes(segment[0]));
  SegmentHeader header;
  const std::span<const std::byte> payload = segment.subspan(message.segment_header.size());
  if (!parse_segment_header(segment, header) && header.opcode == Opcode::read_request &&
      payload.size() >= kReadRequestBytes) {
    message.read_request = payload.first(kReadRequestBytes);
  }
  return message;
}

}  // namespace anydat::nic::soft::iwarp
