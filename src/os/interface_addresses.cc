// SPDX-License-Identifier: BSD-3-Clause
#include "os/interface_addresses.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <cstring>
#include <memory>

namespace anydat::os {

std::optional<std::vector<InterfaceAddress>> interface_addresses() {
  std::vector<InterfaceAddress> result;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    const std::size_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
      if (!entry->ifa_addr || entry->ifa_addr->sa_family != family) continue;
      InterfaceAddress& added = result.emplace_back();
      added.label = entry->ifa_name;
      std::memcpy(&added.address, entry->ifa_addr, bytes);
      if (entry->ifa_netmask) std::memcpy(&added.mask, entry->ifa_netmask, bytes);
      added.up = (entry->ifa_flags & IFF_UP) != 0;
    }
  }
  return result;
}

}  // namespace anydat::os
