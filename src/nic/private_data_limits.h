// SPDX-License-Identifier: BSD-3-Clause
// How many bytes of private data a program may give to a connection's set-up (AdapterInfo::private_data_max,
// reject_data_max).
#pragma once

#include <cstddef>

namespace anydat::nic {

// On our own wires; and what a NIC adds for itself travels apart from it (PD-9).
inline constexpr std::size_t kPrivateDataMax = 256;

// By a device over InfiniBand or RoCE, whose reply has 196 bytes and whose reject has 148, some of them ours
// (verbs/cm_head.h).
inline constexpr std::size_t kIbPrivateDataMax = 160;
inline constexpr std::size_t kIbRejectDataMax = 132;
// By a device over iWARP. Linux has 256 in all and needs some for how many Reads may be under way (RFC 6581, section
// 4.1). Soft-iWARP refuses a connection with 252.
inline constexpr std::size_t kIwarpPrivateDataMax = 192;

}  // namespace anydat::nic
