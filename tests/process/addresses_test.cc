// SPDX-License-Identifier: BSD-3-Clause
// Devices whose addresses come and go, in a network namespace of a process's own.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "circumstances.h"
#include "raw_peer.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

const char* const kFirst = "127.0.0.1";
const char* const kSecond = "10.77.0.1";
const char* const kThird = "10.77.1.1";

sockaddr_in address_of(const std::string& text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, text.c_str(), &address.sin_addr);
  return address;
}

// The loopback device's first address comes with its being up; others have labels, "lo:1".
void configure_address(const std::string& label, unsigned long what, const sockaddr_in& address) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  label.copy(request.ifr_name, sizeof request.ifr_name - 1);
  if (what == SIOCSIFFLAGS) {
    request.ifr_flags = address.sin_family == AF_INET ? IFF_UP : 0;
  } else {
    std::memcpy(&request.ifr_addr, &address, sizeof address);
  }
  if (::ioctl(socket.get(), what, &request) != 0) throw std::runtime_error("ioctl " + label);
}

bool own_network() {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWNET) != 0) return false;
  configure_address("lo", SIOCSIFFLAGS, address_of(kFirst));
  return true;
}

void play_moving_host(RoleContext& context) {
  if (!own_network()) {
    context.parent.say("not permitted");
    return;
  }
  Side server(context.wire);
  Side client(context.wire);
  const DAT_CONN_QUAL qual = server.listen();
  // Whether that address answers now, and by which of its own the caller is known then.
  const auto caller_seen_at = [&](const char* where) -> std::string {
    sockaddr_in there = address_of(where);
    const Ep ep(client);
    require(dat_ep_connect(ep.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&there), qual, DAT_TIMEOUT_INFINITE, 0,
                           nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    const auto outcome = wait_event(client.connect.get(), std::chrono::milliseconds(1));
    const auto request = outcome ? std::nullopt : wait_event(server.requests.get());
    if (!request) return "nobody";
    const DAT_CR_HANDLE cr = request->event_data.cr_arrival_event_data.cr_handle;
    DAT_CR_PARAM param{};
    require(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(param.remote_ia_address_ptr)->sin_addr, text,
                sizeof text);
    require(dat_cr_reject(cr), "dat_cr_reject");
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
    return text;
  };
  EXPECT_EQ(caller_seen_at(kFirst), kFirst);
  configure_address("lo:1", SIOCSIFADDR, address_of(kSecond));
  std::string seen;
  EXPECT_TRUE(eventually([&] { return (seen = caller_seen_at(kSecond)) != "nobody"; }))
      << "the address that has come is not served";
  // Of the addresses of its device, the one that the other end is nearest to.
  EXPECT_EQ(seen, kSecond);
  EXPECT_EQ(caller_seen_at(kFirst), kFirst);
  // One that comes while its device is down, as containers get them: of an IPv4 address nothing is told when that goes
  // up. The first has gone meanwhile.
  if (give_up_ipv6()) {
    set_device_up(false);
    configure_address("lo:2", SIOCSIFADDR, address_of(kThird));
    EXPECT_FALSE(wait_event(server.requests.get(), quiet_time()));  // in which it looks, and does not find the address
    set_device_up(true);
    EXPECT_TRUE(eventually([&] { return caller_seen_at(kThird) != "nobody"; }))
        << "the address whose device has come up is not served";
    EXPECT_TRUE(eventually([&] { return caller_seen_at(kFirst) == kFirst; }));
  }
  context.parent.say("done");
}

const Role kMovingHost("moving_host", play_moving_host);

TEST(Addresses, OfADeviceAreServedAndUsedAsTheyCome) {
  PeerProcess host("moving_host", wire_by_name("tcp"));
  if (host.channel().hear(3 * patience()) == "not permitted") GTEST_SKIP() << "no network namespaces here";
  EXPECT_EQ(host.wait_exit(), 0);
}

}  // namespace
}  // namespace anydat::test
