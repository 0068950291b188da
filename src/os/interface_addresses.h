// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <netinet/in.h>

#include <optional>
#include <string>
#include <vector>

namespace anydat::os {

// An address of a network interface of this host.
struct InterfaceAddress {
  std::string label;       // the interface's name, or that and ':' with more behind it
  sockaddr_in6 address{};  // which has room for one of IPv4 as well
  sockaddr_in6 mask{};     // of the network; without a family if it has none
  bool up = false;
};

// All there are in this network namespace, IPv4 before IPv6. Nothing, with errno set, if there is no descriptor to ask
// for them with, or a sandbox forbids it. May throw std::bad_alloc.
std::optional<std::vector<InterfaceAddress>> interface_addresses();

}  // namespace anydat::os
