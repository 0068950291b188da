// SPDX-License-Identifier: BSD-3-Clause
// Completion statuses of Sends and Receives: section 4.6 of the rules. Those of RDMA are in rdma_protection.cc, those
// of binds in rmr_bind.cc.
#include "ep_states.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

class DtoStatus : public EpStateTest {
 protected:
  // Where the transport does not wait for the peer, SUCCESS and then the terminal event will do (STAT-14).
  void expect_remote_failure(const DAT_DTO_COMPLETION_EVENT_DATA& dto, DAT_DTO_COMPLETION_STATUS status) const {
    const bool cut_off = dto.status == DAT_DTO_ERR_FLUSHED || dto.status == DAT_DTO_ERR_TRANSPORT;
    EXPECT_TRUE(dto.status == status || dto.status == DAT_DTO_SUCCESS || (cut_off && !remote_errors_told(client.ia)))
        << "status " << dto.status;
  }
  static DAT_DTO_COMPLETION_EVENT_DATA next(DAT_EVD_HANDLE evd, Caller caller = Caller::here()) {
    return expect_event(evd, DAT_DTO_COMPLETION_EVENT, caller).event_data.dto_completion_event_data;
  }
};

TEST(DtoStatusValues, AreThoseOfTheStandard) {
  // STAT-1, TYPE-6
  static_assert(DAT_DTO_SUCCESS == 0 && DAT_DTO_ERR_FLUSHED == 1 && DAT_DTO_ERR_LOCAL_LENGTH == 2 &&
                DAT_DTO_ERR_LOCAL_EP == 3 && DAT_DTO_ERR_LOCAL_PROTECTION == 4 && DAT_DTO_ERR_BAD_RESPONSE == 5 &&
                DAT_DTO_ERR_REMOTE_ACCESS == 6 && DAT_DTO_ERR_REMOTE_RESPONDER == 7 && DAT_DTO_ERR_TRANSPORT == 8 &&
                DAT_DTO_ERR_RECEIVER_NOT_READY == 9 && DAT_DTO_ERR_PARTIAL_PACKET == 10 &&
                DAT_RMR_OPERATION_FAILED == 11);
  static_assert(DAT_DTO_LENGTH_ERROR == DAT_DTO_ERR_LOCAL_LENGTH && DAT_DTO_FAILURE == DAT_DTO_ERR_FLUSHED);
  static_assert(DAT_RMR_BIND_SUCCESS == DAT_DTO_SUCCESS && DAT_RMR_BIND_FAILURE == DAT_DTO_ERR_FLUSHED);
}

TEST_P(DtoStatus, SuccessChangesNothing) {
  // STAT-2
  const Pair pair = make_connected_pair();
  expect_working(pair);
  EXPECT_EQ(pair.client.state(), DAT_EP_STATE_CONNECTED);
  EXPECT_EQ(pair.server.state(), DAT_EP_STATE_CONNECTED);
  expect_no_event(pair.client_evds.connect.get());
}

