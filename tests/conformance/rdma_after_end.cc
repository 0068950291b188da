// SPDX-License-Identifier: BSD-3-Clause
// Memory of a side that has ended a connection: the peer, who may not know yet, reaches it by that connection no more.
#include <atomic>
#include <thread>

#include "rdma_fixture.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

// Memory that a peer writes or reads just then: a race by the book, which programs of RDMA have.
#define ANYDAT_RACES __attribute__((no_sanitize("thread"), noinline))
ANYDAT_RACES std::uint64_t read_word(const std::byte* memory) {
  return *reinterpret_cast<const volatile std::uint64_t*>(memory);
}
ANYDAT_RACES void write_word(std::byte* memory, std::uint64_t value) {
  *reinterpret_cast<volatile std::uint64_t*>(memory) = value;
}

enum class End { free, abrupt, graceful, by_peer };

class RdmaAfterTheEnd : public RdmaTest {
 protected:
  std::uint64_t word() const { return read_word(target.bytes().data()); }

  // Writes numbers until it is told that the connection has ended. It looks for no completions, so that it is told
  // late.
  void write_on(const Pair& pair, std::atomic<std::uint64_t>& posted) {
    std::byte* const source = local.bytes().data();
    for (std::uint64_t number = 1; number % 64 != 0 || pair.client.state() == DAT_EP_STATE_CONNECTED; ++number) {
      write_word(source, number);
      const DAT_RETURN rc =
          rdma_write(pair.client, local.triplet(0, 8), target.remote(0, 8), number, DAT_COMPLETION_SUPPRESS_FLAG);
      if (DAT_GET_TYPE(rc) == DAT_INSUFFICIENT_RESOURCES) std::this_thread::yield();
      posted = number;
    }
  }

  void end_connection(Pair& pair, End how) {
    if (how == End::free) {
      require(pair.server.free(), "dat_ep_free");
      return;
    }
    require(dat_ep_disconnect(pair.server.get(), how == End::abrupt ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG),
            "dat_ep_disconnect");
    expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.server.get());
  }
};

TEST_P(RdmaAfterTheEnd, WhatThePeerStillWritesChangesNothing) {
  // EP-FREE-5, EP-DISC-10
  for (const End how : {End::free, End::abrupt, End::graceful, End::by_peer}) {
    for (int round = 0; round < 20; ++round) {
      SCOPED_TRACE(testing::Message() << "way " << static_cast<int>(how) << ", round " << round);
      Pair pair = make_connected_pair();
      std::atomic<std::uint64_t> posted{0};
      std::thread writer([&] { write_on(pair, posted); });
      EXPECT_TRUE(eventually([&] { return posted > 2000; }));
      if (how == End::by_peer) {
        require(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
        expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.server.get());
      } else {
        end_connection(pair, how);
      }
      const std::uint64_t last = word();
      const std::uint64_t before = posted;
      while (word() == last && pair.client.state() == DAT_EP_STATE_CONNECTED && posted < before + 100'000) {
      }
      EXPECT_EQ(word(), last);
      writer.join();
      EXPECT_EQ(word(), last);
    }
  }
}

TEST_P(RdmaAfterTheEnd, OtherConnectionsGoOn) {
  const Pair other = make_connected_pair();
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (DAT_UINT64 number = 0; !over; ++number) {
      require(rdma_write(other.client, local.triplet(64, 8), target.remote(64, 8), number), "dat_ep_post_rdma_write");
      EXPECT_EQ(expect_completion(other.client_evds.request.get()).user_cookie.as_64, number);
    }
  });
  for (int round = 0; round < 100; ++round) {
    const Pair pair = make_connected_pair();
    for (int i = 0; i < 20; ++i) {
      require(rdma_write(pair.client, local.triplet(0, 8), target.remote(0, 8), 1), "dat_ep_post_rdma_write");
      expect_completion(pair.client_evds.request.get());
    }
    require(dat_ep_disconnect(pair.server.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
    expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.server.get());
  }
  over = true;
  writer.join();
}

// A peer that has left in order while messages of its are still to be received.
TEST_P(RdmaAfterTheEnd, WhoHasLeftIsWrittenToNoMoreAlsoWhileItsMessagesAreReceived) {
  // EP-DISC-6, EP-DISC-10
  ANYDAT_NEEDS_WAITING_MESSAGES(client.ia)
  const Pair pair = make_connected_pair();
  post_send(pair.server, server_buffers, 0);
  expect_completion(pair.server_evds.request.get());
  require(dat_ep_disconnect(pair.server.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.server.get());
  expect_no_event(pair.client_evds.connect.get());  // it has heard, too
  const std::uint64_t before = word();
  std::fill(local.bytes().begin(), local.bytes().end(), std::byte{0x42});
  ASSERT_THAT(rdma_write(pair.client, local.triplet(0, 8), target.remote(0, 8), 5), Succeeds());
  post_recv(pair.client, client_buffers, 1);
  expect_completion(pair.client_evds.recv.get());
  expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.client.get());
  EXPECT_EQ(expect_completion(pair.client_evds.request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 5U);
  EXPECT_EQ(word(), before);
}

// Who answers a peer that has left in order has what it sent before all the same.
TEST_P(RdmaAfterTheEnd, WhoHasLeftIsAnsweredInVain) {
  ANYDAT_NEEDS_WAITING_MESSAGES(client.ia)
  const Pair pair = make_connected_pair();
  post_recv(pair.client, client_buffers, 0);
  post_send(pair.server, server_buffers, 0, 2);
  for (int i = 0; i < 2; ++i) expect_completion(pair.server_evds.request.get());
  require(dat_ep_disconnect(pair.server.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.server.get());
  expect_completion(pair.client_evds.recv.get());
  expect_no_event(pair.client_evds.connect.get());
  post_send(pair.client, client_buffers, 2);
  expect_completion(pair.client_evds.request.get());
  post_recv(pair.client, client_buffers, 1);
  EXPECT_EQ(expect_completion(pair.client_evds.recv.get()).user_cookie.as_64, 1U);
  expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.client.get());
}

INSTANTIATE_TEST_SUITE_P(Wires, RdmaAfterTheEnd, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
