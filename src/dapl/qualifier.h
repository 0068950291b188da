// SPDX-License-Identifier: BSD-3-Clause
// The numbers that service points are known by.
#pragma once

#include <dat/udat.h>

#include "dapl/error.h"
#include "nic/adapter.h"

namespace anydat::dapl {

// DAT's qualifiers have 64 bits, and the wires of an adapter for a device may carry fewer of them. What they do not
// carry names no service point, and must not be cut until it names another one (PSP-CREATE-8, EP-CONN-3).
inline DAT_RETURN check_qualifier(const char* call, const nic::Adapter& nic, DAT_CONN_QUAL qual, DAT_RETURN subtype) {
  const nic::ConnQual most = nic.info().qual_max;
  if (qual != 0 && qual <= most) return DAT_SUCCESS;
  return fail(DAT_INVALID_PARAMETER, subtype, "{}: conn_qual {} is not between 1 and {}", call,
              static_cast<std::uint64_t>(qual), most);
}

}  // namespace anydat::dapl
