// SPDX-License-Identifier: BSD-3-Clause
// The files that this process has open.
#pragma once

#include <sys/types.h>

namespace anydat::os {

// The number of a descriptor of this file, or -1. Descriptors are looked at by their numbers alone: none is duplicated
// or opened, because closing any descriptor of a file gives up all record locks (POSIX) that the process has on it.
int descriptor_of(dev_t device, ino_t inode);
// Is it still what that number stands for?
bool is_file(int descriptor, dev_t device, ino_t inode);

}  // namespace anydat::os
