// SPDX-License-Identifier: BSD-3-Clause
#include "os/folder_entries.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/uncancelled.h"

namespace anydat::os {

// opendir() has a descriptor of its own, which the child of a fork would keep.
FolderEntries::FolderEntries(const char* folder)
    : folder_(UniqueFd::of([=, this] {
        const int fd = uncancelled::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) error_ = errno;
        return fd;
      })) {}

bool FolderEntries::next(std::string_view& name) {
  for (;;) {
    if (used_ == bytes_) {
      const long count = folder_ ? syscall(SYS_getdents64, folder_.get(), entries_.data(), entries_.size()) : 0;
      if (count < 0) error_ = errno;
      if (count <= 0) return false;
      used_ = 0;
      bytes_ = static_cast<std::size_t>(count);
    }
    const std::byte* const entry = entries_.data() + used_;
    unsigned short length = 0;
    std::memcpy(&length, entry + offsetof(dirent64, d_reclen), sizeof length);
    used_ += length;
    name = reinterpret_cast<const char*>(entry) + offsetof(dirent64, d_name);
    if (name != "." && name != "..") return true;
  }
}

}  // namespace anydat::os
