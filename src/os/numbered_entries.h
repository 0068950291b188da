// SPDX-License-Identifier: BSD-3-Clause
// The entries of a folder that are numbers, as those of /proc are.
#pragma once

#include <array>
#include <cstddef>

#include "base/unique_fd.h"

namespace anydat::os {

class NumberedEntries {
 public:
  explicit NumberedEntries(const char* folder);
  // False if there are no more, or no such folder.
  bool next(int& number);

 private:
  base::UniqueFd folder_;
  alignas(8) std::array<std::byte, 4096> entries_;
  std::size_t used_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace anydat::os
