// SPDX-License-Identifier: BSD-3-Clause
// Private data: section 5.8 of the rules.
#include "ep_fixture.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

class PrivateDataTest : public EpTest {
 protected:
  DAT_RETURN connect(const Ep& ep, DAT_COUNT size, const void* data) {
    return dat_ep_connect(ep.get(), loopback(), server.listen(), DAT_TIMEOUT_INFINITE, size, const_cast<void*>(data),
                          DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
  }
  DAT_COUNT most = server.ia.provider().max_private_data_size;
};

std::vector<std::byte> counting(DAT_COUNT size) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + 1);
  }
  return bytes;
}

TEST_P(PrivateDataTest, EverySizeUpToTheMaximumArrivesExactly) {
  // PD-1, PD-3, PD-4, PD-5, CR-QUERY-3, ATTR-1
  ASSERT_GE(most, 64);
  for (const DAT_COUNT size : {0, 1, 7, 63, 64, most - 1, most}) {
    SCOPED_TRACE(testing::Message() << "size " << size);
    const Pair pair = make_pair();
    const std::vector<std::byte> question = counting(size);
    std::vector<std::byte> answer = counting(most - size);
    ASSERT_THAT(connect(pair.client, size, question.data()), Succeeds());
    const DAT_CR_HANDLE request = expect_request(server.requests.get()).cr_handle;
    const DAT_CR_PARAM seen = query_request(request);
    EXPECT_EQ(seen.private_data_size, size);
    EXPECT_EQ(bytes_of(seen.private_data, seen.private_data_size), question);
    ASSERT_THAT(dat_cr_accept(request, pair.server.get(), most - size, answer.data()), Succeeds());
    const std::vector<std::byte> sent = answer;
    std::fill(answer.begin(), answer.end(), std::byte{0});  // PD-8
    const auto active =
        expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, pair.client.get());
    EXPECT_EQ(active.private_data_size, most - size);
    EXPECT_EQ(bytes_of(active.private_data, active.private_data_size), sent);
    const auto passive =
        expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, pair.server.get());
    EXPECT_EQ(passive.private_data_size, 0);
  }
}

TEST_P(PrivateDataTest, WrongSizesAreRefused) {
  // PD-2, EP-CONN-13, EP-CONN-16, CR-ACC-6, CR-ACC-10
  const Pair pair = make_pair();
  std::vector<std::byte> data(static_cast<std::size_t>(most) + 1);
  for (const DAT_COUNT bad : {-1, most + 1}) {
    EXPECT_THAT(connect(pair.client, bad, data.data()), HasType(DAT_INVALID_PARAMETER)) << bad;
  }
  EXPECT_THAT(connect(pair.client, 1, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(pair.client.state(), DAT_EP_STATE_UNCONNECTED);

  ASSERT_THAT(connect(pair.client, 0, data.data()), Succeeds()) << "of size 0 the pointer is ignored";
  const DAT_CR_HANDLE request = expect_request(server.requests.get()).cr_handle;
  for (const DAT_COUNT bad : {-1, most + 1}) {
    EXPECT_THAT(dat_cr_accept(request, pair.server.get(), bad, data.data()), HasType(DAT_INVALID_PARAMETER)) << bad;
  }
  EXPECT_THAT(dat_cr_accept(request, pair.server.get(), 1, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(pair.server.state(), DAT_EP_STATE_UNCONNECTED);
  EXPECT_EQ(query_request(request).private_data_size, 0);
  // With size 0 the call does not look at the pointer.
  ASSERT_THAT(dat_cr_accept(request, pair.server.get(), 0, reinterpret_cast<DAT_PVOID>(std::uintptr_t{8})), Succeeds());
  EXPECT_EQ(expect_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED)
                .event_data.connect_event_data.private_data_size,
            0);
}

TEST_P(PrivateDataTest, ActiveSideKeepsTheAnswerForTheLifeOfTheConnection) {
  // PD-6
  const Pair pair = make_pair();
  const std::vector<std::byte> answer = counting(most);
  const auto established = connect_pair(server, pair.server.get(), pair.client.get(), {.request = {}, .reply = answer});
  const auto kept = [&] { return bytes_of(established.private_data, established.private_data_size) == answer; };
  EXPECT_TRUE(kept());
  for (int i = 0; i < 3; ++i) {  // other connections come and go
    const Pair other = make_pair();
    connect_pair(server, other.server.get(), other.client.get(), {.request = counting(most), .reply = counting(3)});
  }
  EXPECT_TRUE(kept());
  const Lmr large(client.ia, client.pz, kLarge);
  if (messages_wait(client.ia)) {
    post_large_send(pair.client, large, 0);  // keeps the end waiting
    ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
    EXPECT_TRUE(kept());
  }
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_TRUE(kept());
}

TEST_P(PrivateDataTest, RequestKeepsItsDataWhileItPends) {
  // PD-7, CR-QUERY-6
  const Ep one(client);
  const Ep two(client);
  ASSERT_THAT(connect(one, most, counting(most).data()), Succeeds());
  const DAT_CR_PARAM first = query_request(expect_request(server.requests.get()).cr_handle);
  const std::vector<std::byte> zeros(static_cast<std::size_t>(most));
  ASSERT_THAT(connect(two, most, zeros.data()), Succeeds());
  expect_request(server.requests.get());
  EXPECT_EQ(bytes_of(first.private_data, first.private_data_size), counting(most));
}

TEST_P(PrivateDataTest, TheProvidersOwnTakesNoRoom) {
  // PD-9: with attributes that a Provider may want to tell its peer, the full size is there all the same.
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_rdma_read_in = 7;
  attr.max_rdma_read_out = 5;
  const Pair pair = make_pair(attr, attr);
  const auto active =
      connect_pair(server, pair.server.get(), pair.client.get(), {.request = counting(most), .reply = counting(most)});
  EXPECT_EQ(bytes_of(active.private_data, active.private_data_size), counting(most));
}

ANYDAT_OVER_ALL_WIRES(PrivateDataTest);

}  // namespace
}  // namespace anydat::test
