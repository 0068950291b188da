// SPDX-License-Identifier: BSD-3-Clause
// Service points and what is around them: privileges, and callers that choose the address that they call at.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

// ---- ports that need a privilege

bool give_up_low_ports() {
  int lowest = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_unprivileged_port_start") >> lowest;
  if (lowest < 1024) return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return false;
  sets[0].effective &= ~(1u << CAP_NET_BIND_SERVICE);
  return ::syscall(SYS_capset, &header, sets.data()) == 0;
}

// Arguments: "auto", "shm" or "tcp".
void play_unprivileged(RoleContext& context) {
  if (!give_up_low_ports()) {
    context.parent.say("every port is free to all here");
    return;
  }
  Side side({.name = "chosen", .ia_name = "soft-lo", .env = {{"DAT_WIRE", context.arguments.at(0)}}});
  DAT_RETURN rc = DAT_CONN_QUAL_IN_USE;
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  for (DAT_CONN_QUAL qual = 600; qual < 1024 && DAT_GET_TYPE(rc) == DAT_CONN_QUAL_IN_USE; ++qual) {
    rc = dat_psp_create(side.ia.get(), qual, side.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp);
  }
  const char* type = "";
  const char* subtype = "";
  dat_strerror(rc, &type, &subtype);
  if (rc == DAT_SUCCESS) require(dat_psp_free(psp), "dat_psp_free");
  context.parent.say(type);
}

const Role kUnprivileged("unprivileged_server", play_unprivileged);

class PrivilegedPort : public testing::TestWithParam<std::string> {};

// PSP-CREATE-9: a service point that only a part of its peers can reach is none.
TEST_P(PrivilegedPort, WithoutThePrivilegeIsNotAvailable) {
  PeerProcess server("unprivileged_server", wire_by_name("shm"), {GetParam()});
  const std::string type = server.channel().hear();
  if (type.starts_with("every port")) GTEST_SKIP() << type;
  EXPECT_EQ(type, GetParam() == "shm" ? "DAT_SUCCESS" : "DAT_CONN_QUAL_UNAVAILABLE");
  EXPECT_EQ(server.wait_exit(), 0);
}

INSTANTIATE_TEST_SUITE_P(Wires, PrivilegedPort, testing::Values("auto", "shm", "tcp"),
                         [](const auto& its) { return its.param; });

// ---- addresses of the callers' choice

// All of 127/8 is this host, so a caller chooses one of 2^24 addresses to call at.
TEST(ServicePoint, AddressesThatCallersChooseAreNotKept) {
  if (built_with_sanitizer()) GTEST_SKIP() << "a sanitizer keeps what has been freed";
  Side server(wire_by_name("shm"));
  Side client(wire_by_name("shm"));
  const DAT_CONN_QUAL qual = server.listen();
  const Ep ep(client);
  const auto call = [&](std::uint32_t number) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_addr.s_addr = htonl(0x7f010000u + number);
    require(dat_ep_connect(ep.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&there), qual, DAT_TIMEOUT_INFINITE, 0,
                           nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    const DAT_EVENT request = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    const auto& data = request.event_data.cr_arrival_event_data;
    EXPECT_EQ(reinterpret_cast<const sockaddr_in*>(data.local_ia_address_ptr)->sin_addr.s_addr, there.sin_addr.s_addr);
    require(dat_cr_reject(data.cr_handle), "dat_cr_reject");
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
    require(dat_ep_reset(ep.get()), "dat_ep_reset");
  };
  constexpr std::uint32_t kWarmUp = 2500;  // names of connections rest for a while
  constexpr std::uint32_t kCalls = 500;
  for (std::uint32_t i = 0; i < kWarmUp; ++i) call(i);
  const std::size_t before = ::mallinfo2().uordblks;
  for (std::uint32_t i = kWarmUp; i < kWarmUp + kCalls; ++i) call(i);
  const std::size_t after = ::mallinfo2().uordblks;
  // An address takes 28 bytes.
  EXPECT_LT(after, before + kCalls * 10);
}

}  // namespace
}  // namespace anydat::test
