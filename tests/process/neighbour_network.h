// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <istream>
#include <map>
#include <string>

namespace anydat::test {

// What a neighbour does to its network namespace when the test tells it to: its addresses come and go, its device goes
// down and up. By the name of the command; each takes its words from the stream and gives its answer.
using NetworkCommand = std::function<std::string(std::istream&)>;
const std::map<std::string, NetworkCommand>& network_commands();

}  // namespace anydat::test
