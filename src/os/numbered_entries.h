// SPDX-License-Identifier: BSD-3-Clause
// The entries of a folder that are numbers, as those of /proc are.
#pragma once

#include "os/folder_entries.h"

namespace anydat::os {

class NumberedEntries {
 public:
  explicit NumberedEntries(const char* folder) : entries_(folder) {}
  // False if there are no more, or no such folder.
  bool next(int& number);

 private:
  FolderEntries entries_;
};

}  // namespace anydat::os
