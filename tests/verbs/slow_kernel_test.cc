// SPDX-License-Identifier: BSD-3-Clause
// Calls of the kernel that take long: threads and connections that have no part in them go on.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "nic/qualifier_ports.h"
#include "os/unique_fd.h"
#include "support/dat_fixture.h"
#include "support/silent_port.h"
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

class Window : public Owner<dat_rmr_free> {
 public:
  explicit Window(const Side& side) { require(dat_rmr_create(side.pz.get(), out()), "dat_rmr_create"); }
  void bind(const Ep& ep, const Lmr& memory, std::size_t offset = 0) const {
    DAT_LMR_TRIPLET part = memory.triplet(offset, 16);
    DAT_RMR_CONTEXT key = 0;
    require(dat_rmr_bind(get(), &part, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, ep.get(), {}, DAT_COMPLETION_DEFAULT_FLAG, &key),
            "dat_rmr_bind");
  }
};

void expect_bound(const Side& side, DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS) {
  const DAT_EVENT event = expect_event(side.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  EXPECT_EQ(event.event_data.rmr_completion_event_data.status, status);
}

TEST_P(SlowKernel, TheRegistrationOfABindHoldsUpNobody) {
  const Connection connection = connect_pair(server, client);
  const Window window(client);
  goes_on_while(edge::Call::registering, [&] { window.bind(connection.client, from); });
  expect_bound(client);
}

TEST_P(SlowKernel, ABindWaitsForWhatItsWindowShowedAndHoldsUpWhatIsBehindItOnly) {
  // RMR-BIND-3, RMR-BIND-6
  const Connection connection = connect_pair(server, client);
  const Connection other = connect_pair(server, client);
  const Window window(client);
  window.bind(connection.client, from);
  expect_bound(client);
  receive(connection.server, to, 1);
  {
    const edge::Gate gate(edge::Call::deregistering);
    window.bind(connection.client, from, 16);
    send(connection.client);
    ASSERT_TRUE(eventually([&] { return gate.reached(); }));
    ASSERT_NO_THROW(exchange(other));
    EXPECT_FALSE(poll_event(client.request.get()));
    EXPECT_FALSE(poll_event(server.recv.get()));
  }
  expect_bound(client);
  expect_completion(client.request.get());
  EXPECT_EQ(expect_completion(server.recv.get()).ep_handle, connection.server.get());
  for (int i = 0; i < 2; ++i) ASSERT_NO_THROW(exchange(connection));
}

TEST_P(SlowKernel, ABindInFrontOfAnotherLetsThatOneHoldBackWhatIsBehindIt) {
  // RMR-BIND-3
  const Connection connection = connect_pair(server, client);
  const Window first(client), second(client);
  for (const Window* window : {&first, &second}) {
    window->bind(connection.client, from);
    expect_bound(client);
  }
  for (DAT_UINT64 i = 1; i <= 2; ++i) receive(connection.server, to, i);
  {
    edge::Gate gate(edge::Call::deregistering);
    for (const Window* window : {&first, &second}) {
      window->bind(connection.client, from, 16);
      send(connection.client);
    }
    ASSERT_TRUE(eventually([&] { return gate.reached(); }));
    EXPECT_FALSE(poll_event(server.recv.get()));
    gate.let_one_pass();
    expect_bound(client);
    EXPECT_EQ(expect_completion(server.recv.get()).user_cookie.as_64, 1U);
    expect_completion(client.request.get());
    ASSERT_TRUE(eventually([&] { return gate.reached(); }));
    EXPECT_FALSE(poll_event(server.recv.get()));
  }
  expect_bound(client);
  expect_completion(client.request.get());
  EXPECT_EQ(expect_completion(server.recv.get()).user_cookie.as_64, 2U);
}

TEST_P(SlowKernel, OfBindsThatTheEndOfAConnectionMeetsTheOneThatHasBegunIsDone) {
  // RMR-BIND-13: what is flushed changes nothing, and that one has.
  Connection connection = connect_pair(server, client);
  const Connection other = connect_pair(server, client);
  const Window first(client), second(client);
  for (const Window* window : {&first, &second}) {
    window->bind(connection.client, from);
    expect_bound(client);
  }
  {
    const edge::Gate gate(edge::Call::deregistering);
    for (const Window* window : {&first, &second}) window->bind(connection.client, from, 16);
    send(connection.client);
    ASSERT_TRUE(eventually([&] { return gate.reached(); }));
    ASSERT_THAT(dat_ep_disconnect(connection.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    ASSERT_NO_THROW(exchange(other));
    EXPECT_FALSE(poll_event(client.connect.get()));
  }
  expect_bound(client);
  expect_bound(client, DAT_DTO_ERR_FLUSHED);
  expect_completion(client.request.get(), DAT_DTO_ERR_FLUSHED);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  wait_event(server.connect.get());
  ASSERT_NO_THROW(exchange(other));
}

TEST_P(SlowKernel, ABindThatFailsAfterItHasBegunLeavesItsWindowBoundToNothing) {
  // RMR-BIND-14, RMR-BIND-15, RMR-QUERY-2
  const Connection connection = connect_pair(server, client);
  const Connection other = connect_pair(server, client);
  Lmr before(client.ia, client.pz, kBytes), next(client.ia, client.pz, kBytes);
  const Window window(client);
  window.bind(connection.client, before);
  expect_bound(client);
  EXPECT_THAT(dat_lmr_free(before.get()), HasSubtype(DAT_INVALID_STATE_LMR_IN_USE));
  std::future<void> freed;
  {
    const edge::Gate gate(edge::Call::deregistering);
    window.bind(connection.client, next);
    ASSERT_TRUE(eventually([&] { return gate.reached(); }));
    const DAT_LMR_TRIPLET segment = next.triplet(0, kBytes);
    freed = std::async(std::launch::async, [&] { next.reset(); });
    // Its region is no more as soon as its context is refused.
    ASSERT_TRUE(eventually([&] {
      DAT_LMR_TRIPLET again = segment;
      return dat_ep_post_recv(other.client.get(), 1, &again, {}, DAT_COMPLETION_DEFAULT_FLAG) != DAT_SUCCESS;
    }));
  }
  expect_bound(client, DAT_RMR_OPERATION_FAILED);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  wait_event(server.connect.get());
  freed.get();
  DAT_RMR_PARAM param{};
  ASSERT_THAT(dat_rmr_query(window.get(), DAT_RMR_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(param.rmr_context, 0U);
  EXPECT_EQ(param.lmr_triplet.segment_length, 0U);
  before.reset();
}

TEST_P(SlowKernel, FreeingAnEndpointWithABindThatHasBegunHoldsUpNobody) {
  Connection connection = connect_pair(server, client);
  const Window first(client), second(client);
  for (const Window* window : {&first, &second}) {
    window->bind(connection.client, from);
    expect_bound(client);
  }
  goes_on_while(edge::Call::deregistering, [&] {
    for (const Window* window : {&first, &second}) window->bind(connection.client, from, 16);
    connection.client.reset();
  });
  wait_event(server.connect.get());
}

TEST_P(SlowKernel, WhatIsHeldBackBehindABindIsNotSentFromMemoryThatHasGone) {
  // LMR-FREE-4: a short message would be copied without a question.
  const Connection connection = connect_pair(server, client);
  const Window window(client);
  window.bind(connection.client, from);
  expect_bound(client);
  receive(connection.server, to, 1);
  const Connection other = connect_pair(server, client);
  Lmr memory(client.ia, client.pz, kBytes);
  std::future<void> freed;
  {
    const edge::Gate gate(edge::Call::deregistering);
    window.bind(connection.client, from, 16);
    DAT_LMR_TRIPLET segment = memory.triplet(0, kBytes);
    require(dat_ep_post_send(connection.client.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "post_send");
    ASSERT_TRUE(eventually([&] { return gate.reached(); }));
    freed = std::async(std::launch::async, [&] { memory.reset(); });
    // Its region is no more as soon as its context is refused.
    ASSERT_TRUE(eventually([&] {
      DAT_LMR_TRIPLET again = segment;
      return dat_ep_post_recv(other.client.get(), 1, &again, {}, DAT_COMPLETION_DEFAULT_FLAG) != DAT_SUCCESS;
    }));
  }
  expect_bound(client);
  expect_completion(client.request.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  freed.get();
}

TEST_P(SlowKernel, ThePartOfABindToComeGoesWithItsRegionAndWithItsWindow) {
  // LMR-FREE-8, RMR-FREE-2: a peer that has the key reaches it before the bind's turn.
  if (GetParam().name.find("siw") != std::string::npos)
    GTEST_SKIP() << "a Send that finds no receive ends its connection";
  for (const bool with_region : {true, false}) {
    SCOPED_TRACE(with_region ? "region" : "window");
    const Connection connection = connect_pair(server, client);
    Lmr memory(client.ia, client.pz, 4096);
    Window window(client);
    send(connection.client);  // it waits for its receive
    window.bind(connection.client, memory);
    std::future<void> freed;
    {
      edge::Gate gate(edge::Call::deregistering);
      freed = std::async(std::launch::async, [&] { with_region ? memory.reset() : window.reset(); });
      ASSERT_TRUE(eventually([&] { return gate.reached(); }));
      if (with_region) gate.let_one_pass();  // both are to go
      EXPECT_EQ(freed.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    }
    freed.get();
    receive(connection.server, to, 1);
    expect_completion(client.request.get());
    expect_completion(server.recv.get());
    expect_bound(client, with_region ? DAT_RMR_OPERATION_FAILED : DAT_DTO_SUCCESS);
    if (!with_region) continue;
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    wait_event(server.connect.get());
  }
}

TEST_P(SlowKernel, FreeingAWindowHoldsUpNobody) {
  // RMR-FREE-2: it is over when the call returns.
  const Connection connection = connect_pair(server, client);
  Window window(client);
  window.bind(connection.client, from);
  expect_bound(client);
  goes_on_while(edge::Call::deregistering, [&] { window.reset(); });
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

TEST_P(SlowKernel, AHostThatDoesNotAnswerHoldsUpNobody) {
  // EP-CONN-7, EP-SM-14: over iWARP the kernel waits for TCP's answer while rdma_connect() is called.
  if (GetParam().name.find("siw") == std::string::npos) GTEST_SKIP() << "InfiniBand's request is not waited for";
  sockaddr_in address{};
  std::memcpy(&address, server.ia.attributes().ia_address_ptr, sizeof address);
  address.sin_port = 0;
  const SilentPort silent(address);
  const Connection other = connect_pair(server, client);
  const auto call = [&](const Ep& ep, DAT_TIMEOUT timeout) {
    require(dat_ep_connect(ep.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), silent.port(), timeout, 0, nullptr,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
  };
  const Ep limited(client);
  Ep freed(client);
  call(limited, 1'000'000);
  call(freed, DAT_TIMEOUT_INFINITE);
  for (int i = 0; i < 3; ++i) ASSERT_NO_THROW(exchange(other));
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_TIMED_OUT);
  freed.reset();
  ASSERT_NO_THROW(exchange(other));
}

// EP-SM-14: the thread is cancelled when rdma_connect() has done its work, and the kernel destroys the identifier only
// when the other side has answered or, after ten seconds, will not.
class BegunAttempt : public SlowKernel {
 protected:
  void SetUp() override {
    if (GetParam().name.find("siw") == std::string::npos) GTEST_SKIP() << "InfiniBand's request is not waited for";
    SlowKernel::SetUp();
  }
  void begin_and_give_up(const Ep& ep) {
    const edge::Gate gate(edge::Call::connecting);
    require(dat_ep_connect(ep.get(), loopback(), server.listen(), DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    ASSERT_TRUE(eventually([&] { return gate.reached(); }));
    begun_ = std::chrono::steady_clock::now();
    require(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
    ASSERT_TRUE(eventually([&] { return !gate.reached(); })) << "the thread is not cancelled";
  }
  void expect_nobody_held_up() const { EXPECT_LT(std::chrono::steady_clock::now() - begun_, std::chrono::seconds(6)); }
  // The request that the other side has got all the same.
  void answer() {
    const DAT_EVENT request = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    require(dat_cr_reject(request.event_data.cr_arrival_event_data.cr_handle), "dat_cr_reject");
  }

 private:
  std::chrono::steady_clock::time_point begun_;
};

TEST_P(BegunAttempt, ThatIsGivenUpHoldsUpNobody) {
  const Connection other = connect_pair(server, client);
  const Ep ep(client);
  ASSERT_NO_FATAL_FAILURE(begin_and_give_up(ep));
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  for (int i = 0; i < 3; ++i) ASSERT_NO_THROW(exchange(other));
  expect_nobody_held_up();
  answer();
}

// Cut off at once it would take its TCP connection along, and soft-iWARP's listener, if it has not accepted that yet.
TEST_P(BegunAttempt, ThatIsGivenUpHasAMomentToComeToItsEnd) {
  const Ep ep(client);
  {
    const edge::Gate gate(edge::Call::connecting);
    require(dat_ep_connect(ep.get(), loopback(), server.listen(), DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    ASSERT_TRUE(eventually([&] { return gate.reached(); }));
    require(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
    EXPECT_FALSE(eventually([&] { return !gate.reached(); }, std::chrono::milliseconds(300))) << "it is cut off";
  }
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  answer();
  const Connection other = connect_pair(server, client);
  ASSERT_NO_THROW(exchange(other));
}

// SRQ-FREE-1: the device's queue stays until the queue pair has gone, and no call waits for that.
TEST_P(BegunAttempt, ThatIsGivenUpDoesNotHoldUpTheEndOfItsSharedQueue) {
  const Connection other = connect_pair(server, client);
  Srq srq(client.ia, client.pz, 8);
  Ep ep(client, srq);
  ASSERT_NO_FATAL_FAILURE(begin_and_give_up(ep));
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  ep.reset();
  exchange(other);  // by now it is known that the thread has left the kernel, and the identifier goes
  srq.reset();
  // What has been freed is kept for a while, until it makes room for others.
  for (int i = 0; i < 200; ++i) Pz(client.ia).reset();
  for (int i = 0; i < 3; ++i) ASSERT_NO_THROW(exchange(other));
  expect_nobody_held_up();
  answer();
  // Another one can be had.
  const Srq again(client.ia, client.pz, 8);
}

TEST_P(SlowKernel, EightStrangersThatSayNothingCostOneSecond) {
  // EP-CONN-7: all ports of the qualifier are asked at once. One after another they would cost eight.
  if (GetParam().name.find("siw") == std::string::npos) GTEST_SKIP() << "InfiniBand's ports are not TCP's";
  constexpr DAT_CONN_QUAL kQualifier = 65536;
  sockaddr_in address{};
  std::memcpy(&address, server.ia.attributes().ia_address_ptr, sizeof address);
  std::vector<os::UniqueFd> strangers;
  for (const std::uint16_t port : nic::derived_ports(kQualifier)) {
    strangers.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    address.sin_port = htons(port);
    ASSERT_EQ(bind(strangers.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << port;
    ASSERT_EQ(listen(strangers.back().get(), 16), 0);
  }
  const Ep ep(client);
  const auto start = std::chrono::steady_clock::now();
  require(dat_ep_connect(ep.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), kQualifier, DAT_TIMEOUT_INFINITE, 0,
                         nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(6));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SlowKernel);
INSTANTIATE_TEST_SUITE_P(Devices, SlowKernel, testing::ValuesIn(device_wires()), wire_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BegunAttempt);
INSTANTIATE_TEST_SUITE_P(Devices, BegunAttempt, testing::ValuesIn(device_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
