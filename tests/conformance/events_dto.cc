// SPDX-License-Identifier: BSD-3-Clause
// Completion events of data transfer and of binds: sections 9.1, 9.3 and 9.4 of part 1.
#include <cstring>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

class EventDto : public MessageTest {
 protected:
  // The next event, with everything in it overwritten that the library does not set.
  static DAT_EVENT wait_raw(DAT_EVD_HANDLE evd) {
    DAT_EVENT event;
    std::memset(&event, 0xA5, sizeof event);
    DAT_COUNT more = 0;
    require(dat_evd_wait(evd, long_timeout(), 1, &event, &more), "dat_evd_wait");
    return event;
  }
};

DAT_DTO_COOKIE numbered(DAT_UINT64 value) {
  DAT_DTO_COOKIE result{};
  result.as_64 = value;
  return result;
}

// EVT-1, EVT-3, EVT-8, EVT-9, EVT-11
TEST_P(EventDto, CompletionNamesEndpointCookieStatusAndLength) {
  const Connection pair = connect_pair(server, client);
  for (const DAT_UINT64 value : {DAT_UINT64{0}, ~DAT_UINT64{0}, DAT_UINT64{0x8000000000000001}}) {
    DAT_LMR_TRIPLET to = sink.triplet(0, kBytes);
    DAT_LMR_TRIPLET from = source.triplet(0, 33);
    ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &to, numbered(value), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &from, numbered(~value), DAT_COMPLETION_DEFAULT_FLAG),
                Succeeds());
    const DAT_EVENT received = wait_raw(server.recv.get());
    EXPECT_EQ(received.event_number, DAT_DTO_COMPLETION_EVENT);
    EXPECT_EQ(received.evd_handle, server.recv.get());
    const auto& dto = received.event_data.dto_completion_event_data;
    EXPECT_EQ(dto.ep_handle, pair.server.get());
    EXPECT_EQ(dto.user_cookie.as_64, value);
    EXPECT_EQ(dto.status, DAT_DTO_SUCCESS);
    EXPECT_EQ(dto.transfered_length, 33u);
    const DAT_EVENT sent = wait_raw(client.request.get());
    EXPECT_EQ(sent.evd_handle, client.request.get());
    EXPECT_EQ(sent.event_data.dto_completion_event_data.ep_handle, pair.client.get());
    EXPECT_EQ(sent.event_data.dto_completion_event_data.user_cookie.as_64, ~value);
    EXPECT_EQ(sent.event_data.dto_completion_event_data.transfered_length, 33u);
  }
}

// EVT-8, EVT-12, EVM-16, EVM-34: a message that does not fit ends the connection, and everything behind it is flushed.
TEST_P(EventDto, FailureBreaksTheConnectionAndFlushesTheRest) {
  const Connection pair = connect_pair(server, client);
  DAT_LMR_TRIPLET small = sink.triplet(0, 8);
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &small, numbered(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post_recv(pair.server, 2);
  post_recv(pair.server, 3);
  send(pair.client, 1);
  auto dto = wait_raw(server.recv.get()).event_data.dto_completion_event_data;
  EXPECT_EQ(dto.status, DAT_DTO_ERR_LOCAL_LENGTH);
  EXPECT_EQ(dto.user_cookie.as_64, 1u);
  EXPECT_EQ(dto.ep_handle, pair.server.get());
  for (const DAT_UINT64 flushed : {2u, 3u}) {
    dto = wait_raw(server.recv.get()).event_data.dto_completion_event_data;
    EXPECT_EQ(dto.status, DAT_DTO_ERR_FLUSHED);
    EXPECT_EQ(dto.user_cookie.as_64, flushed);
    EXPECT_EQ(dto.ep_handle, pair.server.get());
  }
  EXPECT_EQ(expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN).event_data.connect_event_data.ep_handle,
            pair.server.get());
  EXPECT_EQ(pair.server.state(), DAT_EP_STATE_DISCONNECTED);
}

// EVT-10, EVT-11: a buffer that failed is the consumer's again; the rules do not say what is in it.
TEST_P(EventDto, BufferOfAFailedReceiveIsTheConsumersAgain) {
  const Connection pair = connect_pair(server, client);
  post_recv(pair.server, 0);
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_completion(server.recv.get(), DAT_DTO_ERR_FLUSHED);
  std::memset(sink.bytes().data(), 0x11, kBytes);
  EXPECT_THAT(sink.free(), Succeeds());
}

