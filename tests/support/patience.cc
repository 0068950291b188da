// SPDX-License-Identifier: BSD-3-Clause
#include "support/patience.h"

#include <cstdlib>
#include <thread>

#if defined(__has_feature)
#define ANYDAT_HAS_FEATURE(feature) __has_feature(feature)
#else
#define ANYDAT_HAS_FEATURE(feature) 0
#endif

namespace anydat::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || ANYDAT_HAS_FEATURE(thread_sanitizer) || \
    ANYDAT_HAS_FEATURE(address_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Known before main(): a thread that computed it at its first use would leave the guard of a local variable taken in
// the child of a fork that comes just then.
const double scale = [] {
  const char* text = std::getenv("ANYDAT_TEST_TIMEOUT_SCALE");
  const double asked = text == nullptr ? 1 : std::strtod(text, nullptr);
  return (kSanitized ? 5 : 1) * (asked > 0 ? asked : 1);
}();

std::chrono::milliseconds scaled(double milliseconds) {
  return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(milliseconds * scale));
}

}  // namespace

bool built_with_sanitizer() {
  return kSanitized;
}

std::chrono::milliseconds patience() {
  return scaled(5000);
}

std::chrono::milliseconds quiet_time() {
  return scaled(20);
}

bool eventually(const std::function<bool()>& predicate, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return predicate();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

}  // namespace anydat::test
