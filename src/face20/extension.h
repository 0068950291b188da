// SPDX-License-Identifier: BSD-3-Clause
// The operations of the InfiniBand extension that are not posts: handle_extendedop() finds them by their codes.
#pragma once

#include <cstdarg>

#include "dapl/error.h"
#include "face/dat.h"

namespace anydat::face {

// extension_counters.cc
dapl::Error query_counters(DAT_HANDLE handle, va_list arguments);
dapl::Error print_counters(DAT_HANDLE handle, va_list arguments);
dapl::Error switch_counters(DAT_HANDLE handle, va_list arguments);  // start and stop

// extension_query.cc
dapl::Error open_query(va_list arguments);
dapl::Error close_query(DAT_HANDLE handle);

}  // namespace anydat::face
