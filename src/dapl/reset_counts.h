// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace anydat::dapl {

class Object;

// Lets the counters of objects begin at 0 again without writing them, which only their owners may do: what a counter
// had reached is remembered here and taken off what is read later, so that no increment is lost (D2-CNTR-3). Only
// objects that have been reset once are in it.
//
// Thread safety: one thread at a time, the engine held.
class ResetCounts {
 public:
  // What counter number `index` has counted since its last reset, now that it stands at `value`.
  std::uint64_t since_reset(const Object& object, std::size_t index, std::uint64_t value) {
    const auto found = reached_.find(&object);
    if (found == reached_.end()) return value;
    std::uint64_t& before = found->second[index];
    if (value < before) before = value;  // a counter whose increments may be undone (ruling B29)
    return value - before;
  }
  // `count`: of the object's counters. May throw std::bad_alloc.
  void reset(const Object& object, std::size_t index, std::size_t count, std::uint64_t value) {
    reached_.try_emplace(&object, count).first->second[index] = value;
  }
  void forget(const Object& object) { reached_.erase(&object); }

 private:
  std::unordered_map<const Object*, std::vector<std::uint64_t>> reached_;
};

}  // namespace anydat::dapl
