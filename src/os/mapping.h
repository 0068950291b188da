// SPDX-License-Identifier: BSD-3-Clause
// Memory that the library asks the system for by pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydat::os {

// The first `bytes` of the file, for reading and, if `writable`, for writing. The child of a fork does not have them:
// it could do nothing but harm there. Null if there is no room.
void* map_shared(int fd, std::size_t bytes, bool writable, std::size_t offset = 0);

// Zeros of this process alone. Null if there is no room.
void* map_private(std::size_t bytes);
// The same, at a multiple of `bytes`, which is a power of two of whole pages. Null
// if there is no room.
void* map_private_aligned(std::size_t bytes);

// The same at this address, and nowhere else. Null if something is there.
void* map_private_at(std::uintptr_t address, std::size_t bytes);

// Of either; nothing happens if `memory` is null.
void unmap(void* memory, std::size_t bytes);

}  // namespace anydat::os
