// SPDX-License-Identifier: BSD-3-Clause
// Windows of one endpoint (dat_rmr_create_for_ep): who may use them, and when they end; over each wire.
#include <anydat/anydat.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "face20/fixture.h"

namespace anydat::test {
namespace {

constexpr std::size_t kOpened = 64 << 10;
constexpr auto kReadWrite =
    static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);

class Dat2OwnWindow : public Dat2 {
 protected:
  void SetUp() override {
    DAT_RMR_HANDLE made = DAT_HANDLE_NULL;
    const DAT_RETURN rc = dat_rmr_create_for_ep(server.pz.get(), &made);
    // D2-RMR-1, and the attribute says so.
    if (server.ia.provider().rmr_scope_supported == DAT_RMR_SCOPE_PZ) {
      EXPECT_THAT(rc, HasType(DAT_MODEL_NOT_SUPPORTED));
      GTEST_SKIP() << "the adapter has none";
    }
    EXPECT_EQ(server.ia.provider().rmr_scope_supported, DAT_RMR_SCOPE_ANY);
    require(rc, "dat_rmr_create_for_ep");
    window = Owner<dat_rmr_free>(made);
    connection.emplace(connect_pair(server, client));
    std::ranges::fill(opened->bytes(), std::byte{0x11});
    std::ranges::fill(own.bytes(), std::byte{0x22});
  }
  DAT_RMR_CONTEXT bind(DAT_EP_HANDLE by, DAT_MEM_PRIV_FLAGS rights = kReadWrite) {
    const DAT_LMR_TRIPLET part = opened->triplet();
    DAT_RMR_CONTEXT context = 0;
    require(dat_rmr_bind(window.get(), opened->get(), &part, rights, DAT_VA_TYPE_VA, by, {},
                         DAT_COMPLETION_DEFAULT_FLAG, &context),
            "dat_rmr_bind");
    const DAT_EVENT event = expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
    EXPECT_EQ(event.event_data.rmr_completion_event_data.status, DAT_DTO_SUCCESS);
    return context;
  }
  DAT_RMR_PARAM query() const {
    DAT_RMR_PARAM param{};
    require(dat_rmr_query(window.get(), DAT_RMR_FIELD_ALL, &param), "dat_rmr_query");
    return param;
  }
  DAT_RMR_TRIPLET remote(DAT_RMR_CONTEXT context, std::size_t length) const {
    DAT_RMR_TRIPLET triplet = opened->remote(0, length);
    triplet.rmr_context = context;
    return triplet;
  }
  DAT_RETURN post(const Ep& from, DAT_RMR_CONTEXT context, std::size_t length, bool reads) const {
    DAT_LMR_TRIPLET local = own.triplet(0, length);
    const DAT_RMR_TRIPLET there = remote(context, length);
    return reads ? dat_ep_post_rdma_read(from.get(), 1, &local, {}, &there, DAT_COMPLETION_DEFAULT_FLAG)
                 : dat_ep_post_rdma_write(from.get(), 1, &local, {}, &there, DAT_COMPLETION_DEFAULT_FLAG);
  }
  // An RDMA that the window allows, and one by which a connection ends at both sides (STAT-8).
  void expect_open(const Ep& from, DAT_RMR_CONTEXT context, std::size_t length, bool reads) const {
    ASSERT_THAT(post(from, context, length, reads), Succeeds());
    (void)expect_completion(client.request.get());
  }
  // A Write of one that is refused may have completed already where the peer answers no Write; the Read behind it has
  // not.
  void expect_refused(const Ep& from, DAT_RMR_CONTEXT context, bool reads = true) {
    const std::vector<std::byte> before(opened->bytes().begin(), opened->bytes().end());
    ASSERT_THAT(post(from, context, 64, reads), Succeeds());
    (void)expect_completion(client.request.get(), DAT_DTO_ERR_REMOTE_ACCESS);
    (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), opened->bytes().begin()));
  }
  // D2-RMR-4: nothing is left of the binding.
  void expect_unbound() {
    const DAT_RMR_PARAM param = query();
    EXPECT_EQ(param.rmr_scope, DAT_RMR_SCOPE_EP);
    EXPECT_EQ(param.rmr_context, 0u);
    EXPECT_EQ(param.lmr_triplet.segment_length, 0u);
    EXPECT_EQ(param.mem_priv, 0);
    EXPECT_THAT(opened->free(), Succeeds()) << "the window still uses it";
  }

  std::optional<Lmr> opened{std::in_place, server.ia, server.pz, kOpened};
  Lmr own{client.ia, client.pz, kOpened};
  Owner<dat_rmr_free> window;
  std::optional<Connection> connection;
};
INSTANTIATE_TEST_SUITE_P(Wires, Dat2OwnWindow, testing::ValuesIn(all_wires()), wire_name);

