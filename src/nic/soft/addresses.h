// SPDX-License-Identifier: BSD-3-Clause
// The addresses of this host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nic/types.h"

namespace anydat::nic::soft {

struct HostAddress {
  std::string device;
  Address address;
};

// Addresses of devices that are up; IPv4 before IPv6. None, too, if there is no descriptor to ask for them with.
std::vector<HostAddress> host_addresses();
// Those of a scope, "*" or a device. Nothing if there is no descriptor to ask for them with, and errno says so.
std::optional<std::vector<Address>> addresses_of(const std::string& scope);
// Those that have any; nothing as above.
std::optional<std::vector<std::string>> host_devices();
bool same_host(const Address& a, const Address& b);
// The device an address belongs to; 127/8 and ::1 are those of "lo", without asking the host. unreachable: none of this
// host, or of one that does not tell its addresses; no_memory: there is no descriptor or memory to ask with, and it may
// be either.
Status device_of(const Address& address, std::string& device);
Address loopback_address();

}  // namespace anydat::nic::soft
