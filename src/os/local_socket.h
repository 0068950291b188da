// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/unique_fd.h"

namespace anydat::os {

// A local socket that keeps the bounds of messages (SOCK_SEQPACKET) and does not block. Empty, with errno set, if there
// is no descriptor or no memory for it.
base::UniqueFd local_socket();

}  // namespace anydat::os
