// SPDX-License-Identifier: BSD-3-Clause
// Argument checks that many calls share.
#pragma once

#include <cstdint>

#include "dapl/error.h"

namespace anydat::dapl {

// GEN-7, GEN-14: the mask's bits, the result's pointer. `mask_argument` is DAT_INVALID_ARGn for the mask's position;
// the pointer follows it (ARG-2).
template <typename Mask, typename Param>
DAT_RETURN check_query(const char* call, Mask mask, std::uint64_t all, const Param* param,
                       DAT_RETURN mask_argument = DAT_INVALID_ARG2) {
  if ((static_cast<std::uint64_t>(mask) & ~all) != 0) {
    return fail(DAT_INVALID_PARAMETER, mask_argument, "{}: mask {:#x} has bits outside {:#x}", call,
                static_cast<std::uint64_t>(mask), all);
  }
  if (!param) return fail(DAT_INVALID_PARAMETER, mask_argument + 1, "{}: the structure for the result is NULL", call);
  if (reinterpret_cast<std::uintptr_t>(param) % 4 != 0) {
    return fail(DAT_INVALID_PARAMETER, mask_argument + 1, "{}: the structure for the result is not aligned", call);
  }
  return DAT_SUCCESS;
}

}  // namespace anydat::dapl
