// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <span>
#include <string_view>

#include "nic/verbs/cm.h"
#include "os/folder_entries.h"
#include "os/interface_addresses.h"
#include "os/named_file.h"

namespace anydat::nic::verbs {

namespace {

std::span<const std::uint8_t> bytes_of(const Address& address) {
  if (address.generic.sa_family == AF_INET6) return address.v6.sin6_addr.s6_addr;
  return {reinterpret_cast<const std::uint8_t*>(&address.v4.sin_addr), sizeof address.v4.sin_addr};
}

unsigned prefix_of(const sockaddr_in6& mask) {
  unsigned bits = 0;
  const Address bytes = address_of(reinterpret_cast<const sockaddr*>(&mask));
  for (const std::uint8_t byte : bytes_of(bytes)) bits += static_cast<unsigned>(std::popcount(byte));
  return bits;
}

// How many bits two addresses of one kind have in common at their beginnings.
unsigned common_bits(const Address& a, const Address& b) {
  const auto left = bytes_of(a), right = bytes_of(b);
  unsigned bits = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const auto differ = static_cast<std::uint8_t>(left[i] ^ right[i]);
    bits += static_cast<unsigned>(std::countl_zero(differ));
    if (differ != 0) break;
  }
  return bits;
}

bool same(const Address& a, const Address& b) {
  if (a.generic.sa_family != b.generic.sa_family) return false;
  if (a.generic.sa_family == AF_INET6 && a.v6.sin6_scope_id != b.v6.sin6_scope_id) return false;
  return std::ranges::equal(bytes_of(a), bytes_of(b));
}

}  // namespace

std::set<std::string> network_devices(const std::string& device) {
  std::set<std::string> names;
  const std::string ports = fmt::format("/sys/class/infiniband/{}/ports", device);
  os::FolderEntries each_port(ports.c_str());
  for (std::string_view port; each_port.next(port);) {
    const std::string folder = fmt::format("{}/{}/gid_attrs/ndevs", ports, port);
    os::FolderEntries each_entry(folder.c_str());
    for (std::string_view entry; each_entry.next(entry);) {
      const auto line = os::read_file(fmt::format("{}/{}", folder, entry).c_str());
      if (line && line->size() > 1) names.insert(line->substr(0, line->size() - 1));  // unused entries cannot be read
    }
  }
  return names;
}

std::vector<DeviceAddress> addresses_of_device(rdma_event_channel* channel, const std::string& device) {
  std::vector<DeviceAddress> result;
  const auto all = os::interface_addresses();
  if (!all) return result;
  // Asking by an address opens the device that it leads to, for the life of the process, and an open device cannot be
  // removed: so only addresses are tried that may be this one's.
  const std::set<std::string> carriers = network_devices(device);
  for (const os::InterfaceAddress& entry : *all) {
    if (!carriers.empty() && !carriers.contains(entry.label)) continue;
    const Address address = address_of(reinterpret_cast<const sockaddr*>(&entry.address));
    if (std::ranges::any_of(result, [&](const DeviceAddress& known) { return same(known.address, address); })) continue;
    rdma_cm_id* id = nullptr;
    if (is_loopback(address) || create_id(channel, &id, nullptr) != 0) continue;
    const CmIdPtr owner(id);
    sockaddr_storage any_port = socket_address(address, 0);
    if (bind_id(id, reinterpret_cast<sockaddr*>(&any_port)) != 0 || !id->verbs) continue;
    if (device == ibv_get_device_name(id->verbs->device)) result.push_back({address, prefix_of(entry.mask)});
  }
  return result;
}

const Address* source_for(const std::vector<DeviceAddress>& addresses, const Address& remote) {
  if (is_loopback(remote)) return addresses.empty() ? nullptr : &addresses.front().address;
  const DeviceAddress* best = nullptr;
  unsigned best_bits = 0;
  for (const DeviceAddress& one : addresses) {
    if (one.address.generic.sa_family != remote.generic.sa_family) continue;
    // Addresses of a link mean nothing on another.
    const std::uint32_t scope = remote.generic.sa_family == AF_INET6 ? remote.v6.sin6_scope_id : 0;
    if (scope != 0 && one.address.v6.sin6_scope_id != 0 && one.address.v6.sin6_scope_id != scope) continue;
    const unsigned bits = common_bits(one.address, remote) >= one.prefix ? one.prefix + 1 : 0;
    // The address itself is reached from itself.
    const unsigned rank = same(one.address, remote) ? 1000 : bits;
    if (best && rank <= best_bits) continue;
    best = &one;
    best_bits = rank;
  }
  return best ? &best->address : nullptr;
}

}  // namespace anydat::nic::verbs
