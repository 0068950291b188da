// SPDX-License-Identifier: BSD-3-Clause
#include "os/process_memory.h"

namespace anydat::os {

ssize_t read_memory_of(pid_t thread, std::span<const iovec> here, std::span<const iovec> there) {
  return process_vm_readv(thread, here.data(), here.size(), there.data(), there.size(), 0);
}

ssize_t write_memory_of(pid_t thread, std::span<const iovec> here, std::span<const iovec> there) {
  return process_vm_writev(thread, here.data(), here.size(), there.data(), there.size(), 0);
}

}  // namespace anydat::os
