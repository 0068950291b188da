// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace anydat::os {

bool file_may_have(std::size_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

UniqueFd make_memory_file(const char* label, std::size_t bytes) {
  if (!file_may_have(bytes)) {
    errno = EFBIG;
    return {};
  }
  UniqueFd fd = UniqueFd::of([&] { return memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING); });
  if (fd && ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return {};
  return fd;
}

bool seal(int fd) {
  return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

bool seal_against_shrinking(int fd) {
  return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0;
}

bool grow(int fd, std::size_t bytes) {
  if (size_of(fd) >= bytes) return true;
  if (file_may_have(bytes)) return ftruncate(fd, static_cast<off_t>(bytes)) == 0;
  errno = EFBIG;
  return false;
}

std::uint64_t size_of(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

std::uint64_t number_of(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

bool seal_against_other_writers(int fd) {
  return fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0;
}

// Memory files have huge pages, too, with the same seals: but there need not be one to give when the memory is touched,
// which ends the process that does.
bool cannot_shrink_below(int fd, std::uint64_t bytes) {
  // The seals first: who has none may be of a file system that answers when it likes.
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return false;
  struct statfs system;
  struct stat status;
  return fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC && fstat(fd, &status) == 0 &&
         static_cast<std::uint64_t>(status.st_size) >= bytes;
}

}  // namespace anydat::os
