// SPDX-License-Identifier: BSD-3-Clause
// A local peer whose messages are well-formed, each by itself, and come in an order in which none of ours would send
// them.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "fake_service.h"
#include "nic/soft/stream.h"
#include "raw_peer.h"
#include "seed.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

using shm::CellKind;
using OrderClock = std::chrono::steady_clock;

class HostileOrder : public testing::Test {
 protected:
  static RawCell closing(std::uint32_t connection) {
    return {.kind = CellKind::close,
            .connection = connection,
            .aux = static_cast<std::uint32_t>(nic::soft::CloseReason::graceful)};
  }
  static RawPeer linked(DAT_CONN_QUAL qualifier) {
    RawPeer peer(raw_service_name(qualifier));
    EXPECT_TRUE(peer.shake_hands());
    return peer;
  }
  DAT_CR_HANDLE next_request(const Side& side) {
    return expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
  }
  // Ours for a connection that the peer has asked for, by that name of its own. Returns our name for it.
  std::uint32_t accept(Side& side, RawPeer& peer, std::uint32_t own_name, const Ep& ep) {
    peer.put({.kind = CellKind::connect, .body = bytes_of(connect_body(side.listen(), own_name))});
    peer.ring();
    require(dat_cr_accept(next_request(side), ep.get(), 0, nullptr), "dat_cr_accept");
    while (const auto answer = peer.take()) {
      if (answer->kind != CellKind::accept || answer->connection != own_name) continue;
      shm::AcceptBody body;
      std::memcpy(&body, answer->body.data(), sizeof body);
      peer.put({.kind = CellKind::ready, .connection = body.connection});
      peer.ring();
      expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
      return body.connection;
    }
    ADD_FAILURE() << "it was not accepted";
    return 0;
  }

  Wire wire = wire_by_name("shm");
};

// CR-ACC-5. Its link is dead, and is not done with as long as the peer seems to use memory of ours.
TEST_F(HostileOrder, ARequestOfAPeerThatIsCutOffMayBeAcceptedMeanwhile) {
  Side side(wire);
  const Ep ep(side);
  RawPeer peer = linked(side.listen());
  peer.put({.kind = CellKind::connect, .body = bytes_of(connect_body(side.listen(), 7))});
  peer.ring();
  const DAT_CR_HANDLE request = next_request(side);
  peer.outbound().header().rdma_uses[0].store(1);
  peer.put({.kind = static_cast<CellKind>(99)});
  peer.ring();
  expect_no_event(side.requests.get());  // and it has been looked at
  require(dat_cr_accept(request, ep.get(), 0, nullptr), "dat_cr_accept");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
  EXPECT_TRUE(peer.cut());
  expect_no_event(side.connect.get());
}

// What has been refused is not accepted any more: the program may be calling again already (DAT_COMPAT=openfabrics).
TEST_F(HostileOrder, AnAcceptanceBehindTheEndOfAnAttemptIsNone) {
  wire.env["DAT_COMPAT"] = "openfabrics";
  Random random(announced_seed());
  Side side(wire);
  const Ep ep(side);
  FakeService service(random);
  require(dat_ep_connect(ep.get(), loopback(), service.qualifier(), 500'000, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  RawPeer peer = service.accept();
  const std::uint32_t attempt = asked(peer);
  peer.put(closing(attempt));
  peer.put(acceptance(attempt));
  peer.ring();
  const auto event = wait_event(side.connect.get());
  ASSERT_TRUE(event);
  EXPECT_NE(event->event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_FALSE(poll_event(side.connect.get()));
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
}

// EP-DISC-18: the time that an end may take begins once. The peer has announced a message and does not send it.
TEST_F(HostileOrder, WhoSaysAgainAndAgainThatItEndsDoesNotPutTheEndOff) {
  Side side(wire);
  const Ep ep(side);
  const Lmr memory(side.ia, side.pz, 64 << 10);
  DAT_LMR_TRIPLET buffer = memory.triplet();
  require(dat_ep_post_recv(ep.get(), 1, &buffer, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  RawPeer peer = linked(side.listen());
  const std::uint32_t name = accept(side, peer, 7, ep);
  shm::AnnounceBody message{};
  message.length = 32 << 10;
  peer.put({.kind = CellKind::announce, .connection = name, .aux = 0, .body = bytes_of(message)});
  peer.put(closing(name));
  const auto start = OrderClock::now();
  std::optional<DAT_EVENT> event;
  while (!event && OrderClock::now() - start < 2 * patience()) {
    peer.put(closing(name));
    peer.ring();
    event = wait_event(side.connect.get(), std::chrono::milliseconds(200));
  }
  ASSERT_TRUE(event) << "it goes on for ever";
  EXPECT_EQ(event->event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_completion(side.recv.get(), DAT_DTO_ERR_FLUSHED);
}

// What it is told is kept for it up to a bound, whatever it is: here that Writes are in place, each to another
// connection than the one before.
TEST_F(HostileOrder, WhoTakesNothingThatItIsToldIsCutOff) {
  Side side(wire);
  const Ep first(side), second(side);
  const Lmr memory(side.ia, side.pz, 4096);
  RawPeer peer = linked(side.listen());
  const std::array names{accept(side, peer, 7, first), accept(side, peer, 8, second)};
  const shm::WriteBody head{
      .address = reinterpret_cast<std::uintptr_t>(memory.bytes().data()), .key = memory.rmr_context(), .reserved = 0};
  std::vector<std::byte> body = bytes_of(head);
  body.resize(body.size() + 8);
  bool cut = false;
  for (unsigned i = 0; i < 400'000 && !cut; ++i) {
    while (!cut && peer.produced() - peer.outbound().header().cells_consumed.load() > shm::kCellCount / 2) {
      peer.ring();
      cut = peer.cut(std::chrono::milliseconds(0));
    }
    peer.put({.kind = CellKind::write, .flags = shm::kFlagLast, .connection = names[i % 2], .body = body});
  }
  EXPECT_TRUE(cut) << "all is kept that it does not read";
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

}  // namespace
}  // namespace anydat::test
