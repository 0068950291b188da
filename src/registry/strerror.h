// SPDX-License-Identifier: BSD-3-Clause
// The names of return codes, for dat_strerror() and for our own messages and tools.
#pragma once

#include "face/dat.h"

namespace anydat::registry {

// The name of the constant for the type of `code`, e.g. "DAT_INVALID_HANDLE", or nullptr if there is none. Class bits
// do not matter. The string lasts for the life of the process.
const char* return_type_name(DAT_RETURN code);

// The same for the subtype; "" for DAT_NO_SUBTYPE. Which type the subtype belongs to does not matter.
const char* return_subtype_name(DAT_RETURN code);

}  // namespace anydat::registry
