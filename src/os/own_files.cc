// SPDX-License-Identifier: BSD-3-Clause
#include "os/own_files.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cstdlib>
#include <memory>

namespace anydat::os {

int descriptor_of(dev_t device, ino_t inode) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"), closedir);
  if (!directory) return -1;
  while (const dirent* entry = readdir(directory.get())) {
    char* end = nullptr;
    const long number = std::strtol(entry->d_name, &end, 10);
    if (end == entry->d_name || *end != 0) continue;
    if (is_file(static_cast<int>(number), device, inode)) return static_cast<int>(number);
  }
  return -1;
}

bool is_file(int descriptor, dev_t device, ino_t inode) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && status.st_ino == inode && status.st_dev == device;
}

}  // namespace anydat::os
