// SPDX-License-Identifier: BSD-3-Clause
// Datagrams of a local socket, and the descriptors that travel with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/unique_fd.h"

namespace anydat::os {

// False if it has not gone as a whole; nothing goes if the program has closed the socket and has a file of its own by
// its number. Never waits.
bool send_with_descriptors(const base::UniqueFd& socket, std::span<const std::byte> bytes,
                           std::span<const int> descriptors);

enum class Arrival : std::uint8_t { nothing_yet, datagram, hangup };
struct Arrived {
  Arrival what = Arrival::nothing_yet;
  std::size_t bytes = 0;
  bool cut_short = false;  // it was longer than the room
};
// The first descriptors that came with it go to `wanted`, and the others are closed: what a peer passes along is this
// process's from then on, whether it was asked for or not. Never waits. Requires: `wanted` is empty ones, at most four.
Arrived receive_with_descriptors(int socket, std::span<std::byte> room, std::span<base::UniqueFd> wanted);

}  // namespace anydat::os
