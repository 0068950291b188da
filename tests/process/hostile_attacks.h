// SPDX-License-Identifier: BSD-3-Clause
// What a hostile peer may do: each attack is one function, made up of random choices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "hostile_target.h"
#include "raw_peer.h"
#include "seed.h"

namespace anydat::test {

struct Attack {
  std::string name;
  // Does its worst to the target. The peers that it keeps stay connected, and silent, until the end of the test.
  std::function<void(HostileTarget& target, Random& random, std::vector<RawPeer>& kept)> run;
  bool possible = true;  // this system has what it needs
};
std::ostream& operator<<(std::ostream& out, const Attack& attack);

const std::vector<Attack>& attacks_on_greetings();    // before there is a link
const std::vector<Attack>& attacks_on_descriptors();  // segments that are none
const std::vector<Attack>& attacks_on_links();        // cells, rings and bells
const std::vector<Attack>& attacks_on_memory();       // RDMA, and long messages

// Connects by hand, is given a grant to write into the target's memory, and says that it is just doing so. Nothing if
// the target prefers another way to take large messages.
std::optional<RawPeer> begin_writing_into(const std::string& service, DAT_CONN_QUAL qualifier, std::uint32_t& name);

// Cells with random fields: some of them make sense. `names` are connections of the target to talk to.
RawCell random_cell(Random& random, const std::vector<std::uint32_t>& names);
std::vector<std::byte> random_bytes(Random& random, std::size_t count);

// Descriptors that are no segment, in all ways we can think of. Called with the number of a way.
inline constexpr int kBadDescriptors = 14;
Fd bad_descriptor(int way);

}  // namespace anydat::test
