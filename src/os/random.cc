// SPDX-License-Identifier: BSD-3-Clause
#include "os/random.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <random>

namespace anydat::os {

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = syscall(SYS_getrandom, bytes.data(), bytes.size(), 0);
    if (count <= 0) break;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  if (bytes.empty()) return;
  // A kernel without that call, or a sandbox that forbids it.
  std::random_device device;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(device());
}

}  // namespace anydat::os
