// SPDX-License-Identifier: BSD-3-Clause
// What errors of the system's calls say.
#pragma once

#include <cerrno>

namespace anydat::os {

// Of descriptors or memory, the caller's or the machine's: what was asked for may be had later.
inline bool is_lack(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

}  // namespace anydat::os
