// SPDX-License-Identifier: BSD-3-Clause
// What RDMAP itself puts into messages (RFC 5040): the request of an RDMA Read, and the message that ends a stream. And
// what RFC 7306 adds: atomic operations and immediate data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/soft/wire/iwarp/format/ddp.h"
#include "nic/soft/wire/iwarp/format/terminate_code.h"

namespace anydat::nic::soft::iwarp {

// Section 4.4. The sink is the memory of who asks, the source that of who is asked.
struct ReadRequest {
  std::uint32_t sink_stag = 0;
  std::uint64_t sink_offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t source_stag = 0;
  std::uint64_t source_offset = 0;

  friend bool operator==(const ReadRequest&, const ReadRequest&) = default;
};
inline constexpr std::size_t kReadRequestBytes = 28;

// Requires: at least kReadRequestBytes.
ReadRequest parse_read_request(std::span<const std::byte> payload);
std::size_t write_read_request(const ReadRequest& request, std::span<std::byte> to);

// RFC 7306, section 5.2. Only what is done here: masks of all ones.
struct AtomicRequest {
  enum class Operation : std::uint8_t { fetch_add = 0, compare_swap = 2 };
  Operation operation = Operation::fetch_add;
  std::uint32_t id = 0;  // comes back in the response
  std::uint32_t stag = 0;
  std::uint64_t offset = 0;
  std::uint64_t operand = 0;  // what is added or swapped in
  std::uint64_t compare = 0;

  friend bool operator==(const AtomicRequest&, const AtomicRequest&) = default;
};
inline constexpr std::size_t kAtomicRequestBytes = 52;
// Requires: at least kAtomicRequestBytes. False: another operation, or other masks.
bool parse_atomic_request(std::span<const std::byte> payload, AtomicRequest& request);
std::size_t write_atomic_request(const AtomicRequest& request, std::span<std::byte> to);

struct AtomicResponse {
  std::uint32_t id = 0;
  std::uint64_t was = 0;  // the word before

  friend bool operator==(const AtomicResponse&, const AtomicResponse&) = default;
};
inline constexpr std::size_t kAtomicResponseBytes = 12;
// Requires: at least kAtomicResponseBytes.
AtomicResponse parse_atomic_response(std::span<const std::byte> payload);
std::size_t write_atomic_response(const AtomicResponse& response, std::span<std::byte> to);

// RFC 7306, section 6.1, has eight bytes; what they mean is agreed on between ends of ours (D2-IMM-7).
struct ImmediateData {
  std::uint32_t value = 0;
  std::uint32_t length = 0;  // of the Write before it

  friend bool operator==(const ImmediateData&, const ImmediateData&) = default;
};
inline constexpr std::size_t kImmediateBytes = 8;
// Requires: at least kImmediateBytes.
ImmediateData parse_immediate(std::span<const std::byte> payload);
std::size_t write_immediate(const ImmediateData& data, std::span<std::byte> to);

// Section 4.8. Why the stream ends, and as far as there is one, the segment that was at fault.
struct Terminate {
  TerminateCode code{};
  bool segment_bytes_valid = false;  // also where there is no header, if the length alone was at fault
  std::uint16_t segment_bytes = 0;
  std::span<const std::byte> segment_header{};  // 14 or 18 bytes, as they came; or none
  std::span<const std::byte> read_request{};    // kReadRequestBytes, if it was one; or none
};
inline constexpr std::size_t kTerminateBytesMin = 4;
inline constexpr std::size_t kTerminateBytesMax = kTerminateBytesMin + 2 + kUntaggedHeaderBytes + kReadRequestBytes;

// False if it is too short to name an error. What is cut off behind that is left out: the stream has ended anyway. The
// spans are parts of `payload`.
bool parse_terminate(std::span<const std::byte> payload, Terminate& message);
// Requires: room for kTerminateBytesMax.
std::size_t write_terminate(const Terminate& message, std::span<std::byte> to);

// What to tell the peer of a segment that it sent: `segment` is what has arrived of it, header first, and
// `segment_bytes` its length on the wire. Headers that are not whole are left out.
Terminate terminate_for(TerminateCode code, std::span<const std::byte> segment, std::size_t segment_bytes);

}  // namespace anydat::nic::soft::iwarp
