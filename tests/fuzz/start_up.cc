// SPDX-License-Identifier: BSD-3-Clause
// MPA's start-up frames. The first byte of an input says which of the two is expected.
#include "nic/soft/wire/iwarp/format/mpa.h"

#include <algorithm>
#include <array>
#include <span>

#include "fuzz/fuzz.h"

using namespace anydat::nic::soft::iwarp;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool reply = (data[0] & 1) != 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  StartUp frame;
  std::size_t length = 0;
  const Parsed parsed = parse_start_up(bytes, reply, frame, length);
  if (parsed != Parsed::whole) {
    // A beginning of what is not whole is not whole either; what is malformed stays so.
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
      FUZZ_CHECK(parse_start_up(bytes.first(cut), reply, frame, length) != Parsed::whole);
    }
    return 0;
  }
  FUZZ_CHECK(length <= bytes.size() && length <= kStartUpBytesMax);
  FUZZ_CHECK(frame.private_data.data() + frame.private_data.size() == bytes.data() + length);
  for (std::size_t cut = 0; cut < length; ++cut) {
    StartUp ignored;
    std::size_t none = 0;
    FUZZ_CHECK(parse_start_up(bytes.first(cut), reply, ignored, none) == Parsed::incomplete);
  }
  // What was understood is what would be written; only bits that are reserved may differ.
  std::array<std::byte, kStartUpBytesMax> written;
  FUZZ_CHECK(write_start_up(frame, written) == length);
  constexpr std::size_t kFlagsAt = 16;
  FUZZ_CHECK(std::equal(written.begin(), written.begin() + kFlagsAt, bytes.begin()));
  FUZZ_CHECK((written[kFlagsAt] & bytes[kFlagsAt]) == written[kFlagsAt]);
  FUZZ_CHECK(std::equal(written.begin() + kFlagsAt + 1, written.begin() + static_cast<std::ptrdiff_t>(length),
                        bytes.begin() + kFlagsAt + 1));
  return 0;
}
