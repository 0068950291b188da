// SPDX-License-Identifier: BSD-3-Clause
// The names of what is in a folder, for who may lack memory: std::filesystem ends the process then, in functions that
// it calls noexcept.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "os/unique_fd.h"

namespace anydat::os {

class FolderEntries {
 public:
  explicit FolderEntries(const char* folder);
  // False if there are no more, or no such folder. The name is good until the next call. Allocates nothing.
  bool next(std::string_view& name);

 private:
  UniqueFd folder_;
  alignas(8) std::array<std::byte, 4096> entries_;
  std::size_t used_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace anydat::os
