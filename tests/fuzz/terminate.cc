// SPDX-License-Identifier: BSD-3-Clause
// The message that ends a stream.
#include <algorithm>
#include <array>
#include <span>

#include "fuzz/fuzz.h"
#include "nic/soft/wire/iwarp/format/rdmap.h"

using namespace anydat::nic::soft::iwarp;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto payload = std::as_bytes(std::span(data, size));
  Terminate message;
  const bool parsed = parse_terminate(payload, message);
  FUZZ_CHECK(parsed == (size >= kTerminateBytesMin));
  if (!parsed) return 0;
  FUZZ_CHECK(!describe(message.code).empty());
  for (const auto part : {message.segment_header, message.read_request}) {
    if (part.empty()) continue;
    FUZZ_CHECK(part.data() >= payload.data() && part.data() + part.size() <= payload.data() + payload.size());
  }
  std::array<std::byte, kTerminateBytesMax> written;
  const std::size_t length = write_terminate(message, written);
  FUZZ_CHECK(length <= written.size());
  Terminate again;
  FUZZ_CHECK(parse_terminate(std::span(written).first(length), again));
  FUZZ_CHECK(again.code == message.code && again.segment_bytes == message.segment_bytes);
  FUZZ_CHECK(std::equal(again.segment_header.begin(), again.segment_header.end(), message.segment_header.begin(),
                        message.segment_header.end()));
  FUZZ_CHECK(std::equal(again.read_request.begin(), again.read_request.end(), message.read_request.begin(),
                        message.read_request.end()));
  return 0;
}
