// SPDX-License-Identifier: BSD-3-Clause
// What holds after any run: chapter 7.2 of the rules.
#include <algorithm>
#include <atomic>
#include <map>
#include <random>

#include "srq_traffic.h"

namespace anydat::test {
namespace {

class SrqInvariants : public SrqTest {};
class SrqInvariantsHolding : public SrqHoldingTest {};

TEST_P(SrqInvariants, TrafficOfAllSizesLosesAndRepeatsNothing) {
  // INV-1, INV-2, INV-3, INV-5
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (const int connections : {1, 7, 32}) {
    const Srq srq(server.ia, server.pz, 24);
    SrqTraffic traffic(server, client, srq,
                       {.connections = connections, .buffers = 24, .max_bytes = 24 * 1024, .seed = seed});
    traffic.run(600 / connections);
  }
}

TEST_P(SrqInvariants, OneBufferForManyConnectionsIsEnough) {
  // INV-1, INV-2, SRQ-ORD-5
  const Srq srq(server.ia, server.pz, 1);
  SrqTraffic traffic(server, client, srq, {.connections = 10, .buffers = 1, .max_bytes = 12000});
  traffic.run(20);
}

TEST_P(SrqInvariants, EveryCallBesideTrafficHarmsNothing) {
  // INV-1, INV-2, MT-2, MT-3, SRQ-RESIZE-2
  ASSERT_EQ(server.ia.provider().is_thread_safe, DAT_TRUE);
  const Srq srq(server.ia, server.pz, 64);
  SrqTraffic traffic(server, client, srq, {.connections = 8, .buffers = 24, .max_bytes = 12000});
  std::minstd_rand random(3);
  std::atomic<int> wrong = 0;
  const bool watermarks = watermarks_supported(server.ia);
  traffic.run(150, [&] {
    const auto& endpoints = traffic.connections();
    const Ep& ep = endpoints[random() % endpoints.size()].server;
    DAT_RETURN rc = DAT_SUCCESS;
    switch (random() % 5) {
      case 0:
        rc = dat_srq_resize(srq.get(), 24 + static_cast<DAT_COUNT>(random() % 40));
        break;
      case 1:
        rc = dat_srq_set_lw(srq.get(), static_cast<DAT_COUNT>(random() % 24));
        break;
      case 2:
        rc = dat_ep_set_watermark(ep.get(), watermarks ? static_cast<DAT_COUNT>(random() % 4) : DAT_WATERMARK_INFINITE,
                                  DAT_WATERMARK_INFINITE);
        break;
      case 3:
        wrong += held(ep).buffers >= 0 || held(ep).buffers == DAT_VALUE_UNKNOWN ? 0 : 1;
        break;
      default:
        wrong += counts(srq).outstanding > 24 ? 1 : 0;
    }
    wrong += rc == DAT_SUCCESS ? 0 : 1;
    while (poll_event(server.ia.async_evd())) {
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(SrqInvariants, EveryConnectionEndsInOneEvent) {
  // INV-4, EP-SM-22
  const Srq srq(server.ia, server.pz, 8);
  constexpr int kConnections = 6;
  for (int round = 0; round < 5; ++round) {
    std::vector<Connection> connections;
    std::map<DAT_EP_HANDLE, int> ends;
    for (int i = 0; i < kConnections; ++i) {
      connections.push_back(connect_pair(server, srq, client));
    }
    // Ended by the server, by the client, or by both at once.
    for (int i = 0; i < kConnections; ++i) {
      const Connection& connection = connections[static_cast<std::size_t>(i)];
      if (i % 3 != 1) {
        ASSERT_THAT(dat_ep_disconnect(connection.server.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
      }
      if (i % 3 != 0) {
        ASSERT_THAT(dat_ep_disconnect(connection.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
      }
    }
    for (const Side* side : {&server, &client}) {
      for (int i = 0; i < kConnections; ++i) {
        const auto event = expect_event(side->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
        ++ends[event.event_data.connect_event_data.ep_handle];
      }
    }
    for (const auto& [handle, count] : ends) {
      EXPECT_EQ(count, 1);
    }
    EXPECT_EQ(ends.size(), 2u * kConnections);
    EXPECT_FALSE(poll_event(server.connect.get()));
    EXPECT_FALSE(poll_event(client.connect.get()));
  }
}

TEST_P(SrqInvariants, EverySettingOfTheLowWatermarkFiresAtMostOnceAndWheneverItMust) {
  // INV-6, SRQ-LW-17
  const Srq srq(server.ia, server.pz, 16);
  SrqTraffic traffic(server, client, srq, {.connections = 8, .buffers = 16});
  std::minstd_rand random(5);
  int settings = 0;
  int fired = 0;
  int missed = 0;
  traffic.run(300, [&] {
    const DAT_COUNT watermark = 1 + static_cast<DAT_COUNT>(random() % 16);
    require(dat_srq_set_lw(srq.get(), watermark), "dat_srq_set_lw");
    ++settings;
    bool below = false;
    for (int look = 0; look < 20 && !below; ++look) {
      below = srq.available() < watermark;
    }
    require(dat_srq_set_lw(srq.get(), 0), "dat_srq_set_lw");
    const int before = fired;
    // A take that has crossed the watermark may still be on its way to the EVD.
    if (below) {
      fired += wait_event(server.ia.async_evd()) ? 1 : 0;
    }
    while (poll_event(server.ia.async_evd())) {
      ++fired;
    }
    missed += below && fired == before ? 1 : 0;
  });
  fired += drain(server.ia.async_evd());
  EXPECT_EQ(missed, 0) << "settings that were undercut without an event";
  EXPECT_LE(fired, settings);
}

TEST_P(SrqInvariantsHolding, KillingOnePeerLeavesTheOthersWorking) {
  // INV-7, SRQ-ST-6
  const Srq srq(server.ia, server.pz, 40);
  const Evd victim_recv(server.ia, DAT_EVD_DTO_FLAG);
  const Evd victim_connect(server.ia, DAT_EVD_CONNECTION_FLAG);
  const Ep victim(server.ia, server.pz,
                  {.recv = victim_recv.get(), .request = server.request.get(), .connect = victim_connect.get()}, srq,
                  default_srq_ep_attr());
  StoppedSender sender(server, victim, GetParam(), 0, 3);
  large.post(srq, 0, 3);
  ASSERT_TRUE(eventually_held(victim, 3));
  SrqTraffic traffic(server, client, srq, {.connections = 4, .buffers = 16});
  std::atomic<bool> killed = false;
  // Traffic's own check of the counts does not know of the three buffers; their flushes are reaped during the run.
  traffic.run(200, [&] {
    if (killed.exchange(true)) {
      return;
    }
    sender.kill();
    expect_event(victim_connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    expect_completions(victim_recv.get(), 3, DAT_DTO_ERR_FLUSHED);
  });
  EXPECT_TRUE(killed);
  EXPECT_EQ(victim.state(), DAT_EP_STATE_DISCONNECTED);
  EXPECT_EQ(counts(srq), (Counts{.available = 16, .outstanding = 16}));
}

TEST_P(SrqInvariants, GracefulCloseSucceedsOnceEverythingIsFreed) {
  // INV-8, IA-CLOSE-1
  Side side(GetParam());
  {
    const Srq srq(side.ia, side.pz, 4);
    const Connection connection = connect_pair(side, srq, client);
    const DAT_RETURN rc = side.ia.close(DAT_CLOSE_GRACEFUL_FLAG);
    EXPECT_THAT(rc, HasType(DAT_INVALID_STATE)) << "an SRQ and an endpoint are left";
  }
  side.psp.reset();
  side.recv.reset();
  side.request.reset();
  side.connect.reset();
  side.requests.reset();
  {
    const Srq last(side.ia, side.pz, 4);
    EXPECT_THAT(side.ia.close(DAT_CLOSE_GRACEFUL_FLAG), HasType(DAT_INVALID_STATE)) << "an SRQ is left";
  }
  side.pz.reset();
  EXPECT_THAT(side.ia.close(DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
}

ANYDAT_OVER_ALL_WIRES(SrqInvariants);
ANYDAT_OVER_ALL_WIRES(SrqInvariantsHolding);

}  // namespace
}  // namespace anydat::test
