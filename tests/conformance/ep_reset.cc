// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_reset: section 3.9 of the rules. Which state allows it is in ep_state_table.cc.
#include "ep_states.h"

namespace anydat::test {
namespace {

class EpReset : public EpStateTest {
 protected:
  static void disconnect(const Pair& pair) {
    require(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
    expect_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    expect_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  }
};

TEST_P(EpReset, MakesTheEndpointUsableAgain) {
  // EP-RESET-1, CONN-SEQ-16
  Pair pair = make_pair();
  for (int life = 0; life < 10; ++life) {
    connect_pair(server, pair.server.get(), pair.client.get());
    expect_working(pair);
    disconnect(pair);
    for (const Ep* ep : {&pair.server, &pair.client}) {
      ASSERT_THAT(dat_ep_reset(ep->get()), Succeeds());
      EXPECT_EQ(ep->state(), DAT_EP_STATE_UNCONNECTED);
    }
  }
}

TEST_P(EpReset, EitherSideMayAskNextTime) {
  // EP-RESET-1, CONN-SEQ-16
  Pair pair = make_connected_pair();
  disconnect(pair);
  ASSERT_THAT(dat_ep_reset(pair.server.get()), Succeeds());
  ASSERT_THAT(dat_ep_reset(pair.client.get()), Succeeds());
  connect_pair(client, pair.client.get(), pair.server.get());
  expect_working(pair);
}

TEST_P(EpReset, IsNothingToAnUnconnectedEndpoint) {
  // EP-RESET-2
  const Pair pair = make_pair();
  post_recv(pair.server, server_buffers, 0, 2);
  ASSERT_THAT(dat_ep_reset(pair.server.get()), Succeeds());
  EXPECT_FALSE(poll_event(pair.server_evds.recv.get()));
  connect_pair(server, pair.server.get(), pair.client.get());
  post_send(pair.client, client_buffers, 5, 2);
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).user_cookie.as_64, 0u);
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).user_cookie.as_64, 1u);
}

TEST_P(EpReset, ChecksItsHandle) {
  // EP-RESET-3, GEN-2
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.pz.get()}) {
    const DAT_RETURN rc = dat_ep_reset(bad);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
  }
}

TEST_P(EpReset, KeepsCompletionsThatAreNotReaped) {
  // EP-RESET-4 (ruling R59)
  const Pair pair = make_connected_pair();
  post_recv(pair.client, client_buffers, 0, 3);
  disconnect(pair);
  ASSERT_THAT(dat_ep_reset(pair.client.get()), Succeeds());
  for (DAT_UINT64 i = 0; i < 3; ++i) {
    EXPECT_EQ(expect_completion(pair.client_evds.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, i);
  }
}

TEST_P(EpReset, KeepsTheConfiguration) {
  // EP-RESET-5
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_recv_dtos = 9;
  attr.max_message_size = 333;
  const Pair pair = make_connected_pair(default_ep_attr(), attr);
  ASSERT_THAT(dat_ep_set_watermark(pair.client.get(), DAT_WATERMARK_INFINITE, 1), Succeeds());
  const DAT_EP_PARAM before = pair.client.query();
  disconnect(pair);
  const DAT_EP_HANDLE handle = pair.client.get();
  ASSERT_THAT(dat_ep_reset(handle), Succeeds());
  const DAT_EP_PARAM after = pair.client.query();
  EXPECT_EQ(after.pz_handle, before.pz_handle);
  EXPECT_EQ(after.recv_evd_handle, before.recv_evd_handle);
  EXPECT_EQ(after.request_evd_handle, before.request_evd_handle);
  EXPECT_EQ(after.connect_evd_handle, before.connect_evd_handle);
  EXPECT_EQ(after.ep_attr.max_recv_dtos, before.ep_attr.max_recv_dtos);
  EXPECT_EQ(after.ep_attr.max_message_size, 333u);
  // The hard watermark stays and still works.
  ASSERT_THAT(dat_ep_reset(pair.server.get()), Succeeds());
  connect_pair(server, pair.server.get(), pair.client.get());
  post_recv(pair.client, client_buffers, 0, 2);
  expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN, handle);
}

TEST_P(EpReset, PrivateDataLastUntilThen) {
  // EP-RESET-6, PD-6
  const Pair pair = make_pair();
  const std::vector<std::byte> reply = bytes_of("kept through the end");
  const auto established = connect_pair(server, pair.server.get(), pair.client.get(), {.request = {}, .reply = reply});
  EXPECT_EQ(bytes_of(established.private_data, established.private_data_size), reply);
  disconnect(pair);
  EXPECT_EQ(bytes_of(established.private_data, established.private_data_size), reply);
  ASSERT_THAT(dat_ep_reset(pair.client.get()), Succeeds());  // from here on it may not be looked at
}

TEST_P(EpReset, AMarkerComesAfterEverythingElse) {
  // EP-RESET-7, EP-RESET-8, DTO-20
  const Pair pair = make_connected_pair();
  post_recv(pair.server, server_buffers, 0, 10);
  post_recv(pair.client, client_buffers, 0, 10);
  post_send(pair.client, client_buffers, 20, 10);
  disconnect(pair);
  constexpr int kMarker = 60;
  for (const auto& [ep, buffers] : {std::pair<const Ep&, const Buffers&>(pair.server, server_buffers),
                                    std::pair<const Ep&, const Buffers&>(pair.client, client_buffers)}) {
    ASSERT_THAT(try_recv(ep, buffers, kMarker), Succeeds());
    ASSERT_THAT(try_send(ep, buffers, kMarker), Succeeds());
  }
  const auto reap_up_to_marker = [](DAT_EVD_HANDLE evd) {
    int before = 0;
    while (true) {
      const auto dto = expect_event(evd, DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
      if (dto.user_cookie.as_64 == kMarker) {
        EXPECT_EQ(dto.status, DAT_DTO_ERR_FLUSHED);
        break;
      }
      ++before;
    }
    EXPECT_FALSE(poll_event(evd));
    return before;
  };
  EXPECT_EQ(reap_up_to_marker(pair.server_evds.recv.get()), 10);
  EXPECT_EQ(reap_up_to_marker(pair.server_evds.request.get()), 0);
  EXPECT_EQ(reap_up_to_marker(pair.client_evds.recv.get()), 10);
  EXPECT_EQ(reap_up_to_marker(pair.client_evds.request.get()), 10);
}

ANYDAT_OVER_ALL_WIRES(EpReset);

}  // namespace
}  // namespace anydat::test
