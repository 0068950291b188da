// SPDX-License-Identifier: BSD-3-Clause
// Memory of this process that is a file without a name, so that another process can map it as well.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "os/unique_fd.h"

namespace anydat::os {

// Whole pages of zeros, from a file that can neither shrink nor grow. Null when there is no memory or no descriptor.
void* allocate_shareable(std::size_t bytes);
// False if `address` is not what allocate_shareable() gave.
bool free_shareable(void* address);

// The file behind a range of memory. The process that gets the descriptor can map it without fear that the file shrinks
// under the mapping.
struct Backing {
  UniqueFd fd;
  std::uint64_t offset;  // of the range in it
  dev_t device;
  ino_t inode;
};
// Of memory from allocate_shareable(); nothing if it is not that.
std::optional<Backing> find_allocation(std::uint64_t address, std::uint64_t length);

}  // namespace anydat::os
