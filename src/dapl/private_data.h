// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <dat/udat.h>

#include <span>

#include "dapl/error.h"
#include "nic/adapter.h"

namespace anydat::dapl {

// PD-1, PD-2
inline DAT_RETURN read_private_data(const char* call, const nic::Adapter& nic, DAT_COUNT size, const void* data,
                                    DAT_RETURN subtype, std::span<const std::byte>& out) {
  if (size < 0 || static_cast<std::size_t>(size) > nic.info().private_data_max) {
    return fail(DAT_INVALID_PARAMETER, subtype, "{}: private_data_size {} is not between 0 and {}", call, size,
                nic.info().private_data_max);
  }
  if (size > 0 && !data) {
    return fail(DAT_INVALID_PARAMETER, subtype, "{}: private_data_size is {}, but private_data is NULL", call, size);
  }
  out = size > 0 ? std::span(static_cast<const std::byte*>(data), static_cast<std::size_t>(size))
                 : std::span<const std::byte>{};
  return DAT_SUCCESS;
}

}  // namespace anydat::dapl
