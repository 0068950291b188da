// SPDX-License-Identifier: BSD-3-Clause
// Files in memory, without a name, that other processes can map.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/unique_fd.h"

namespace anydat::os {

// May a file of this process have so many bytes (RLIMIT_FSIZE)? To be asked before one is made as large: the system
// sends a signal that ends the process instead of refusing (SIGXFSZ).
bool file_may_have(std::size_t bytes);

// One that can be sealed and shows zeros. Empty, with errno set, if there is no memory, no descriptor,
// or a limit forbids files of that size.
UniqueFd make_memory_file(const char* label, std::size_t bytes);

// Its size is for good then, so that others can map it without fear. False if it cannot be sealed.
bool seal(int fd);
// From then on the file may grow, but not shrink, and no process can seal it against growing.
bool seal_against_shrinking(int fd);
// Makes it this long, if it is not longer already. False, with errno set, if a limit forbids it or there is no memory.
bool grow(int fd, std::size_t bytes);
// 0 if the system does not tell.
std::uint64_t size_of(int fd);
// Its number among files in memory, the same for all who have it; 0 if the system does not tell.
std::uint64_t number_of(int fd);
// From now on it is written by those alone that have it mapped for writing already. To come before the other seals,
// after which there are no more. False: it comes too late, or the kernel is too old for that seal.
bool seal_against_other_writers(int fd);

// Can a peer's file be mapped safely as far as that?
bool cannot_shrink_below(int fd, std::uint64_t bytes);

}  // namespace anydat::os
