// SPDX-License-Identifier: BSD-3-Clause
// Randomness that can be repeated, and how long and how often random tests run.
#pragma once

#include <cstdint>
#include <random>

namespace anydat::test {

// The seed of this run, printed: ANYDAT_TEST_SEED, or a new one.
std::uint64_t announced_seed();

// A number from the environment.
int number_from_environment(const char* name, int otherwise);

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // From 0 to limit - 1.
  std::uint64_t below(std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(engine_);
  }
  bool chance(unsigned one_in) { return below(one_in) == 0; }
  std::uint64_t number() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace anydat::test
