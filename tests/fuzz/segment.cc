// SPDX-License-Identifier: BSD-3-Clause
// A DDP segment: its header, a Read Request, an atomic operation or immediate data in it, and the Terminate that
// answers it.
#include <algorithm>
#include <array>
#include <span>

#include "fuzz/fuzz.h"
#include "nic/soft/wire/iwarp/format/ddp.h"
#include "nic/soft/wire/iwarp/format/rdmap.h"

using namespace anydat::nic::soft::iwarp;

namespace {

void check_round_trip(const SegmentHeader& header) {
  std::array<std::byte, kSegmentHeaderBytesMax> written;
  const std::size_t length = write_segment_header(header, written);
  SegmentHeader again;
  FUZZ_CHECK(!parse_segment_header(std::span(written).first(length), again));
  FUZZ_CHECK(again == header);
}

void check_read_request(std::span<const std::byte> payload) {
  if (payload.size() < kReadRequestBytes) return;
  std::array<std::byte, kReadRequestBytes> written;
  write_read_request(parse_read_request(payload), written);
  FUZZ_CHECK(std::equal(written.begin(), written.end(), payload.begin()));
}

// Bits of the first word that the parser does not look at are not written again.
void check_atomic_request(std::span<const std::byte> payload) {
  AtomicRequest request;
  if (payload.size() < kAtomicRequestBytes || !parse_atomic_request(payload, request)) return;
  std::array<std::byte, kAtomicRequestBytes> written;
  write_atomic_request(request, written);
  AtomicRequest again;
  FUZZ_CHECK(parse_atomic_request(written, again));
  FUZZ_CHECK(again == request);
}

void check_atomic_response(std::span<const std::byte> payload) {
  if (payload.size() < kAtomicResponseBytes) return;
  std::array<std::byte, kAtomicResponseBytes> written;
  write_atomic_response(parse_atomic_response(payload), written);
  FUZZ_CHECK(std::equal(written.begin(), written.end(), payload.begin()));
}

void check_immediate(std::span<const std::byte> payload) {
  if (payload.size() < kImmediateBytes) return;
  std::array<std::byte, kImmediateBytes> written;
  write_immediate(parse_immediate(payload), written);
  FUZZ_CHECK(std::equal(written.begin(), written.end(), payload.begin()));
}

void check_answer(TerminateCode code, std::span<const std::byte> segment) {
  std::array<std::byte, kTerminateBytesMax> written;
  const std::size_t length = write_terminate(terminate_for(code, segment, segment.size()), written);
  Terminate read;
  FUZZ_CHECK(parse_terminate(std::span(written).first(length), read));
  FUZZ_CHECK(read.code == code);
  FUZZ_CHECK(std::equal(read.segment_header.begin(), read.segment_header.end(), segment.begin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto segment = std::as_bytes(std::span(data, size));
  SegmentHeader header;
  if (const auto wrong = parse_segment_header(segment, header)) {
    FUZZ_CHECK(describe(*wrong) != "unknown error");
    check_answer(*wrong, segment);
    return 0;
  }
  check_round_trip(header);
  if (header.opcode == Opcode::read_request) check_read_request(segment.subspan(kUntaggedHeaderBytes));
  if (header.opcode == Opcode::atomic_request) check_atomic_request(segment.subspan(kUntaggedHeaderBytes));
  if (header.opcode == Opcode::atomic_response) check_atomic_response(segment.subspan(kUntaggedHeaderBytes));
  if (is_immediate(header.opcode)) check_immediate(segment.subspan(kUntaggedHeaderBytes));
  check_answer(rdmap_error::kAccessRights, segment);
  return 0;
}
