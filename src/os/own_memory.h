// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydat::os {

// Copies to an address of this process by way of the kernel, in ascending order: what may not be written there is
// refused, and no signal comes of it. False: refused. Where cross-process copies are forbidden, and there is no
// descriptor for another way, it is a plain copy. Waits, as any store does, for a page that is not in memory.
bool write_by_kernel(std::uint64_t to, const std::byte* from, std::size_t count);

// That other way. not_served: there is no room for its descriptors.
enum class KernelWrite : std::uint8_t { done, refused, not_served };
KernelWrite write_by_pipe(std::uint64_t to, const std::byte* from, std::size_t count);

}  // namespace anydat::os
