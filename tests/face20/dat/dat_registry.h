// SPDX-License-Identifier: BSD-3-Clause
// As udat.h beside it.
#pragma once
#include <dat2/dat_registry.h>
