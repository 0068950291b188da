// SPDX-License-Identifier: BSD-3-Clause
// The memory of another process, where the kernel lets this one reach it.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <span>

namespace anydat::os {

// Copies from, or to, the memory of the process that has the thread of this number, as process_vm_readv(2) and
// process_vm_writev(2) do: how many bytes, which may be less than all, or -1 with errno set. EFAULT: the first address
// is not there; EPERM, ESRCH and others: this process cannot be reached. At most 1024 pieces at each end.
ssize_t read_memory_of(pid_t thread, std::span<const iovec> here, std::span<const iovec> there);
ssize_t write_memory_of(pid_t thread, std::span<const iovec> here, std::span<const iovec> there);

}  // namespace anydat::os
