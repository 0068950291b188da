// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydat::os {

// Copies to an address of this process by way of the kernel, in ascending order: what may not be written there is
// refused, and no signal comes of it. False: refused. Where the kernel does not serve, it is a plain copy. Waits, as
// any store does, for a page that is not in memory.
bool write_by_kernel(std::uint64_t to, const std::byte* from, std::size_t count);

}  // namespace anydat::os
