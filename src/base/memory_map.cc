// SPDX-License-Identifier: BSD-3-Clause
#include "base/memory_map.h"

#include <sys/sysmacros.h>

#include <cinttypes>
#include <cstdio>
#include <memory>

namespace anydat::base {

namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::unique_ptr<std::FILE, Close> open_map() {
  return std::unique_ptr<std::FILE, Close>(std::fopen("/proc/self/maps", "rec"));
}

}  // namespace

Sharing sharing_of(std::uint64_t address, std::uint64_t length) {
  const auto maps = open_map();
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

std::optional<FileRange> shared_file_of(std::uint64_t address, std::uint64_t length) {
  const auto maps = open_map();
  if (!maps) return std::nullopt;
  std::uint64_t start = 0, end = 0, offset = 0, inode = 0;
  unsigned major_number = 0, minor_number = 0;
  char permissions[5];
  while (std::fscanf(maps.get(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 "%*[^\n]", &start, &end,
                     permissions, &offset, &major_number, &minor_number, &inode) == 7) {
    if (end <= address) continue;
    if (start > address || length > end - address || inode == 0) return std::nullopt;
    if (permissions[1] != 'w' || permissions[3] != 's') return std::nullopt;
    return FileRange{makedev(major_number, minor_number), inode, offset + (address - start)};
  }
  return std::nullopt;
}

}  // namespace anydat::base
