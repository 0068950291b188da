// SPDX-License-Identifier: BSD-3-Clause
// Our provider as a registry sees it: opened by name, and registered by dat_provider_init() under any name that a
// dat.conf gives it, in our own registry or in another of version 1.2 that has loaded this library.
#pragma once

#include "face/dat.h"

#include <string>

#include "dapl/error.h"
#include "registry/tuple.h"

namespace anydat::face {

// Opens the built-in adapter that the tuple names; the instance reports the tuple's name, version and thread safety.
DAT_RETURN open_builtin(const registry::Tuple& tuple, DAT_COUNT async_min_qlen, DAT_EVD_HANDLE* async_evd,
                        DAT_IA_HANDLE* ia);

// The same without opening it, for a handle that is good for queries (D2-QUERY). The second is for a name that this
// Provider has been registered by, wherever that was.
dapl::Error query_builtin(const registry::Tuple& tuple, DAT_HANDLE* query);
dapl::Error query_registered(const char* name, DAT_HANDLE* query);

}  // namespace anydat::face
