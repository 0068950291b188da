// SPDX-License-Identifier: BSD-3-Clause
// What private data say about qualifiers: what a caller wants, and why it is refused. The first byte of an input says
// which of the two is parsed.
#include "nic/wanted.h"

#include <algorithm>
#include <optional>
#include <span>

#include "fuzz/fuzz.h"
#include "nic/qualifier_ports.h"
#include "nic/refusal.h"

using namespace anydat::nic;

namespace {

void parse_as_refusal(std::span<const std::byte> bytes) {
  const std::optional<Refusal> refusal = parse_refusal(bytes);
  if (!refusal) return;
  // There is one way to say it.
  const RefusalBytes written = write_refusal(*refusal);
  FUZZ_CHECK(std::equal(bytes.begin(), bytes.end(), written.data(), written.data() + written.size()));
}

void parse_as_wanted(std::span<const std::byte> bytes) {
  Wanted wanted;
  const WantedParsed parsed = parse_wanted(bytes, wanted);
  if (parsed != WantedParsed::nothing)
    FUZZ_CHECK(bytes.size() == kWantedShortBytes || bytes.size() == kWantedLongBytes);
  if (parsed != WantedParsed::good) return;
  FUZZ_CHECK(!is_port(wanted.qual));
  FUZZ_CHECK(wanted.private_data.size() <= kPrivateDataMax);
  FUZZ_CHECK(wanted.private_data.empty() ||
             (wanted.private_data.data() >= bytes.data() &&
              wanted.private_data.data() + wanted.private_data.size() <= bytes.data() + bytes.size()));
  const WantedBytes written = write_wanted(wanted);
  FUZZ_CHECK(written.size() == bytes.size());
  Wanted again;
  FUZZ_CHECK(parse_wanted(written, again) == WantedParsed::good);
  FUZZ_CHECK(again.qual == wanted.qual && again.kind == wanted.kind);
  FUZZ_CHECK(std::equal(again.private_data.begin(), again.private_data.end(), wanted.private_data.begin(),
                        wanted.private_data.end()));
  for (const std::uint16_t port : derived_ports(wanted.qual)) FUZZ_CHECK(port >= kDerivedPortsFirst);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  if ((data[0] & 1) != 0) {
    parse_as_refusal(bytes);
  } else {
    parse_as_wanted(bytes);
  }
  return 0;
}
