// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_create_with_srq: chapter 1.10 of the rules. Arguments are in srq_ep_attributes.cc.
#include <algorithm>

#include "srq_states.h"

namespace anydat::test {
namespace {

class SrqEndpoint : public SrqTest {
 protected:
  void disconnect_and_reset(const Connection& connection) {
    for (const Ep* ep : {&connection.server, &connection.client}) {
      const DAT_EVD_HANDLE evd = ep->query().connect_evd_handle;
      if (ep == &connection.server) {
        require(dat_ep_disconnect(ep->get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
      }
      expect_event(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
      require(dat_ep_reset(ep->get()), "dat_ep_reset");
    }
  }

  Srq srq{server.ia, server.pz, 20};
};
class SrqEndpointHolding : public SrqHoldingTest {};

TEST_P(SrqEndpoint, StartsUnconnectedAndShowsItsQueue) {
  // EP-CSRQ-1, EP-CSRQ-5
  const Ep ep(server, srq);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
  EXPECT_EQ(ep.query().srq_handle, srq.get());
  EXPECT_EQ(ep.query().pz_handle, server.pz.get());
  EXPECT_EQ(ep.query().recv_evd_handle, server.recv.get());
  const Ep plain(server);
  EXPECT_EQ(plain.query().srq_handle, static_cast<DAT_SRQ_HANDLE>(DAT_HANDLE_NULL));
}

TEST_P(SrqEndpoint, TakesFromItsQueueForItsWholeLife) {
  // EP-CSRQ-2, EP-CSRQ-3, SRQ-FLUSH-5
  const Srq other(server.ia, server.pz, 20);
  buffers.post(other, 10, 3);
  buffers.post(srq, 0, 3);
  Connection connection = connect_pair(server, srq, client);
  for (int life = 0; life < 3; ++life) {
    EXPECT_LT(pass_message(connection).user_cookie.as_64, 3u);
    EXPECT_EQ(srq.available(), 2 - life);
    EXPECT_EQ(other.available(), 3);
    disconnect_and_reset(connection);
    EXPECT_EQ(connection.server.query().srq_handle, srq.get()) << "after the reset";
    connect_pair(server, connection.server.get(), connection.client.get());
  }
}

TEST_P(SrqEndpoint, RefusesReceivesInEveryState) {
  // EP-CSRQ-4, RECV-9, SRQ-FLUSH-8
  DAT_LMR_TRIPLET segment = buffers.triplet(0);
  for (const DAT_EP_STATE state : reachable_states(server.ia)) {
    const EpInState ep(server, client, srq, state);
    const DAT_RETURN rc = dat_ep_post_recv(ep.get().get(), 1, &segment, cookie(1), DAT_COMPLETION_DEFAULT_FLAG);
    EXPECT_THAT(rc, HasType(DAT_INVALID_STATE)) << "endpoint state " << state;
    if (state == DAT_EP_STATE_UNCONNECTED) {
      EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_EP_UNCONNECTED));
    } else if (state == DAT_EP_STATE_CONNECTED) {
      EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_EP_CONNECTED));
    }
    EXPECT_TRUE(holds_none(held(ep.get())));
    EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 0}));
    EXPECT_FALSE(poll_event(ep.recv_evd())) << "a refused receive completed";
    EXPECT_EQ(ep.get().state(), state);
  }
}

