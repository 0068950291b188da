// SPDX-License-Identifier: BSD-3-Clause
// The content of test messages: computed from the connection's seed and the message's number alone, so that a receiver
// knows every byte it must find. A message that is lost, doubled, out of order, of another connection, cut or changed
// differs from the expected one in about every byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace anydat::test {

void fill_message(std::span<std::byte> memory, std::uint64_t seed, std::uint64_t number);
bool is_message(std::span<const std::byte> memory, std::uint64_t seed, std::uint64_t number);

// A well mixed function of both, for whatever two sides derive from a seed.
std::uint64_t mixed(std::uint64_t seed, std::uint64_t number);

}  // namespace anydat::test
