// SPDX-License-Identifier: BSD-3-Clause
#include "neighbour_network.h"

#include <sys/socket.h>

#include <filesystem>

#include "circumstances.h"

namespace anydat::test {
namespace {

// How many sockets of this process hear of addresses.
int sockets_for_news() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    int domain = 0;
    socklen_t size = sizeof domain;
    if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_NETLINK) ++count;
  }
  return count;
}

}  // namespace

const std::map<std::string, NetworkCommand>& network_commands() {
  static const std::map<std::string, NetworkCommand> all{
      {"take-address",
       [](std::istream& in) {
         std::string address, label;
         in >> address >> label;
         take_address(address, label);
         return std::string();
       }},
      {"lose-address",
       [](std::istream& in) {
         std::string label;
         in >> label;
         lose_address(label);
         return std::string();
       }},
      {"device-down",
       [](std::istream&) {
         set_device_up(false);
         return std::string();
       }},
      {"device-up",
       [](std::istream&) {
         set_device_up(true);
         return std::string();
       }},
      {"without-ipv6", [](std::istream&) { return std::string(give_up_ipv6() ? "yes" : "no"); }},
      {"count-news", [](std::istream&) { return std::to_string(sockets_for_news()); }},
  };
  return all;
}

}  // namespace anydat::test
