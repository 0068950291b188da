// SPDX-License-Identifier: BSD-3-Clause
// Files by their names.
#pragma once

#include <optional>
#include <string>

namespace anydat::os {

// The whole file, or nothing with errno set. A directory can be opened and not read; it counts as no file. May wait for
// the file system, and is no cancellation point.
std::optional<std::string> read_file(const char* path);
// 0 if the real user of this process may read and write it, else an error, ENOENT if it is not there.
int access_error(const char* path);
// The folder that a file is in once all links have been followed; empty where that cannot be told.
// The folder of what the path leads to, links being followed; empty if there is nothing, or that cannot be told.
std::string real_folder_of(const char* path);
// Whether there is one, links being followed; not, where that cannot be told.
bool exists(const std::string& path);

}  // namespace anydat::os
