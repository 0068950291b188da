// SPDX-License-Identifier: BSD-3-Clause
// Calls of the kernel that take long: whoever has no part in them goes on.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <optional>

#include "support/dat_fixture.h"
#include "verbs/device_test.h"
#include "verbs/edge.h"

namespace anydat::test {
namespace {

class SlowKernel : public DeviceTest {
 protected:
  // Makes the call in a thread of its own; when it has got stuck in the kernel, another connection has its messages.
  void goes_on_while(edge::Call stuck, const std::function<void()>& call) {
    const Connection other = connect_pair(server, client);
    exchange(other);
    std::future<void> result;
    {
      const edge::Gate gate(stuck);
      result = std::async(std::launch::async, call);
      ASSERT_TRUE(eventually([&] { return gate.reached(); }));
      ASSERT_NO_THROW(exchange(other));
      EXPECT_EQ(result.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    }
    result.get();
  }
};

TEST_P(SlowKernel, ARegistrationHoldsUpNobody) {
  std::optional<Lmr> made;
  goes_on_while(edge::Call::registering, [&] { made.emplace(client.ia, client.pz, 4096); });
}

TEST_P(SlowKernel, ADeregistrationHoldsUpNobody) {
  // LMR-FREE-8: it is over when the call returns.
  Lmr memory(client.ia, client.pz, 4096);
  goes_on_while(edge::Call::deregistering, [&] { memory.reset(); });
}

TEST_P(SlowKernel, FreeingAConnectedEndpointHoldsUpNobody) {
  Connection connection = connect_pair(server, client);
  receive(connection.client, from, 1);
  goes_on_while(edge::Call::destroying, [&] { connection.client.reset(); });
  wait_event(server.connect.get());
}

TEST_P(SlowKernel, TheEndOfAConnectionHoldsUpNobodyAndIsToldWhenItsBuffersAreFree) {
  Connection connection = connect_pair(server, client);
  const Connection other = connect_pair(server, client);
  receive(connection.client, from, 1);
  {
    const edge::Gate gate(edge::Call::destroying);
    ASSERT_THAT(dat_ep_disconnect(connection.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    ASSERT_TRUE(eventually([&] { return gate.reached(); }));
    ASSERT_NO_THROW(exchange(other));
    EXPECT_FALSE(poll_event(client.connect.get()));
  }
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_completion(client.recv.get(), DAT_DTO_ERR_FLUSHED);
  wait_event(server.connect.get());
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SlowKernel);
INSTANTIATE_TEST_SUITE_P(Devices, SlowKernel, testing::ValuesIn(device_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
