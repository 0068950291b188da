// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <dat/dat_registry.h>
#include <dat/udat.h>

namespace anydat::registry {

// The call table of a handle that a provider other than ours has made, or null if `handle` is not one.
const DAT_PROVIDER* foreign_provider(DAT_HANDLE handle);

}  // namespace anydat::registry
