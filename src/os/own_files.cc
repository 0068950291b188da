// SPDX-License-Identifier: BSD-3-Clause
#include "os/own_files.h"

#include <sys/stat.h>

#include "os/numbered_entries.h"

namespace anydat::os {

// By the calling thread: of a process whose first thread has ended, /proc/self shows nothing.
int descriptor_of(dev_t device, ino_t inode) {
  NumberedEntries numbers("/proc/thread-self/fd");
  for (int number = -1; numbers.next(number);) {
    if (is_file(number, device, inode)) return number;
  }
  return -1;
}

bool is_file(int descriptor, dev_t device, ino_t inode) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && status.st_ino == inode && status.st_dev == device;
}

}  // namespace anydat::os
