// SPDX-License-Identifier: BSD-3-Clause
#include "base/memory_map.h"

#include <cinttypes>
#include <cstdio>
#include <memory>

namespace anydat::base {

Sharing sharing_of(std::uint64_t address, std::uint64_t length) {
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> maps(std::fopen("/proc/self/maps", "re"), close);
  if (!maps) return Sharing::unknown;
  // Lines are sorted by address and begin "start-end permissions"; the fourth permission is 's' or 'p'. Only that much
  // is read of each, since the path behind it may be of any length.
  const std::uint64_t last = address + (length - 1);
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  char permissions[5];
  while (std::fscanf(maps.get(), "%" SCNx64 "-%" SCNx64 " %4s%*[^\n]", &start, &end, permissions) == 3) {
    if (end <= address) continue;
    if (start > address || permissions[3] != 's') return Sharing::not_shared;
    if (last < end) return Sharing::all_shared;
    address = end;
  }
  return Sharing::not_shared;
}

}  // namespace anydat::base
