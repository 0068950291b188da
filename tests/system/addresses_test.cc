// SPDX-License-Identifier: BSD-3-Clause
// A host whose interfaces this test makes up: what src/os says of them comes from here, and not from the archive of it.
#include "nic/soft/addresses.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "os/interface_addresses.h"

namespace anydat {

namespace {

// What the host has; nothing: it does not tell.
std::optional<std::vector<os::InterfaceAddress>> there;

os::InterfaceAddress v4(const char* label, const char* text, bool up) {
  os::InterfaceAddress result;
  result.label = label;
  result.up = up;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, text, &address.sin_addr);
  std::memcpy(&result.address, &address, sizeof address);
  return result;
}

nic::Address address(const char* text) {
  nic::Address result{};
  result.v6 = v4("", text, true).address;
  return result;
}

}  // namespace

std::optional<std::vector<os::InterfaceAddress>> os::interface_addresses() {
  if (!there) errno = EMFILE;
  return there;
}

TEST(SimulatedInterfaces, AreDevicesByTheirNamesWithoutWhatALabelAdds) {
  there = {v4("lo", "127.0.0.1", true), v4("eth7", "192.0.2.1", true), v4("eth7:1", "192.0.2.2", true)};
  EXPECT_THAT(nic::soft::host_devices(), testing::Optional(testing::ElementsAre("lo", "eth7")));
  const auto addresses = nic::soft::addresses_of("eth7");
  ASSERT_TRUE(addresses);
  EXPECT_EQ(addresses->size(), 2u);
}

TEST(SimulatedInterfaces, AreNoneWhileTheyAreDown) {
  there = {v4("eth7", "192.0.2.1", false), v4("eth8", "192.0.2.2", true)};
  EXPECT_THAT(nic::soft::host_devices(), testing::Optional(testing::ElementsAre("eth8")));
  std::string device;
  EXPECT_EQ(nic::soft::device_of(address("192.0.2.1"), device), nic::Status::unreachable);
  EXPECT_EQ(nic::soft::device_of(address("192.0.2.2"), device), nic::Status::ok);
  EXPECT_EQ(device, "eth8");
}

TEST(SimulatedInterfaces, ThatCannotBeAskedForAreALackOfDescriptors) {
  there = std::nullopt;
  std::string device;
  EXPECT_EQ(nic::soft::device_of(address("192.0.2.1"), device), nic::Status::no_memory);
  EXPECT_FALSE(nic::soft::addresses_of("*"));
  EXPECT_THAT(nic::soft::host_addresses(), testing::IsEmpty());
}

}  // namespace anydat
