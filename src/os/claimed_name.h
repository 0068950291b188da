// SPDX-License-Identifier: BSD-3-Clause
// Names that one of all processes of a network namespace can have at a time, whatever their users.
#pragma once

#include <string>

#include "os/unique_fd.h"

namespace anydat::os {

// The name is taken as long as the descriptor is open. Empty, and the reason in `error`: EADDRINUSE if it is taken
// already, ENAMETOOLONG beyond 107 bytes.
UniqueFd claim_name(const std::string& name, int& error);
// Whether the name is taken; false where that cannot be found out for the lack of a descriptor. A name beyond 107
// bytes, which nothing can claim, counts as taken.
bool is_claimed(const std::string& name);

}  // namespace anydat::os
