// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "dapl/types.h"
#include "nic/event.h"

namespace anydat::dapl {

using nic::Event;
using nic::EventKind;

// Why an asynchronous event came; what a number means goes by the type of the object.
namespace async_reason {
inline constexpr std::uint32_t kIaCatastrophic = 0;
inline constexpr std::uint32_t kIaOther = 1;
inline constexpr std::uint32_t kEpTransferToError = 0;
inline constexpr std::uint32_t kEpSoftHighWatermark = 2;
inline constexpr std::uint32_t kEvdOverflow = 0;
inline constexpr std::uint32_t kSrqOther = 1;
inline constexpr std::uint32_t kSrqLowWatermark = 2;
}  // namespace async_reason

}  // namespace anydat::dapl
