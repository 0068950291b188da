// SPDX-License-Identifier: BSD-3-Clause
#include "os/named_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "os/uncancelled.h"
#include "os/unique_fd.h"

namespace anydat::os {

std::optional<std::string> read_file(const char* path) {
  const UniqueFd fd(uncancelled::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t got = uncancelled::read(fd.get(), piece.data(), piece.size());
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

int access_error(const char* path) {
  return access(path, R_OK | W_OK) == 0 ? 0 : errno;
}

// Not std::filesystem, which ends a process that lacks memory.
std::string real_folder_of(const char* path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path, nullptr), &std::free);
  if (!real) return {};
  const std::string_view text = real.get();
  const std::size_t end = text.rfind('/');
  return std::string(text.substr(0, std::max<std::size_t>(end, 1)));
}

bool exists(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0;
}

}  // namespace anydat::os
