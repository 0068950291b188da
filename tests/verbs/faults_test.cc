// SPDX-License-Identifier: BSD-3-Clause
// What a device says of its own failures: asynchronous events about completion queues, shared receive queues, ports
// and itself.
#include <gtest/gtest.h>

#include <stdexcept>

#include "support/dat_fixture.h"
#include "verbs/device_test.h"
#include "verbs/edge.h"

namespace anydat::test {
namespace {

class DeviceFaults : public DeviceTest {
 protected:
  // Of the first connection that was made: the active side makes its queue pair first.
  static edge::QueuePair of_client() { return edge::queue_pairs().at(0); }

  static void fail_completions(const edge::QueuePair& of, ibv_cq* cq) {
    ibv_async_event event{};
    event.event_type = IBV_EVENT_CQ_ERR;
    event.element.cq = cq;
    edge::raise(of.device, event);
  }

  static void expect_async(const Side& side, DAT_EVENT_NUMBER number, DAT_HANDLE about, DAT_COUNT reason) {
    const DAT_EVENT event = expect_event(side.ia.async_evd(), number);
    EXPECT_EQ(event.event_data.asynch_error_event_data.dat_handle, about);
    EXPECT_EQ(event.event_data.asynch_error_event_data.reason, reason);
  }

  // The end of a connection as the side sees it whose device has not failed.
  static void expect_end(const Side& side) {
    const auto event = wait_event(side.connect.get());
    ASSERT_TRUE(event);
    EXPECT_TRUE(event->event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
                event->event_number == DAT_CONNECTION_EVENT_BROKEN)
        << event_name(event->event_number);
  }

  static edge::QueuePair one_with_shared_queue() {
    for (const edge::QueuePair& one : edge::queue_pairs()) {
      if (one.shared) return one;
    }
    throw std::runtime_error("there is no queue pair with a shared receive queue");
  }

  // Both ways of losing what an SRQ needs; then the SRQ goes on with what was posted to it.
  void lose_shared_queue(bool its_completions) {
    Srq srq(server.ia, server.pz, 8);
    Lmr memory(server.ia, server.pz, 8 * 64);
    Connection shared = connect_pair(server, srq, client);
    Connection plain = connect_pair(server, client);
    for (DAT_UINT64 i = 0; i < 8; ++i) post_shared(srq, memory, i);
    const edge::QueuePair lost = one_with_shared_queue();
    if (its_completions) {
      fail_completions(lost, lost.receives);
    } else {
      ibv_async_event event{};
      event.event_type = IBV_EVENT_SRQ_ERR;
      event.element.srq = lost.shared;
      edge::raise(lost.device, event);
    }
    EXPECT_EQ(expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN).event_data.connect_event_data.ep_handle,
              shared.server.get());
    expect_async(server, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, srq.get(), DAT_SRQ_OTHER_ERROR);
    expect_end(client);
    exchange(plain);
    // Nothing that was posted is lost, or completed by the failure.
    EXPECT_EQ(srq.available(), 8);
    EXPECT_EQ(srq.outstanding(), 8);
    Connection again = connect_pair(server, srq, client);
    for (int i = 0; i < 8; ++i) send(again.client);
    for (const auto& dto : expect_completions(server.recv.get(), 8)) EXPECT_EQ(dto.ep_handle, again.server.get());
    expect_completions(client.request.get(), 8);
    EXPECT_EQ(srq.available(), 0);
  }
};

TEST_P(DeviceFaults, AFailedCompletionQueueBreaksTheConnectionsThatUseIt) {
  // EVT-34
  const Connection first = connect_pair(server, client);
  const Connection second = connect_pair(server, client);
  receive(first.client, from, 1);
  receive(second.client, from, 2);
  const edge::QueuePair lost = of_client();
  fail_completions(lost, lost.completions);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_async(client, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, client.ia.get(), DAT_IA_OTHER_ERROR);
  expect_completions(client.recv.get(), 2, DAT_DTO_ERR_FLUSHED);
  expect_end(server);
  expect_end(server);
  // The next connections have another queue.
  exchange(connect_pair(server, client));
}

TEST_P(DeviceFaults, AFailedSharedReceiveQueueBreaksItsEndpointsAndLosesNoReceive) {
  // EVT-34
  lose_shared_queue(false);
}

TEST_P(DeviceFaults, FailedCompletionsOfASharedReceiveQueueBreakItsEndpointsAndLoseNoReceive) {
  // EVT-34
  lose_shared_queue(true);
}

TEST_P(DeviceFaults, ADeviceWhoseQueueStaysSmallerThanTheSrqDoesNotTellOfTheLowWatermark) {
  // SRQ-LW-4, SRQ-RESIZE-13: it knows only of what it has itself.
  constexpr DAT_COUNT kBefore = 16, kAfter = 64, kLow = 8;
  Srq srq(server.ia, server.pz, kBefore);
  Lmr memory(server.ia, server.pz, kAfter * kBytes);
  Connection shared = connect_pair(server, srq, client);
  for (DAT_UINT64 i = 0; i < kBefore; ++i) post_shared(srq, memory, i);
  ASSERT_THAT(dat_srq_set_lw(srq.get(), kLow), Succeeds());
  {
    const edge::FixedSizes fixed;
    ASSERT_THAT(dat_srq_resize(srq.get(), kAfter), Succeeds());
  }
  for (DAT_UINT64 i = kBefore; i < kAfter; ++i) post_shared(srq, memory, i);
  // As when it has been drained below its limit before anybody has looked.
  const edge::QueuePair one = one_with_shared_queue();
  ibv_srq_attr none{};
  ASSERT_EQ(ibv_modify_srq(one.shared, &none, IBV_SRQ_LIMIT), 0);
  ibv_async_event event{};
  event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  event.element.srq = one.shared;
  edge::raise(one.device, event);
  const auto take = [&](int messages) {
    for (int i = 0; i < messages; ++i) {
      send(shared.client);
      expect_completion(server.recv.get());
      expect_completion(client.request.get());
    }
  };
  take(kAfter - kLow);
  EXPECT_FALSE(poll_event(server.ia.async_evd()));
  take(1);
  expect_async(server, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, srq.get(), DAT_SRQ_LOW_WATERMARK_EVENT);
}

TEST_P(DeviceFaults, APortThatGoesDownAndComesBackCostsNoConnection) {
  const Connection connection = connect_pair(server, client);
  for (const ibv_event_type type : {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE}) {
    ibv_async_event event{};
    event.event_type = type;
    event.element.port_num = 1;
    edge::raise(of_client().device, event);
  }
  exchange(connection);
  EXPECT_FALSE(poll_event(server.ia.async_evd()));
  EXPECT_FALSE(poll_event(client.ia.async_evd()));
}

TEST_P(DeviceFaults, AFailedDeviceIsACatastropheOfItsInstance) {
  // EVT-34, EVT-35
  const Connection connection = connect_pair(server, client);
  ibv_async_event event{};
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  edge::raise(of_client().device, event);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_async(client, DAT_ASYNC_ERROR_IA_CATASTROPHIC, client.ia.get(), DAT_IA_CATASTROPHIC_ERROR);
  expect_end(server);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceFaults);
INSTANTIATE_TEST_SUITE_P(Devices, DeviceFaults, testing::ValuesIn(device_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
