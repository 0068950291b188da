// SPDX-License-Identifier: BSD-3-Clause
// What differs between the versions of the interface, by the same names for each.
#pragma once

#if ANYDAT_FACE == 12
#include "face12/version.h"
#else
#include "face20/version.h"
#endif
