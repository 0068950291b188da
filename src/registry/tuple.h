// SPDX-License-Identifier: BSD-3-Clause
// By what a registry knows an adapter, and how a program's request finds one.
#pragma once

#include "face/dat.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace anydat::registry {

// Of a request or of a registry entry (section 2.3 of the rules).
struct Tuple {
  std::string name;
  DAT_UINT32 major;
  DAT_UINT32 minor;
  DAT_BOOLEAN thread_safe;

  bool operator==(const Tuple&) const = default;
};

// Nothing if the name is empty or has no end (REG-ADD-7).
std::optional<Tuple> tuple_of(const DAT_PROVIDER_INFO& info);
// Requires: the name is shorter than DAT_NAME_MAX_LENGTH.
DAT_PROVIDER_INFO info_of(const Tuple& tuple);
// "soft-lo (1.2, nonthreadsafe)", for messages.
std::string in_words(const Tuple& tuple);

// D2-CONF-4: a name that ends so stands for every name that begins with what precedes it.
inline bool is_pattern(const Tuple& entry) {
  return entry.name.ends_with('*');
}
// Requires: the entry is a pattern.
inline std::string_view prefix_of(const Tuple& entry) {
  return std::string_view(entry.name).substr(0, entry.name.size() - 1);
}

// RES-1 and RES-3.
bool serves(const Tuple& entry, const Tuple& request);
// RES-2: true if `a` serves better than `b`, where both serve and `b` was registered first.
bool serves_better(const Tuple& a, const Tuple& b);

// The best of the entries for the request, in the order of registration; null if none serves. `tuple` gives an
// entry's Tuple.
template <typename Range, typename TupleOf>
auto best_match(Range& entries, const Tuple& request, TupleOf tuple) -> decltype(&*entries.begin()) {
  decltype(&*entries.begin()) best = nullptr;
  for (auto& entry : entries) {
    if (!serves(tuple(entry), request)) continue;
    if (!best || serves_better(tuple(entry), tuple(*best))) best = &entry;
  }
  return best;
}

// D2-CONF-4: the same among patterns: of those that match the request's name the longest, and of equal ones the best.
template <typename Range>
auto best_pattern(Range& patterns, const Tuple& request) -> decltype(&*patterns.begin()) {
  decltype(&*patterns.begin()) best = nullptr;
  for (auto& pattern : patterns) {
    Tuple named = pattern.tuple;
    named.name = request.name;
    if (!request.name.starts_with(prefix_of(pattern.tuple)) || !serves(named, request)) continue;
    const bool longer = best && pattern.tuple.name.size() > best->tuple.name.size();
    const bool equal = best && pattern.tuple.name.size() == best->tuple.name.size();
    if (!best || longer || (equal && serves_better(pattern.tuple, best->tuple))) best = &pattern;
  }
  return best;
}

// RES-10: the subtype that says how far the request got among all entries there are.
DAT_RETURN not_found_subtype(std::span<const Tuple> known, const Tuple& request);

}  // namespace anydat::registry
