// SPDX-License-Identifier: BSD-3-Clause
#include "face/objects.h"

#include "face/edge.h"

namespace anydat::face {

dapl::Error bad_handle(const char* call, const char* argument, DAT_HANDLE handle, dapl::Detail detail) {
  return dapl::fail(dapl::Code::invalid_handle, detail, "{}: {} {} is no live handle of the kind that is needed here",
                    call, argument, handle);
}

dapl::Error check_query(const char* call, std::uint64_t mask, std::uint64_t all, const void* result,
                        const dapl::Habit& unknown_bits, unsigned place) {
  if ((mask & ~all) != 0 && !unknown_bits) {
    return dapl::fail(at(place), "{}: mask {:#x} has bits outside {:#x}{}", call, mask, all, unknown_bits.hint);
  }
  if (!result) return dapl::fail(at(place + 1), "{}: the structure for the result is NULL", call);
  if (!is_aligned(result)) return dapl::fail(at(place + 1), "{}: the structure for the result is not aligned", call);
  return dapl::kSuccess;
}

}  // namespace anydat::face
