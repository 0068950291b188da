// SPDX-License-Identifier: BSD-3-Clause
#include "os/numbered_entries.h"

#include <charconv>
#include <string_view>
#include <system_error>

namespace anydat::os {

bool NumberedEntries::next(int& number) {
  for (std::string_view name; entries_.next(name);) {
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) return true;
  }
  return false;
}

}  // namespace anydat::os
