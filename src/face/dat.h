// SPDX-License-Identifier: BSD-3-Clause
// The C headers of the version that this file is compiled for. The sources of face/ are compiled once for each version,
// with ANYDAT_FACE set to it; what differs between the versions beyond layouts and numbers is in face12/ and face20/.
#pragma once

#if ANYDAT_FACE == 12
#include <dat/udat.h>
// Needs the types of udat.h.
#include <dat/dat_registry.h>
#elif ANYDAT_FACE == 20
#include <dat2/udat.h>
// Needs the types of udat.h.
#include <dat2/dat_registry.h>
#else
#error "ANYDAT_FACE names the version of the interface: 12 or 20"
#endif
