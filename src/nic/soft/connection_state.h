// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace anydat::nic::soft {

// Of a software queue pair. `ending`: the connection is over, but the peer is still writing into a buffer; nothing has
// been flushed yet.
enum class ConnectionState : std::uint8_t { idle, connecting, accepting, connected, draining, ending, closed };

}  // namespace anydat::nic::soft
