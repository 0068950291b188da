// SPDX-License-Identifier: BSD-3-Clause
// Files in memory, without a name, that other processes can map.
#pragma once

#include <cstddef>

#include "base/unique_fd.h"

namespace anydat::os {

// One that can be sealed and shows zeros. Empty, with errno set, if there is no memory, no descriptor,
// or a limit forbids files of that size.
base::UniqueFd make_memory_file(const char* label, std::size_t bytes);

}  // namespace anydat::os