// EVT-13, DTO-20
TEST_P(EventDto, WorkPostedWhenDisconnectedIsFlushedAtOnce) {
  const Connection pair = connect_pair(server, client);
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  ASSERT_EQ(pair.server.state(), DAT_EP_STATE_DISCONNECTED);
  post_recv(pair.server, 4);
  ASSERT_THAT(dat_ep_post_send(pair.server.get(), 0, nullptr, numbered(5), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_EQ(expect_completion(server.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 4u);
  EXPECT_EQ(expect_completion(server.request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 5u);
}

// EVT-14, EVM-5: requests of an endpoint without a request EVD cannot be posted at all, receives from an SRQ without a
// recv EVD complete without an event (EventStreams has that).
TEST_P(EventDto, DirectionWithoutAnEvdHasNoEvents) {
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_request_dtos = 0;
  const Ep mute(server.ia, server.pz, {server.recv.get(), DAT_HANDLE_NULL, server.connect.get()}, attr);
  const Ep peer(client);
  connect_pair(server, mute.get(), peer.get());
  EXPECT_THAT(dat_ep_post_send(mute.get(), 0, nullptr, numbered(1), DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_INSUFFICIENT_RESOURCES));
  post_recv(mute, 0);
  send(peer, 0);
  expect_completion(server.recv.get());
  EXPECT_FALSE(poll_event(server.request.get()));
}

// What a bind test needs: a window of the server's zone and a connection to bind on.
class EventBind : public EventDto {
 protected:
  void SetUp() override { require(dat_rmr_create(server.pz.get(), &rmr), "dat_rmr_create"); }
  void TearDown() override {
    if (rmr != DAT_HANDLE_NULL) {
      EXPECT_THAT(dat_rmr_free(rmr), Succeeds());
    }
  }
  DAT_RETURN bind(const Ep& ep, DAT_UINT64 value, std::size_t bytes = kBytes) {
    const DAT_LMR_TRIPLET range = sink.triplet(0, bytes);
    DAT_RMR_COOKIE rmr_cookie{};
    rmr_cookie.as_64 = value;
    return dat_rmr_bind(rmr, &range, DAT_MEM_PRIV_REMOTE_READ_FLAG, ep.get(), rmr_cookie, DAT_COMPLETION_DEFAULT_FLAG,
                        &context);
  }

  DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
  DAT_RMR_CONTEXT context = 0;
};

// EVT-15, EVT-1, RMR-BIND-4, ruling A42: it comes to the request EVD, in order with the other requests, also if that
// EVD has the DTO flag alone.
TEST_P(EventBind, CompletionNamesWindowCookieAndStatus) {
  const Evd dto_only(server.ia, DAT_EVD_DTO_FLAG);
  const Ep ep(server.ia, server.pz, {server.recv.get(), dto_only.get(), server.connect.get()}, default_ep_attr());
  const Ep peer(client);
  connect_pair(server, ep.get(), peer.get());
  ASSERT_THAT(dat_ep_post_recv(peer.get(), 0, nullptr, numbered(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(bind(ep, 0xFEDCBA9876543210u), Succeeds());
  ASSERT_THAT(dat_ep_post_send(ep.get(), 0, nullptr, numbered(2), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  const DAT_EVENT bound = wait_raw(dto_only.get());
  EXPECT_EQ(bound.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
  EXPECT_EQ(bound.evd_handle, dto_only.get());
  EXPECT_EQ(bound.event_data.rmr_completion_event_data.rmr_handle, rmr);
  EXPECT_EQ(bound.event_data.rmr_completion_event_data.user_cookie.as_64, 0xFEDCBA9876543210u);
  EXPECT_EQ(bound.event_data.rmr_completion_event_data.status, DAT_RMR_BIND_SUCCESS);
  EXPECT_EQ(expect_completion(dto_only.get()).user_cookie.as_64, 2u);
}

// EVT-15, RMR-BIND-13
TEST_P(EventBind, BindOnADisconnectedEndpointIsFlushed) {
  const Connection pair = connect_pair(server, client);
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  ASSERT_THAT(bind(pair.server, 7), Succeeds());
  const DAT_EVENT flushed = expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  EXPECT_EQ(flushed.event_data.rmr_completion_event_data.user_cookie.as_64, 7u);
  EXPECT_EQ(flushed.event_data.rmr_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
}

ANYDAT_OVER_ALL_WIRES(EventDto);
ANYDAT_OVER_ALL_WIRES(EventBind);

}  // namespace
}  // namespace anydat::test
