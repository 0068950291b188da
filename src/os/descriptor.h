// SPDX-License-Identifier: BSD-3-Clause
// What any descriptor has.
#pragma once

#include "os/unique_fd.h"

namespace anydat::os {

// Calls on it do not wait from now on, through any descriptor of the same open file, whose other flags are cleared.
// False, with errno set, if the system refuses.
bool set_nonblocking(int fd);
// Another one of the same open file, by the lowest number that is free, closed on exec. Empty, with errno set, if there
// is none.
UniqueFd duplicate(int fd);

}  // namespace anydat::os
