// SPDX-License-Identifier: BSD-3-Clause
// Names that one of all processes of a network namespace can have at a time, whatever their users.
#pragma once

#include <string>

#include "base/unique_fd.h"

namespace anydat::os {

// The name is its owner's as long as the descriptor is open. Empty, and the reason in `error`: EADDRINUSE if somebody
// has it. A name has at most 100 bytes.
base::UniqueFd claim_name(const std::string& name, int& error);
// Whether anybody has it. Where that cannot be found out, for the lack of a descriptor, nobody has.
bool is_claimed(const std::string& name);

}  // namespace anydat::os
