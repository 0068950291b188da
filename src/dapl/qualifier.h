// SPDX-License-Identifier: BSD-3-Clause
// The numbers that service points are known by.
#pragma once

#include <dat/udat.h>

#include "dapl/error.h"

namespace anydat::dapl {

// Every wire carries all 64 bits of them; 0 is none (PSP-CREATE-8, EP-CONN-3).
inline DAT_RETURN check_qualifier(const char* call, DAT_CONN_QUAL qual, DAT_RETURN subtype) {
  if (qual != 0) return DAT_SUCCESS;
  return fail(DAT_INVALID_PARAMETER, subtype, "{}: conn_qual is 0", call);
}

}  // namespace anydat::dapl
