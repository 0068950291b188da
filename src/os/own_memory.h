// SPDX-License-Identifier: BSD-3-Clause
// Memory of this process by addresses that may be anything: the system answers where an access would end the process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydat::os {

// Can the byte at this address be read? The page may be brought in for it.
bool readable(const void* address);

// Copies the word at `address`, wherever that points. False if there is no readable memory.
bool read_word(const void* address, std::uintptr_t& word);
// The way for systems that forbid process_vm_readv.
bool read_word_by_pipe(const void* address, std::uintptr_t& word);

// Of whole pages: is there something at each address?
bool is_mapped(void* pages, std::size_t bytes);
// Brings whole pages in, as an access to each would; waits for what takes long to come. 0, or the error: EFAULT if an
// access would end the process, ENOMEM if nothing is mapped there, EINVAL if they may not be accessed so, or are of a
// device, or the kernel is older than Linux 5.14; EAGAIN and EINTR say nothing of the pages.
int populate(void* pages, std::size_t bytes, bool to_write);

}  // namespace anydat::os
