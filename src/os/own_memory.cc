// SPDX-License-Identifier: BSD-3-Clause
#include "os/own_memory.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"
#include "os/uncancelled.h"

namespace anydat::os {

namespace {

// What a pipe holds at least.
constexpr std::size_t kPipeBytes = 4096;

}  // namespace

KernelWrite write_by_pipe(std::uint64_t to, const std::byte* from, std::size_t count) {
  int ends[2] = {-1, -1};
  const auto reading = base::UniqueFd::of([&] { return ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 ? ends[0] : -1; });
  const auto writing = base::UniqueFd::of([&] { return ends[1]; });
  if (!reading || !writing) return KernelWrite::not_served;
  while (count > 0) {
    const std::size_t part = std::min(count, kPipeBytes);
    if (uncancelled::write(writing.get(), from, part) != static_cast<ssize_t>(part)) return KernelWrite::not_served;
    for (std::size_t left = part; left > 0;) {
      const ssize_t placed = uncancelled::read(reading.get(), reinterpret_cast<void*>(to), left);
      if (placed < 0 && errno == EINTR) continue;
      if (placed <= 0) return KernelWrite::refused;
      to += static_cast<std::uint64_t>(placed);
      left -= static_cast<std::size_t>(placed);
    }
    from += part;
    count -= part;
  }
  return KernelWrite::done;
}

bool write_by_kernel(std::uint64_t to, const std::byte* from, std::size_t count) {
  const iovec here{const_cast<std::byte*>(from), count};
  const iovec there{reinterpret_cast<void*>(to), count};
  const ssize_t written = process_vm_writev(getpid(), &here, 1, &there, 1, 0);
  if (written >= 0) return static_cast<std::size_t>(written) == count;
  if (errno == EFAULT) return false;
  // Where the system refuses that call, also on a process's own memory.
  const KernelWrite outcome = write_by_pipe(to, from, count);
  if (outcome != KernelWrite::not_served) return outcome == KernelWrite::done;
  std::memcpy(there.iov_base, from, count);
  return true;
}

}  // namespace anydat::os
