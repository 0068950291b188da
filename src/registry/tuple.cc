// SPDX-License-Identifier: BSD-3-Clause
#include "registry/tuple.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace anydat::registry {

std::optional<Tuple> tuple_of(const DAT_PROVIDER_INFO& info) {
  const std::size_t length = strnlen(info.ia_name, sizeof info.ia_name);
  if (length == 0 || length == sizeof info.ia_name) return std::nullopt;
  return Tuple{std::string(info.ia_name, length), info.dapl_version_major, info.dapl_version_minor,
               info.is_thread_safe};
}

DAT_PROVIDER_INFO info_of(const Tuple& tuple) {
  DAT_PROVIDER_INFO info{};
  std::memcpy(info.ia_name, tuple.name.data(), std::min(tuple.name.size(), sizeof info.ia_name - 1));
  info.dapl_version_major = tuple.major;
  info.dapl_version_minor = tuple.minor;
  info.is_thread_safe = tuple.thread_safe;
  return info;
}

std::string in_words(const Tuple& tuple) {
  return fmt::format("{} ({}.{}, {})", tuple.name, tuple.major, tuple.minor,
                     tuple.thread_safe == DAT_FALSE ? "nonthreadsafe" : "threadsafe");
}

bool serves(const Tuple& entry, const Tuple& request) {
  return entry.name == request.name && entry.major == request.major && entry.thread_safe == request.thread_safe &&
         entry.minor >= request.minor;
}

bool serves_better(const Tuple& a, const Tuple& b) {
  // Both minors are at least what is asked for, so the smaller is the equal or the nearer one.
  return a.minor < b.minor;
}

DAT_RETURN not_found_subtype(std::span<const Tuple> known, const Tuple& request) {
  const auto any = [&](auto condition) { return std::any_of(known.begin(), known.end(), condition); };
  const auto name = [&](const Tuple& t) { return t.name == request.name; };
  const auto major = [&](const Tuple& t) { return name(t) && t.major == request.major; };
  const auto minor = [&](const Tuple& t) { return major(t) && t.minor >= request.minor; };
  const auto thread_safety = [&](const Tuple& t) { return minor(t) && t.thread_safe == request.thread_safe; };
  if (!any(name)) return DAT_NAME_NOT_REGISTERED;
  if (!any(major)) return DAT_MAJOR_NOT_FOUND;
  if (!any(minor)) return DAT_MINOR_NOT_FOUND;
  if (!any(thread_safety)) return DAT_THREAD_SAFETY_NOT_FOUND;
  return DAT_NAME_NOT_REGISTERED;  // known, and does not load
}

}  // namespace anydat::registry
