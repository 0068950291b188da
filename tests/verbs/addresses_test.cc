// SPDX-License-Identifier: BSD-3-Clause
// A device with several addresses: ANYDAT_TEST_ADDRESSES names those that it has been given, separated by commas.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>

#include "support/dat_fixture.h"
#include "verbs/device_test.h"

namespace anydat::test {
namespace {

using DeviceAddresses = DeviceTest;

sockaddr_storage parsed(const std::string& text) {
  sockaddr_storage result{};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&result);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&result);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
  } else if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
  } else {
    throw std::runtime_error("no address: " + text);
  }
  return result;
}

TEST_P(DeviceAddresses, AServicePointIsReachedByEachOfThem) {
  const char* const names = std::getenv("ANYDAT_TEST_ADDRESSES");
  if (!names) GTEST_SKIP() << "ANYDAT_TEST_ADDRESSES names no addresses";
  const DAT_CONN_QUAL qualifier = server.listen();
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    SCOPED_TRACE(name);
    sockaddr_storage address = parsed(name);
    Connection connection{Ep(server), Ep(client)};
    require(dat_ep_connect(connection.client.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), qualifier,
                           DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect to " + name);
    const DAT_EVENT request = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    const auto& arrival = request.event_data.cr_arrival_event_data;
    EXPECT_EQ(arrival.conn_qual, qualifier);
    require(dat_cr_accept(arrival.cr_handle, connection.server.get(), 0, nullptr), "dat_cr_accept");
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    exchange(connection);
    // Each end names the addresses that the connection runs over.
    const DAT_EP_PARAM ends = connection.server.query();
    const auto* const at = reinterpret_cast<const sockaddr*>(ends.local_ia_address_ptr);
    ASSERT_EQ(at->sa_family, address.ss_family);
    char text[INET6_ADDRSTRLEN];
    const void* const bytes = at->sa_family == AF_INET
                                  ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(at)->sin_addr)
                                  : &reinterpret_cast<const sockaddr_in6*>(at)->sin6_addr;
    EXPECT_EQ(inet_ntop(at->sa_family, bytes, text, sizeof text), name);
    connection.client.reset();
    wait_event(server.connect.get());
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceAddresses);
INSTANTIATE_TEST_SUITE_P(Devices, DeviceAddresses, testing::ValuesIn(device_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
