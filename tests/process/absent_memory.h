// SPDX-License-Identifier: BSD-3-Clause
// Memory that is not there when it is touched: its program has promised to bring it (userfaultfd), and takes its time.
// To who touches it, it is like memory of a file whose server does not answer.
#pragma once

#include <cstddef>
#include <span>

#include "support/progress.h"

namespace anydat::test {

class AbsentMemory {
 public:
  // Whether this system makes memory absent for the kernel's own accesses, too.
  static bool possible();

  // Takes the content of these pages away. Throws if it cannot be done.
  explicit AbsentMemory(std::span<std::byte> pages);
  // A thread that waits for what has not been brought finds zeros.
  ~AbsentMemory();
  AbsentMemory(const AbsentMemory&) = delete;
  AbsentMemory& operator=(const AbsentMemory&) = delete;

  void fill(std::span<const std::byte> content);  // of all pages

 private:
  const Bystander bystander_;
  std::span<std::byte> pages_;
  int fd_ = -1;
};

}  // namespace anydat::test
