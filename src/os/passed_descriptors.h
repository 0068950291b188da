// SPDX-License-Identifier: BSD-3-Clause
// Datagrams of a local socket, and the descriptors that travel with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "os/slow_close.h"

namespace anydat::os {

// False if it has not gone as a whole; nothing goes if the program has closed the socket and has a file of its own by
// its number. Never waits.
bool send_with_descriptors(const LocalSocket& socket, std::span<const std::byte> bytes,
                           std::span<const int> descriptors);

enum class Arrival : std::uint8_t { nothing_yet, datagram, hangup };
struct Arrived {
  Arrival what = Arrival::nothing_yet;
  std::size_t bytes = 0;
  bool cut_short = false;  // it was longer than the room
};
// The descriptors that came with it go to `wanted`. A peer that passes more than that is told as one that has hung up,
// and what it has passed stays in the socket; so is a peer that passes any while too many of its descriptors are still
// to be closed (os/slow_close.h). Never waits.
// Requires: `wanted` is empty ones, at most four.
Arrived receive_with_descriptors(const LocalSocket& socket, std::span<std::byte> room, std::span<PassedFd> wanted);

}  // namespace anydat::os
