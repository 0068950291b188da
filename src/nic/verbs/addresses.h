// SPDX-License-Identifier: BSD-3-Clause
// The addresses of this host by which connection management knows an RDMA device, over whichever of its ports.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nic/types.h"
#include "nic/verbs/resources.h"

namespace anydat::nic::verbs {

struct DeviceAddress {
  Address address;
  unsigned prefix;  // bits of it that name its network
};

// The network devices that carry the device's traffic, as the kernel tells; none for one that needs none.
std::set<std::string> network_devices(const std::string& device);

// IPv4 before IPv6, else in the order of the system; the same address once.
std::vector<DeviceAddress> addresses_of_device(rdma_event_channel* channel, const std::string& device);

// From which of them to connect to `remote`: one of the same network, else the first of the same kind. A loopback
// address leads to the device itself, by the first of all. Null if there is none of that kind.
const Address* source_for(const std::vector<DeviceAddress>& addresses, const Address& remote);

}  // namespace anydat::nic::verbs
