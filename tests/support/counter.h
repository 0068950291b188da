// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <anydat/anydat.h>

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>

#include "support/dat_fixture.h"

namespace anydat::test {

// One of an object's counters (docs/counters.md).
inline std::uint64_t counter(DAT_HANDLE object, std::string_view name) {
  std::array<ANYDAT_COUNTER, 32> counters;
  DAT_COUNT count = 0;
  require(anydat_get_counters(object, static_cast<DAT_COUNT>(counters.size()), counters.data(), &count),
          "anydat_get_counters");
  for (const ANYDAT_COUNTER& one : std::span(counters).first(static_cast<std::size_t>(count))) {
    if (name == one.name) return one.value;
  }
  throw std::runtime_error("no such counter");
}

}  // namespace anydat::test