// D2-RMR-1, D2-RMR-2, D2-RMR-8: short, long, and often, each as the window lends it.
TEST_P(Dat2OwnWindow, ThePeerOfItsEndpointUsesIt) {
  EXPECT_EQ(query().rmr_scope, DAT_RMR_SCOPE_EP) << "from the beginning";
  EXPECT_EQ(query().rmr_context, 0u);
  const DAT_RMR_CONTEXT context = bind(connection->server.get());
  EXPECT_EQ(query().rmr_context, context);
  EXPECT_EQ(query().mem_priv, kReadWrite);
  for (const std::size_t length : {std::size_t{8}, std::size_t{5000}, kOpened}) {
    std::ranges::fill(own.bytes(), std::byte{0x33});
    expect_open(connection->client, context, length, false);
    std::ranges::fill(own.bytes(), std::byte{0x44});
    expect_open(connection->client, context, length, true);
    EXPECT_EQ(own.bytes()[length - 1], std::byte{0x33});
    EXPECT_EQ(opened->bytes()[length - 1], std::byte{0x33});
  }
  for (int i = 0; i < 3000; ++i) expect_open(connection->client, context, 8, i % 3 == 0);
  EXPECT_THAT(window.free(), Succeeds());
  expect_refused(connection->client, context);  // RMR-FREE-2
}

// The same of memory that both sides map, by the short way that such Writes and Reads have.
TEST_P(Dat2OwnWindow, SharedMemoryIsOpenedToOnePeerToo) {
  void* shared = nullptr;
  ASSERT_THAT(anydat_alloc_shareable(kOpened, &shared), Succeeds());
  opened.emplace(server.ia, server.pz, std::span(static_cast<std::byte*>(shared), kOpened));
  const Connection other = connect_pair(server, client);
  const DAT_RMR_CONTEXT context = bind(connection->server.get());
  for (int i = 0; i < 3000; ++i) {
    expect_open(connection->client, context, 64, false);
    expect_open(connection->client, context, 64, true);
  }
  EXPECT_EQ(opened->bytes()[63], std::byte{0x22});
  expect_refused(other.client, context);
  expect_open(connection->client, context, 64, false);
  const DAT_RMR_CONTEXT again = bind(connection->server.get());
  expect_open(connection->client, again, 64, false);
  expect_refused(connection->client, context);
  EXPECT_THAT(window.free(), Succeeds());
  opened.reset();
  EXPECT_THAT(anydat_free_shareable(shared), Succeeds());
}

// D2-RMR-2: another connection of the same zone, of the same two processes or of a third adapter.
TEST_P(Dat2OwnWindow, NoOtherConnectionReachesIt) {
  Side third(GetParam());
  const DAT_RMR_CONTEXT context = bind(connection->server.get());
  expect_open(connection->client, context, 64, true);
  {
    const Connection other = connect_pair(server, client);
    expect_refused(other.client, context);
  }
  {
    const Connection other = connect_pair(server, third);
    const Lmr memory(third.ia, third.pz, 64);
    DAT_LMR_TRIPLET local = memory.triplet();
    const DAT_RMR_TRIPLET there = remote(context, 64);
    ASSERT_THAT(dat_ep_post_rdma_read(other.client.get(), 1, &local, {}, &there, DAT_COMPLETION_DEFAULT_FLAG),
                Succeeds());
    (void)expect_completion(third.request.get(), DAT_DTO_ERR_REMOTE_ACCESS);
    (void)expect_event(third.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  }
  // Writes: the first completion may tell that it has left; the bytes stay as they are.
  const Connection other = connect_pair(server, client);
  const std::vector<std::byte> before(opened->bytes().begin(), opened->bytes().end());
  ASSERT_THAT(post(other.client, context, 64, false), Succeeds());
  (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  (void)expect_completion(client.request.get(), DAT_DTO_ERR_REMOTE_ACCESS);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), opened->bytes().begin()));
  expect_open(connection->client, context, 64, true);
}

