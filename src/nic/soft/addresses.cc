// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/addresses.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/interface_addresses.h"
#include "os/lack.h"

namespace anydat::nic::soft {

namespace {

std::optional<std::vector<HostAddress>> ask_for_addresses() {
  std::vector<HostAddress> result;
  const auto all = os::interface_addresses();
  if (!all) return std::nullopt;
  for (const os::InterfaceAddress& entry : *all) {
    if (!entry.up) continue;
    Address address{};
    address.v6 = entry.address;
    // An address may have a label, which is the device's name and ':' with more behind it.
    result.push_back({entry.label.substr(0, entry.label.find(':')), address});
  }
  return result;
}

}  // namespace

std::vector<HostAddress> host_addresses() {
  return ask_for_addresses().value_or(std::vector<HostAddress>());
}

std::optional<std::vector<Address>> addresses_of(const std::string& scope) {
  const std::optional<std::vector<HostAddress>> all = ask_for_addresses();
  if (!all) return std::nullopt;
  std::vector<Address> addresses;
  for (const HostAddress& entry : *all) {
    if (scope == "*" || entry.device == scope) addresses.push_back(entry.address);
  }
  return addresses;
}

std::optional<std::vector<std::string>> host_devices() {
  const std::optional<std::vector<HostAddress>> all = ask_for_addresses();
  if (!all) return std::nullopt;
  std::vector<std::string> devices;
  for (const HostAddress& entry : *all) {
    if (std::find(devices.begin(), devices.end(), entry.device) == devices.end()) devices.push_back(entry.device);
  }
  return devices;
}

bool same_host(const Address& a, const Address& b) {
  if (a.generic.sa_family != b.generic.sa_family) return false;
  if (a.generic.sa_family == AF_INET) return a.v4.sin_addr.s_addr == b.v4.sin_addr.s_addr;
  return std::memcmp(&a.v6.sin6_addr, &b.v6.sin6_addr, sizeof a.v6.sin6_addr) == 0;
}

Status device_of(const Address& address, std::string& device) {
  if ((address.generic.sa_family == AF_INET && ntohl(address.v4.sin_addr.s_addr) >> 24 == 127) ||
      (address.generic.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr))) {
    device = "lo";
    return Status::ok;
  }
  const std::optional<std::vector<HostAddress>> all = ask_for_addresses();
  // A sandbox may forbid to ask.
  if (!all) return os::is_lack(errno) ? Status::no_memory : Status::unreachable;
  const auto entry = std::find_if(all->begin(), all->end(),
                                  [&](const HostAddress& candidate) { return same_host(candidate.address, address); });
  if (entry == all->end()) return Status::unreachable;
  device = entry->device;
  return Status::ok;
}

Address loopback_address() {
  Address address{};
  address.v4.sin_family = AF_INET;
  address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace anydat::nic::soft