TEST_P(SrqEndpointHolding, AttributesAreItsWatermarks) {
  // EP-CSRQ-16, EP-WM-17
  const Srq srq(server.ia, server.pz, 10);
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.srq_soft_hw = 1;
  attr.max_recv_dtos = 2;
  const Ep ep(server, srq, attr);
  EXPECT_EQ(ep.query().ep_attr.srq_soft_hw, 1);
  EXPECT_EQ(ep.query().ep_attr.max_recv_dtos, 2);
  const StoppedSender sender(server, ep, GetParam(), 0, 4);
  large.post(srq, 0, 1);
  ASSERT_TRUE(eventually_held(ep, 1));
  expect_no_event(server.ia.async_evd());
  large.post(srq, 1, 1);
  ASSERT_TRUE(eventually_held(ep, 2));
  expect_soft_watermark(server, ep);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  large.post(srq, 2, 1);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

TEST_P(SrqEndpointHolding, NeutralWatermarksLimitNothing) {
  // EP-CSRQ-16, EP-WM-9
  const Srq srq(server.ia, server.pz, 10);
  const Ep ep(server, srq);  // DAT_HW_DEFAULT for both
  EXPECT_EQ(ep.query().ep_attr.max_recv_dtos, DAT_HW_DEFAULT);
  EXPECT_EQ(ep.query().ep_attr.srq_soft_hw, DAT_HW_DEFAULT);
  const StoppedSender sender(server, ep, GetParam(), 0, 6);
  large.post(srq, 0, 6);
  ASSERT_TRUE(eventually_held(ep, 6));
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  expect_no_event(server.ia.async_evd());
}

TEST_P(SrqEndpoint, SoftWatermarkZeroIsUnsetAtCreationOnly) {
  // EP-CSRQ-17, EP-WM-13
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.srq_soft_hw = 0;
  const Connection connection = connect_pair(server, srq, client, attr);
  EXPECT_EQ(connection.server.query().ep_attr.srq_soft_hw, DAT_HW_DEFAULT);
  buffers.post(srq, 0, 2);
  pass_message(connection);
  expect_no_event(server.ia.async_evd());
  ASSERT_THAT(dat_ep_set_watermark(connection.server.get(), 0, DAT_WATERMARK_INFINITE), Succeeds());
  pass_message(connection, 2);
  expect_soft_watermark(server, connection.server);
}

TEST_P(SrqEndpoint, WatermarksAreSupported) {
  // EP-CSRQ-18, EP-WM-14
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.srq_soft_hw = 5;
  attr.max_recv_dtos = 6;
  const Ep ep(server, srq, attr);
  EXPECT_THAT(dat_ep_set_watermark(ep.get(), 7, DAT_WATERMARK_INFINITE), Succeeds());
  EXPECT_THAT(dat_ep_set_watermark(ep.get(), DAT_WATERMARK_INFINITE, 8), Succeeds());
}

class SrqEndpointLimit : public SrqEndpoint {};

TEST_P(SrqEndpointLimit, NumberOnOneQueueIsLimitedByTheAdapter) {
  // EP-CSRQ-19, GEN-9
  const DAT_IA_ATTR limits = server.ia.attributes();
  const DAT_COUNT most = std::min(limits.max_ep_per_srq, limits.max_eps);
  // As cheap as an endpoint can be.
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.max_request_dtos = 0;
  const EpEvds evds{.recv = DAT_HANDLE_NULL, .request = DAT_HANDLE_NULL, .connect = DAT_HANDLE_NULL};
  std::vector<Ep> all;
  for (DAT_COUNT i = 0; i < most; ++i) {
    all.emplace_back(server.ia, server.pz, evds, srq, attr);
  }
  DAT_EP_HANDLE handle = DAT_HANDLE_NULL;
  const auto one_more = [&] {
    return dat_ep_create_with_srq(server.ia.get(), server.pz.get(), DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
                                  srq.get(), &attr, &handle);
  };
  EXPECT_THAT(one_more(), HasType(DAT_INSUFFICIENT_RESOURCES));
  all.pop_back();
  EXPECT_THAT(one_more(), Succeeds());
  EXPECT_THAT(dat_ep_free(handle), Succeeds());
}

TEST_P(SrqEndpoint, ManyShareOneQueueWithOwnEvdsZonesAndPeers) {
  // EP-CSRQ-20
  constexpr int kMany = 6;
  Side second_client(GetParam());
  std::vector<Pz> zones;
  std::vector<Evd> evds;
  std::vector<Connection> connections;
  for (int i = 0; i < kMany; ++i) {
    zones.emplace_back(server.ia);
    evds.emplace_back(server.ia, DAT_EVD_DTO_FLAG);
    Side& peer = i % 2 == 0 ? client : second_client;
    connections.push_back({.server = Ep(server.ia, zones.back(),
                                        {.recv = evds[static_cast<std::size_t>(i / 2)].get(),
                                         .request = server.request.get(),
                                         .connect = server.connect.get()},
                                        srq, default_srq_ep_attr()),
                           .client = Ep(peer)});
    connect_pair(server, connections.back().server.get(), connections.back().client.get());
  }
  buffers.post(srq, 0, kMany);
  const Lmr second_source(second_client.ia, second_client.pz, 32);
  for (int i = 0; i < kMany; ++i) {
    const Connection& connection = connections[static_cast<std::size_t>(i)];
    if (i % 2 == 0) {
      send(connection.client, 1);
    } else {
      DAT_LMR_TRIPLET segment = second_source.triplet();
      require(dat_ep_post_send(connection.client.get(), 1, &segment, cookie(1), DAT_COMPLETION_DEFAULT_FLAG),
              "dat_ep_post_send");
    }
    EXPECT_EQ(expect_completion(evds[static_cast<std::size_t>(i / 2)].get()).ep_handle, connection.server.get());
  }
}

TEST_P(SrqEndpoint, ReadDepthsOfTheConsumerSurviveConnecting) {
  // EP-CSRQ-23, EP-CONN-17: also to a peer that has other ones.
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.max_rdma_read_in = 3;
  attr.max_rdma_read_out = 2;
  DAT_EP_ATTR of_client = default_ep_attr();
  of_client.max_rdma_read_in = 2;
  of_client.max_rdma_read_out = 1;
  const Ep ep(server, srq, attr);
  const Ep peer(client, of_client);
  connect_pair(server, ep.get(), peer.get());
  EXPECT_EQ(ep.query().ep_attr.max_rdma_read_in, 3);
  EXPECT_EQ(ep.query().ep_attr.max_rdma_read_out, 2);
}

// How a Read by `reader` of memory at the other side ends.
DAT_DTO_COMPLETION_STATUS status_of_read(const Side& side, const Ep& reader, const Lmr& sink, const Lmr& source) {
  DAT_LMR_TRIPLET local = sink.triplet(0, 64);
  const DAT_RMR_TRIPLET remote = source.remote(0, 64);
  require(dat_ep_post_rdma_read(reader.get(), 1, &local, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_rdma_read");
  return expect_event(side.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data.status;
}

TEST_P(SrqEndpoint, ReadDepthsThatWereLeftUnsetAreWhatAQueryShows) {
  // EP-CSRQ-23, EP-CONN-17: chosen when the endpoint is made, not raised by connecting, and true.
  DAT_EP_ATTR unset = default_srq_ep_attr();
  unset.max_rdma_read_in = 0;
  unset.max_rdma_read_out = 0;
  for (const bool server_reads : {true, false}) {
    Side here(GetParam());  // each time anew: a Read that fails leaves events behind
    const Side there(GetParam());
    const Lmr own(here.ia, here.pz, 64);
    const Lmr other(there.ia, there.pz, 64);
    const Srq queue(here.ia, here.pz, 4);
    const Ep ep(here, queue, unset);
    const Ep peer(there);
    const DAT_EP_ATTR chosen = ep.query().ep_attr;
    connect_pair(here, ep.get(), peer.get());
    const DAT_EP_ATTR shown = ep.query().ep_attr;
    EXPECT_LE(shown.max_rdma_read_in, chosen.max_rdma_read_in);
    EXPECT_LE(shown.max_rdma_read_out, chosen.max_rdma_read_out);
    const DAT_DTO_COMPLETION_STATUS status =
        server_reads ? status_of_read(here, ep, own, other) : status_of_read(there, peer, other, own);
    const DAT_COUNT depth = server_reads ? shown.max_rdma_read_out : shown.max_rdma_read_in;
    EXPECT_EQ(status == DAT_DTO_SUCCESS, depth > 0) << "a Read ends with " << status << ", and the depth is " << depth;
  }
}

TEST_P(SrqEndpoint, IsReadyToConnectAgainAtOnce) {
  // EP-CSRQ-24
  Connection connection = connect_pair(server, srq, client);
  for (int life = 0; life < 10; ++life) {
    buffers.post(srq, 0, 1);
    pass_message(connection);
    disconnect_and_reset(connection);
    // Any remnant of the connection before would show as another outcome than ESTABLISHED.
    connect_pair(server, connection.server.get(), connection.client.get());
  }
}

TEST_P(SrqEndpoint, ModifyCannotTouchQueueOrWatermarks) {
  // EP-CSRQ-26
  const Srq other(server.ia, server.pz, 4);
  const Ep ep(server, srq);
  const Ep plain(server);
  DAT_EP_PARAM param = ep.query();
  param.srq_handle = other.get();
  param.ep_attr.srq_soft_hw = 3;
  param.ep_attr.max_recv_dtos = 3;
  for (const DAT_EP_PARAM_MASK mask :
       {DAT_EP_PARAM_MASK{DAT_EP_FIELD_SRQ_HANDLE}, DAT_EP_PARAM_MASK{DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW},
        DAT_EP_PARAM_MASK{DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS}}) {
    EXPECT_THAT(dat_ep_modify(ep.get(), mask, &param), HasType(DAT_INVALID_PARAMETER)) << std::hex << mask;
  }
  EXPECT_THAT(dat_ep_modify(plain.get(), DAT_EP_FIELD_SRQ_HANDLE, &param), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ep_modify(plain.get(), DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param), HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(ep.query().srq_handle, srq.get());
  EXPECT_EQ(ep.query().ep_attr.srq_soft_hw, DAT_HW_DEFAULT);
  EXPECT_EQ(ep.query().ep_attr.max_recv_dtos, DAT_HW_DEFAULT);
}

TEST_P(SrqEndpoint, AWatermarkOfZeroIsNoHindranceToModify) {
  // EP-WM-13, EP-MODIFY-2
  Ep ep(server, srq);
  ASSERT_THAT(dat_ep_set_watermark(ep.get(), DAT_WATERMARK_INFINITE, 0), Succeeds());
  DAT_EP_PARAM param = ep.query();
  param.ep_attr.max_message_size = 100;
  EXPECT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &param), Succeeds());
  EXPECT_EQ(ep.query().ep_attr.max_message_size, 100u);
  EXPECT_EQ(ep.query().ep_attr.max_recv_dtos, 0) << "the watermark stays";
}

TEST_P(SrqEndpoint, ModifyMayGiveItAnyZone) {
  // EP-CSRQ-27, EP-CSRQ-9
  const Pz other(server.ia);
  const Ep ep(server, srq);
  DAT_EP_PARAM param = ep.query();
  param.pz_handle = other.get();
  if (server.ia.provider().srq_ep_pz_difference_supported == DAT_FALSE) {
    EXPECT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_PZ_HANDLE, &param), HasType(DAT_INVALID_PARAMETER));
    EXPECT_EQ(ep.query().pz_handle, server.pz.get());
    return;
  }
  EXPECT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_PZ_HANDLE, &param), Succeeds());
  EXPECT_EQ(ep.query().pz_handle, other.get());
  EXPECT_EQ(srq.query().pz_handle, server.pz.get());
}

ANYDAT_OVER_ALL_WIRES(SrqEndpoint);
ANYDAT_OVER_ONE_WIRE(SrqEndpointLimit);
ANYDAT_OVER_ALL_WIRES(SrqEndpointHolding);

}  // namespace
}  // namespace anydat::test