// A window of the zone goes on serving all, beside those of endpoints.
TEST_P(Dat2OwnWindow, AWindowOfTheZoneServesAll) {
  DAT_RMR_HANDLE made = DAT_HANDLE_NULL;
  require(dat_rmr_create(server.pz.get(), &made), "dat_rmr_create");
  window = Owner<dat_rmr_free>(made);
  const DAT_RMR_CONTEXT context = bind(connection->server.get());
  const Connection other = connect_pair(server, client);
  expect_open(other.client, context, 64, true);
  require(dat_ep_disconnect(connection->server.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_open(other.client, context, 64, true);
  EXPECT_EQ(query().rmr_context, context);
  EXPECT_THAT(window.free(), Succeeds());
}

// D2-RMR-3.
TEST_P(Dat2OwnWindow, ABindByAnotherEndpointMovesIt) {
  const DAT_RMR_CONTEXT before = bind(connection->server.get());
  const Connection other = connect_pair(server, client);
  const DAT_RMR_CONTEXT after = bind(other.server.get());
  EXPECT_NE(after, before);
  expect_open(other.client, after, 64, true);
  expect_refused(connection->client, before);
  // It does not end with the connection that it has left.
  expect_open(other.client, after, 64, true);
  EXPECT_EQ(query().rmr_context, after);
}

// D2-RMR-4: in whatever way the connection ends.
TEST_P(Dat2OwnWindow, ItEndsWithTheConnection) {
  const Connection witness = connect_pair(server, client);
  const auto ended = [&](DAT_EVENT_NUMBER number) {
    (void)expect_event(server.connect.get(), number);
    (void)expect_event(client.connect.get(), number);
  };
  const auto disconnect = [](const Ep& ep, DAT_CLOSE_FLAGS flags) {
    require(dat_ep_disconnect(ep.get(), flags), "dat_ep_disconnect");
  };
  for (int way = 0; way < 7; ++way) {
    if (way > 0) {
      connection.emplace(connect_pair(server, client));
      opened.emplace(server.ia, server.pz, kOpened);
    }
    const DAT_RMR_CONTEXT context = bind(connection->server.get());
    expect_open(connection->client, context, 64, true);
    switch (way) {
      case 0:
        disconnect(connection->server, DAT_CLOSE_ABRUPT_FLAG);
        ended(DAT_CONNECTION_EVENT_DISCONNECTED);
        break;
      case 1:
        disconnect(connection->server, DAT_CLOSE_GRACEFUL_FLAG);
        ended(DAT_CONNECTION_EVENT_DISCONNECTED);
        break;
      case 2:
        disconnect(connection->client, DAT_CLOSE_GRACEFUL_FLAG);
        ended(DAT_CONNECTION_EVENT_DISCONNECTED);
        break;
      case 3:
        disconnect(connection->client, DAT_CLOSE_ABRUPT_FLAG);
        ended(DAT_CONNECTION_EVENT_DISCONNECTED);
        break;
      case 4:
        expect_refused(connection->client, context ^ 0x10);
        break;
      case 5:
        EXPECT_THAT(connection->server.free(), Succeeds());
        (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
        break;
      default:
        EXPECT_THAT(connection->client.free(), Succeeds());
        (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
        break;
    }
    expect_unbound();
    while (poll_event(server.connect.get()) || poll_event(client.connect.get())) continue;
  }
  // A context of a connection that is over is none.
  opened.emplace(server.ia, server.pz, kOpened);
  connection.emplace(connect_pair(server, client));
  const DAT_RMR_CONTEXT last = bind(connection->server.get());
  disconnect(connection->server, DAT_CLOSE_ABRUPT_FLAG);
  ended(DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_refused(witness.client, last);
}

// The endpoint's next connection begins without windows.
TEST_P(Dat2OwnWindow, TheNextConnectionOfItsEndpointDoesNotReachIt) {
  const DAT_RMR_CONTEXT context = bind(connection->server.get());
  require(dat_ep_disconnect(connection->client.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  for (const Ep* ep : {&connection->server, &connection->client}) require(dat_ep_reset(ep->get()), "dat_ep_reset");
  connect_pair(server, connection->server.get(), connection->client.get());
  expect_refused(connection->client, context);
  for (const Ep* ep : {&connection->server, &connection->client}) require(dat_ep_reset(ep->get()), "dat_ep_reset");
  connect_pair(server, connection->server.get(), connection->client.get());
  expect_open(connection->client, bind(connection->server.get()), 64, true);
}

// RMR-BIND-13, D2-RMR-4: a bind that is flushed has shown nothing, and the window is bound to nothing.
TEST_P(Dat2OwnWindow, ABindThatIsFlushedShowsNothing) {
  (void)bind(connection->server.get());
  require(dat_ep_disconnect(connection->server.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  const DAT_LMR_TRIPLET part = opened->triplet();
  DAT_RMR_CONTEXT context = 0;
  ASSERT_THAT(dat_rmr_bind(window.get(), opened->get(), &part, kReadWrite, DAT_VA_TYPE_VA, connection->server.get(), {},
                           DAT_COMPLETION_DEFAULT_FLAG, &context),
              Succeeds());
  const DAT_EVENT event = expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  EXPECT_EQ(event.event_data.rmr_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
  expect_unbound();
}

// The same of one that has not been carried out when the connection ends, after an unbind that has.
TEST_P(Dat2OwnWindow, ABindThatIsFlushedBehindSendsShowsNothing) {
  constexpr std::size_t kLong = 8 << 20;
  constexpr int kMoreThanGoOut = 12;  // that the peer has no receives for
  const Lmr message(server.ia, server.pz, kLong);
  (void)bind(connection->server.get());
  const DAT_LMR_TRIPLET nothing{};
  ASSERT_THAT(dat_rmr_bind(window.get(), DAT_HANDLE_NULL, &nothing, kReadWrite, DAT_VA_TYPE_VA,
                           connection->server.get(), {}, DAT_COMPLETION_DEFAULT_FLAG, nullptr),
              Succeeds());
  (void)expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  for (int i = 0; i < kMoreThanGoOut; ++i) {
    DAT_LMR_TRIPLET segment = message.triplet();
    ASSERT_THAT(dat_ep_post_send(connection->server.get(), 1, &segment, {}, DAT_COMPLETION_SUPPRESS_FLAG), Succeeds());
  }
  const DAT_LMR_TRIPLET part = opened->triplet();
  DAT_RMR_CONTEXT context = 0;
  ASSERT_THAT(dat_rmr_bind(window.get(), opened->get(), &part, kReadWrite, DAT_VA_TYPE_VA, connection->server.get(), {},
                           DAT_COMPLETION_DEFAULT_FLAG, &context),
              Succeeds());
  EXPECT_EQ(query().rmr_context, context) << "as it is to be (RMR-QUERY-3)";
  require(dat_ep_disconnect(connection->server.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  for (int i = 0; i < kMoreThanGoOut; ++i) (void)expect_completion(server.request.get(), DAT_DTO_ERR_FLUSHED);
  const DAT_EVENT event = expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  EXPECT_EQ(event.event_data.rmr_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
  expect_unbound();
}

// RMR-BIND-7, RMR-FREE-1, and D2-READRMR-2: what a Read of this side may have for its sink.
TEST_P(Dat2OwnWindow, ItsOwnSideUsesItByItsEndpointAlone) {
  const Connection other = connect_pair(server, client);
  const DAT_RMR_CONTEXT context = bind(connection->server.get());
  const DAT_RMR_TRIPLET sink = remote(context, 64);
  const DAT_RMR_TRIPLET source = own.remote(0, 64);
  EXPECT_THAT(dat_ep_post_rdma_read_to_rmr(other.server.get(), &sink, {}, &source, DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_PROTECTION_VIOLATION));
  ASSERT_THAT(dat_ep_post_rdma_read_to_rmr(connection->server.get(), &sink, {}, &source, DAT_COMPLETION_DEFAULT_FLAG),
              Succeeds());
  (void)expect_completion(server.request.get());
  EXPECT_EQ(opened->bytes()[63], std::byte{0x22});
  const DAT_LMR_TRIPLET nothing{};
  ASSERT_THAT(dat_rmr_bind(window.get(), DAT_HANDLE_NULL, &nothing, kReadWrite, DAT_VA_TYPE_VA, other.server.get(), {},
                           DAT_COMPLETION_DEFAULT_FLAG, nullptr),
              Succeeds());
  (void)expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  expect_unbound();
  expect_refused(connection->client, context);
}

TEST_P(Dat2OwnWindow, ArgumentsAreChecked) {
  DAT_RMR_HANDLE made = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_rmr_create_for_ep(server.pz.get(), nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_rmr_create_for_ep(connection->server.get(), &made), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_rmr_create_for_ep(DAT_HANDLE_NULL, &made), HasType(DAT_INVALID_HANDLE));
  // RMR-BIND-10.
  const Pz zone(server.ia);
  const Lmr elsewhere(server.ia, zone, 64);
  const DAT_LMR_TRIPLET part = elsewhere.triplet();
  DAT_RMR_CONTEXT context = 0;
  EXPECT_THAT(dat_rmr_bind(window.get(), elsewhere.get(), &part, kReadWrite, DAT_VA_TYPE_VA, connection->server.get(),
                           {}, DAT_COMPLETION_DEFAULT_FLAG, &context),
              HasType(DAT_PROTECTION_VIOLATION));
  DAT_HANDLE_TYPE type{};
  ASSERT_THAT(dat_get_handle_type(window.get(), &type), Succeeds());
  EXPECT_EQ(type, DAT_HANDLE_TYPE_RMR);
  // RMR-BIND-15, PZ-FREE-1.
  (void)bind(connection->server.get());
  EXPECT_THAT(dat_lmr_free(opened->get()), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(window.free(), Succeeds());
  EXPECT_THAT(opened->free(), Succeeds());
}

}  // namespace
}  // namespace anydat::test
