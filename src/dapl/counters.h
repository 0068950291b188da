// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "dapl/object.h"

namespace anydat::dapl {

struct Counter {
  const char* name;
  std::uint64_t value;
};

// The counters of an object by name, in the order of docs/counters.md. Empty for a type that has none.
class Counters {
 public:
  static Counters of(const Object& object);
  std::span<const Counter> rows() const { return {rows_.data(), count_}; }

 private:
  void add(const char* name, std::uint64_t value) { rows_[count_++] = {name, value}; }

  std::array<Counter, 12> rows_;
  std::size_t count_ = 0;
};

// With DAT_LOG=info: one line with all counters of an object that are not 0. Nothing if none is.
void log_counters(const Object& object);

}  // namespace anydat::dapl