TEST_P(DtoStatus, FlushedIsWhatTheEndLeaves) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // STAT-4, INV-2
  const Pair pair = make_connected_pair();
  const Lmr large(client.ia, client.pz, kLarge);
  post_recv(pair.client, client_buffers, 0, 2);
  post_large_send(pair.client, large, 10);
  post_large_send(pair.client, large, 11);
  ASSERT_THAT(dat_ep_disconnect(pair.server.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.client.get());
  expect_completions(pair.client_evds.recv.get(), 2, DAT_DTO_ERR_FLUSHED);
  EXPECT_EQ(expect_completion(pair.client_evds.request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 10u);
  EXPECT_EQ(expect_completion(pair.client_evds.request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 11u);
}

TEST_P(DtoStatus, ASourceThatIsFreedFails) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // STAT-6, DTO-12, LMR-FREE-4, PROT-2, STAT-15, STAT-16, STAT-17
  const std::size_t bytes = kLarge + GetParam().taken_ahead;
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_message_size = bytes;
  const Pair pair = make_connected_pair(attr, attr);
  const Lmr sink(server.ia, server.pz, bytes);
  {
    const Lmr large(client.ia, client.pz, bytes);
    post_large_send(pair.client, large, 1, bytes);  // cannot be executed yet, or not all of it
    post_send(pair.client, client_buffers, 2);
  }
  post_recv(pair.client, client_buffers, 3);
  DAT_LMR_TRIPLET to = sink.triplet();
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_EQ(expect_completion(pair.client_evds.request.get(), DAT_DTO_ERR_LOCAL_PROTECTION).user_cookie.as_64, 1u);
  EXPECT_EQ(expect_completion(pair.client_evds.request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 2u);
  expect_completion(pair.client_evds.recv.get(), DAT_DTO_ERR_FLUSHED);
  expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN, pair.client.get());
  expect_terminal_event(pair.server_evds.connect.get(), pair.server.get());
  expect_completion(pair.server_evds.recv.get(), DAT_DTO_ERR_FLUSHED);
  expect_no_event(pair.client_evds.connect.get());
}

TEST_P(DtoStatus, ASmallSourceThatIsFreedWhileItWaitsFails) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // LMR-FREE-4, LMR-FREE-8: behind more than a peer without buffers is sent.
  constexpr std::size_t kSmall = 8192;
  constexpr int kBefore = 60;
  const Pair pair = make_connected_pair();
  const Lmr source(client.ia, client.pz, kSmall), sink(server.ia, server.pz, kSmall);
  const auto post = [&](const Lmr& lmr, int number) {
    DAT_LMR_TRIPLET from = lmr.triplet();
    ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &from, cookie(number), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  };
  for (int i = 0; i < kBefore; ++i) post(source, i);
  {
    const Lmr freed(client.ia, client.pz, kSmall);
    post(freed, kBefore);
  }
  DAT_LMR_TRIPLET to = sink.triplet();
  for (int i = 0; i <= kBefore; ++i) {
    ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &to, cookie(i), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  }
  expect_completions(pair.client_evds.request.get(), kBefore);
  if (GetParam().taken_ahead >= kBefore * kSmall) return;  // it may have left before
  EXPECT_EQ(expect_completion(pair.client_evds.request.get(), DAT_DTO_ERR_LOCAL_PROTECTION).user_cookie.as_64, kBefore);
  expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN, pair.client.get());
}

TEST_P(DtoStatus, ASinkThatIsFreedFails) {
  // STAT-6, DTO-12, LMR-FREE-4, LMR-FREE-8, PROT-3, STAT-9, STAT-14
  for (const std::size_t length : {std::size_t{32}, kLarge}) {
    SCOPED_TRACE(testing::Message() << length << " bytes");
    const Pair pair = make_connected_pair();
    const Lmr source(client.ia, client.pz, kLarge);
    std::vector<std::byte> memory(kLarge, std::byte{0x42});
    {
      const Lmr sink(server.ia, server.pz, std::span(memory));
      DAT_LMR_TRIPLET to = sink.triplet();
      ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    }
    post_recv(pair.server, server_buffers, 2);
    DAT_LMR_TRIPLET from = source.triplet(0, length);
    ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &from, cookie(3), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    EXPECT_EQ(expect_completion(pair.server_evds.recv.get(), DAT_DTO_ERR_LOCAL_PROTECTION).user_cookie.as_64, 1u);
    EXPECT_EQ(expect_completion(pair.server_evds.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 2u);
    expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN, pair.server.get());
    expect_remote_failure(next(pair.client_evds.request.get()), DAT_DTO_ERR_REMOTE_RESPONDER);
    expect_terminal_event(pair.client_evds.connect.get(), pair.client.get());
    for (const std::byte byte : memory) {
      ASSERT_EQ(byte, std::byte{0x42}) << "freed memory was written";
    }
  }
}

