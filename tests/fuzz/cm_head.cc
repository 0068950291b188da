// SPDX-License-Identifier: BSD-3-Clause
// Private data of InfiniBand's connection management, whose head says how much there is and which service is meant.
#include "nic/verbs/cm_head.h"

#include <optional>
#include <span>

#include "fuzz/fuzz.h"

using namespace anydat::nic;
using namespace anydat::nic::verbs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::optional<CmParsed> parsed = parse(bytes);
  if (!parsed) return 0;
  FUZZ_CHECK(parsed->head.kind <= CmHead::Kind::here);  // those with a qualifier are the same without
  FUZZ_CHECK(parsed->head.offset + parsed->data.size() <= kIbPrivateDataMax + kQualBytes);
  FUZZ_CHECK(parsed->data.empty() || (parsed->data.data() >= bytes.data() + sizeof(CmHead) &&
                                      parsed->data.data() + parsed->data.size() <= bytes.data() + bytes.size()));
  return 0;
}
