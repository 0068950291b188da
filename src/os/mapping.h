// SPDX-License-Identifier: BSD-3-Clause
// Memory that the library asks the system for by pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydat::os {

// The size of a page.
std::size_t page_bytes();

// The first `bytes` of the file, for reading and, if `writable`, for writing. The child of a fork does not have them:
// it could do nothing but harm there. Null if there is no room.
void* map_shared(int fd, std::size_t bytes, bool writable, std::size_t offset = 0);

// Memory that a program has asked to be locked as it comes (mlockall, MCL_FUTURE) takes of its leave to lock, and is
// brought in at once. What these map is neither: for ranges of which little is used, and where that leave is exhausted.

// A range that reads as zeros, and takes nothing but addresses until something else is put there.
void* reserve(std::size_t bytes);
// As map_shared(), also of a file that is not as long yet: what lies behind its end must not be touched.
void* map_shared_unlocked(int fd, std::size_t bytes, bool writable);
// A part of the file, to read, in the place of a part of a range that was reserved. Those who read the range meanwhile
// see one or the other. False: nothing has changed.
bool put_shared(void* place, int fd, std::size_t offset, std::size_t bytes);
// Opens a part of a range that was reserved for writing: memory of this process alone. False if there is no room.
bool open_private(void* place, std::size_t bytes);
// Zeros of this process alone.
void* map_private_unlocked(std::size_t bytes);

// The same, locked as far as there is leave, at a multiple of `bytes`, which is a power of two of whole pages. Null if
// there is no room.
void* map_private_aligned(std::size_t bytes);

// The same at this address, and nowhere else. Null if something is there.
void* map_private_at(std::uintptr_t address, std::size_t bytes);

// Of either; nothing happens if `memory` is null.
void unmap(void* memory, std::size_t bytes);

}  // namespace anydat::os