TEST_P(DtoStatus, APeerThatDiesFailsWhatIsInProgress) {
  // STAT-10, CONN-SEQ-15, STAT-17
  HeldEp ep(server, client, GetParam(), DAT_EP_STATE_COMPLETION_PENDING);
  ep.remote().resume();
  expect_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  const Lmr large(server.ia, server.pz, kLarge);
  for (DAT_UINT64 i = 0; i < 3; ++i) {
    DAT_LMR_TRIPLET segment = large.triplet();
    ASSERT_THAT(dat_ep_post_send(ep.get(), 1, &segment, cookie(i), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  }
  ep.remote().kill();
  const auto first = next(ep.evds().request.get());
  EXPECT_TRUE(first.status == DAT_DTO_ERR_TRANSPORT || first.status == DAT_DTO_ERR_FLUSHED) << first.status;
  EXPECT_EQ(first.user_cookie.as_64, 0u);
  EXPECT_EQ(expect_completion(ep.evds().request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 1u);
  EXPECT_EQ(expect_completion(ep.evds().request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 2u);
  expect_connection_event(ep.evds().connect.get(), DAT_CONNECTION_EVENT_BROKEN, ep.get());
}

TEST_P(DtoStatus, FailuresOfOneLeaveTheOthersAlone) {
  // STAT-21, STAT-19
  const Pair failing = make_connected_pair();
  const Pair bystander = make_connected_pair();
  const Srq srq(server.ia, server.pz, 4);
  const Connection shared = connect_pair(server, srq, client);
  server_buffers.post(srq, 0, 1);
  DAT_LMR_TRIPLET small = server_buffers.triplet(5);
  small.segment_length = 1;
  ASSERT_THAT(dat_ep_post_recv(failing.server.get(), 1, &small, cookie(5), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post_send(failing.client, client_buffers, 0);
  expect_completion(failing.server_evds.recv.get(), DAT_DTO_ERR_LOCAL_LENGTH);
  expect_event(failing.server_evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_terminal_event(failing.client_evds.connect.get(), failing.client.get());
  expect_working(bystander);
  post_send(shared.client, client_buffers, 1);
  expect_completion(server.recv.get());
  EXPECT_EQ(bystander.server.state(), DAT_EP_STATE_CONNECTED);
  expect_no_event(server.ia.async_evd());
  expect_no_event(client.ia.async_evd());
}

TEST_P(DtoStatus, OnOneEvdTheFailureComesFirstAndTheEventLast) {
  // STAT-15, STAT-16, EP-DISC-11
  const Evd all(server.ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG));
  const Ep ep(server.ia, server.pz, {.recv = all.get(), .request = all.get(), .connect = all.get()}, default_ep_attr());
  const Ep peer(client);
  const Lmr large(server.ia, server.pz, kLarge);
  connect_pair(server, ep.get(), peer.get());
  DAT_LMR_TRIPLET small = server_buffers.triplet(0);
  small.segment_length = 1;
  ASSERT_THAT(dat_ep_post_recv(ep.get(), 1, &small, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  post_recv(ep, server_buffers, 1, 2);
  const bool with_send = messages_wait(server.ia);
  if (with_send) {
    post_large_send(ep, large, 50);
  }
  post_send(peer, client_buffers, 0);
  EXPECT_EQ(expect_completion(all.get(), DAT_DTO_ERR_LOCAL_LENGTH).user_cookie.as_64, 0u);
  expect_completions(all.get(), with_send ? 3 : 2, DAT_DTO_ERR_FLUSHED);
  expect_connection_event(all.get(), DAT_CONNECTION_EVENT_BROKEN, ep.get());
  expect_no_event(all.get());
}

ANYDAT_OVER_ALL_WIRES(DtoStatus);

}  // namespace
}  // namespace anydat::test
