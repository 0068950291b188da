// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "os/unique_fd.h"

namespace anydat::os {

enum class Sharing : std::uint8_t { all_shared, not_shared, unknown };

// Whether every byte of [address, address + length) lies in mappings that other processes may share (MAP_SHARED, System
// V segments), as the kernel tells it; unknown where it does not tell (no /proc). length > 0, and the range does not
// wrap.
//
// Both this and the next ask for one mapping after the other where the kernel answers that (PROCMAP_QUERY, Linux 6.11);
// elsewhere they read the list of all, which takes a millisecond for each thousand.
Sharing sharing_of(std::uint64_t address, std::uint64_t length);

// The file that one shared, writable mapping takes the whole range from; nothing if there is no such mapping.
struct FileRange {
  dev_t device;
  ino_t inode;
  std::uint64_t offset;  // of the range in the file
};
std::optional<FileRange> shared_file_of(std::uint64_t address, std::uint64_t length);

// What this process may do with its memory, as often as that is asked.
class AccessMap {
 public:
  void open();
  // How far the range may be read, or written, from its first byte on: an address in it, or its end. Where the kernel
  // does not tell, all of it may. From any thread.
  std::uint64_t allowed_until(std::uint64_t address, std::uint64_t length, bool to_write) const;

 private:
  UniqueFd file_;  // none: the kernel does not tell
};

}  // namespace anydat::os
