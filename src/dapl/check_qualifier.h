// SPDX-License-Identifier: BSD-3-Clause
// The numbers that service points are known by.
#pragma once

#include "dapl/error.h"
#include "nic/types.h"

namespace anydat::dapl {

// Every wire carries all 64 bits of them; 0 is none (PSP-CREATE-8, EP-CONN-3).
inline Error check_qualifier(const char* call, nic::ConnQual qual, Argument argument) {
  if (qual != 0) return kSuccess;
  return fail(argument, "{}: conn_qual is 0", call);
}

}  // namespace anydat::dapl
