// SPDX-License-Identifier: BSD-3-Clause
#include "os/own_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "os/own_numbers.h"
#include "os/process_memory.h"
#include "os/uncancelled.h"
#include "os/unique_fd.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace anydat::os {

// There is no such operation on the mask of signals, which the system says once it has read the new mask.
bool readable(const void* address) {
  return syscall(SYS_rt_sigprocmask, ~0, address, nullptr, sizeof(std::uint64_t)) != 0 && errno != EFAULT;
}

bool read_word(const void* address, std::uintptr_t& word) {
  const iovec to{&word, sizeof word};
  const iovec from{const_cast<void*>(address), sizeof word};
  // By the calling thread's number: a process whose first thread has ended may not be found by its own.
  const ssize_t got = read_memory_of(own_thread_number(), std::span(&to, 1), std::span(&from, 1));
  if (got == static_cast<ssize_t>(sizeof word)) return true;
  return got < 0 && errno != EFAULT && read_word_by_pipe(address, word);
}

bool read_word_by_pipe(const void* address, std::uintptr_t& word) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return false;
  const UniqueFd out(fds[0]);
  const UniqueFd in(fds[1]);
  // The kernel looks at the memory, and says EFAULT where we would get a signal. Not write(): a sanitizer's would look
  // at it too.
  return uncancelled::write(in.get(), address, sizeof word) == static_cast<ssize_t>(sizeof word) &&
         uncancelled::read(out.get(), &word, sizeof word) == static_cast<ssize_t>(sizeof word);
}

bool is_mapped(void* pages, std::size_t bytes) {
  return uncancelled::msync(pages, bytes, MS_ASYNC) == 0 || errno != ENOMEM;
}

int populate(void* pages, std::size_t bytes, bool to_write) {
  return madvise(pages, bytes, to_write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0 ? 0 : errno;
}

}  // namespace anydat::os
