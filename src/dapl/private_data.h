// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include "dapl/error.h"
#include "dapl/types.h"

namespace anydat::dapl {

// PD-1, PD-2. `most`: how many bytes of it the adapter carries.
inline Error read_private_data(const char* call, std::size_t most, Count size, const void* data,
                               std::span<const std::byte>& out) {
  if (size < 0 || static_cast<std::size_t>(size) > most) {
    return fail(Argument::private_data_size, "{}: private_data_size {} is not between 0 and {}", call, size, most);
  }
  if (size > 0 && !data) {
    return fail(Argument::private_data_size, "{}: private_data_size is {}, but private_data is NULL", call, size);
  }
  out = size > 0 ? std::span(static_cast<const std::byte*>(data), static_cast<std::size_t>(size))
                 : std::span<const std::byte>{};
  return kSuccess;
}

}  // namespace anydat::dapl
