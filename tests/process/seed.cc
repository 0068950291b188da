// SPDX-License-Identifier: BSD-3-Clause
#include "seed.h"

#include <fmt/format.h>

#include <cstdlib>

namespace anydat::test {

std::uint64_t announced_seed() {
  const char* given = std::getenv("ANYDAT_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  fmt::print("seed {} (repeat with ANYDAT_TEST_SEED={})\n", seed, seed);
  return seed;
}

int number_from_environment(const char* name, int otherwise) {
  const char* given = std::getenv(name);
  return given != nullptr ? static_cast<int>(std::strtol(given, nullptr, 0)) : otherwise;
}

}  // namespace anydat::test
