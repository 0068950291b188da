// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>

namespace anydat::base {

// A word that is computed when it is first asked for, by each thread that comes before another is done: all get the
// same value. There is no lock that a fork could leave held. Requires: the value is never kUnknown.
template <typename T, T kUnknown>
class Computed {
 public:
  template <typename Compute>
  T get(Compute&& compute) {
    T value = value_.load(std::memory_order_acquire);
    if (value != kUnknown) [[likely]]
      return value;
    const T computed = compute();
    return value_.compare_exchange_strong(value, computed) ? computed : value;
  }
  void forget() { value_.store(kUnknown); }

 private:
  std::atomic<T> value_{kUnknown};
};

}  // namespace anydat::base
