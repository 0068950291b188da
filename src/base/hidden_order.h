// SPDX-License-Identifier: BSD-3-Clause
// Tells the thread sanitizer of an order that it cannot see: two threads of one process that meet in shared memory use
// different addresses of it. Nothing in other builds.
#pragma once

#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#define ANYDAT_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ANYDAT_THREAD_SANITIZER 1
#endif
#endif

#ifdef ANYDAT_THREAD_SANITIZER
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace anydat::base {

// What comes before published() of an object comes before what follows seen() of it. `object` is its number, the same
// in all mappings, of which the sanitizer's builds know some at a time.
class HiddenOrder {
 public:
#ifdef ANYDAT_THREAD_SANITIZER
  explicit HiddenOrder(std::uint64_t object = 0) : place_(&places_[object % kPlaces]) {}
  void published() const {
    __tsan_release(place_);
  }
  void seen() const {
    __tsan_acquire(place_);
  }

 private:
  static constexpr std::uint64_t kPlaces = 4096;
  static inline char places_[kPlaces];
  char* place_;
#else
  explicit HiddenOrder(std::uint64_t = 0) {}
  void published() const {}
  void seen() const {}
#endif
};

}  // namespace anydat::base
