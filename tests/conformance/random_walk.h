// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

namespace anydat::test {

// What chance chooses in a walk of calls beside a model. A seed tells all of it: another one in each run, or that of
// ANYDAT_TEST_SEED, with which a walk is repeated.
class RandomWalk {
 public:
  RandomWalk() { testing::Test::RecordProperty("seed", std::to_string(seed_)); }

  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::string how_to_repeat() const { return "repeat with ANYDAT_TEST_SEED=" + std::to_string(seed_); }

  template <typename Walker>
  struct Call {
    void (Walker::*make)();
    const char* name;
    unsigned weight;
  };
  // Makes so many of these calls, each as often as it weighs; after each of them the walker is compared with its model.
  // It ends with the first failure.
  template <typename Walker>
  void go(Walker& walker, int steps, std::initializer_list<Call<Walker>> calls, void (Walker::*expect_agreement)()) {
    std::vector<unsigned> weights;
    for (const Call<Walker>& call : calls) weights.push_back(call.weight);
    std::discrete_distribution<std::size_t> choice(weights.begin(), weights.end());
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      const Call<Walker>& chosen = calls.begin()[choice(random_)];
      SCOPED_TRACE("step " + std::to_string(step) + ": " + chosen.name);
      (walker.*chosen.make)();
      (walker.*expect_agreement)();
    }
  }

 private:
  static unsigned seed_of_run() {
    const char* seed = std::getenv("ANYDAT_TEST_SEED");
    return seed ? static_cast<unsigned>(std::strtoul(seed, nullptr, 10)) : std::random_device{}();
  }

  const unsigned seed_ = seed_of_run();
  std::mt19937 random_{seed_};
};

}  // namespace anydat::test
