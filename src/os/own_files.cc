// SPDX-License-Identifier: BSD-3-Clause
#include "os/own_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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
  // What the kernel knows by itself: the file system may be one that answers when it likes, and not be the file meant.
  struct statx status;
  return statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &status) == 0 &&
         status.stx_ino == inode && makedev(status.stx_dev_major, status.stx_dev_minor) == device;
}

}  // namespace anydat::os
