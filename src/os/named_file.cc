// SPDX-License-Identifier: BSD-3-Clause
#include "os/named_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "base/unique_fd.h"

namespace anydat::os {

std::optional<std::string> read_file(const char* path) {
  const base::UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

int access_error(const char* path) {
  return access(path, R_OK | W_OK) == 0 ? 0 : errno;
}

std::string real_folder_of(const char* path) {
  std::error_code ignored;
  return std::filesystem::canonical(path, ignored).parent_path().string();
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace anydat::os
