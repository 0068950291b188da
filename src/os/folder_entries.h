// SPDX-License-Identifier: BSD-3-Clause
// The names of what is in a folder, for who may lack memory: std::filesystem ends the process then, in functions that
// it calls noexcept.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "os/lack.h"
#include "os/unique_fd.h"

namespace anydat::os {

class FolderEntries {
 public:
  explicit FolderEntries(const char* folder);
  // False if there are no more, no such folder, or a lack. The name is good until the next call. Allocates nothing.
  bool next(std::string_view& name);
  // Whether it ends for want of descriptors or memory: the folder may have more.
  bool lacks() const { return os::is_lack(error_); }

 private:
  int error_ = 0;  // of the call that failed
  UniqueFd folder_;
  alignas(8) std::array<std::byte, 4096> entries_;
  std::size_t used_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace anydat::os
