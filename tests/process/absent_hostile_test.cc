// SPDX-License-Identifier: BSD-3-Clause
// A peer that writes to memory that is not there, and has not asked first (docs/wire-shm.md, "Pages that are not
// there").
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <future>
#include <optional>
#include <span>
#include <vector>

#include "absent_buffers.h"
#include "absent_memory.h"
#include "nic/region_table.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/shm/layout.h"
#include "raw_peer.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

using shm::CellKind;

class AbsentForAPeer : public AbsentBuffers {
 protected:
  static constexpr std::uint32_t kOwnName = 7;

  void SetUp() override {
    AbsentBuffers::SetUp();
    if (IsSkipped()) return;
    ep_.emplace(*side_);
    const DAT_CONN_QUAL qualifier = side_->listen();
    peer_.emplace(raw_service_name(qualifier));
    ASSERT_TRUE(peer_->shake_hands());
    auto accepted = std::async(std::launch::async, [this] {
      const auto request = expect_event(side_->requests.get(), DAT_CONNECTION_REQUEST_EVENT);
      require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep_->get(), 0, nullptr),
              "dat_cr_accept");
      expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    });
    name_ = peer_->connect(qualifier, kOwnName, {});
    accepted.get();
    ASSERT_NE(name_, 0u);
  }
  void TearDown() override {
    peer_.reset();
    ep_.reset();
    AbsentBuffers::TearDown();
  }

  void write(std::uint64_t to, std::span<const std::byte> bytes) { write(to, bytes, here_->rmr_context()); }
  void write(std::uint64_t to, std::span<const std::byte> bytes, DAT_RMR_CONTEXT key) {
    const shm::WriteBody head{.address = to, .key = key, .reserved = 0};
    std::vector<std::byte> body = bytes_of(head);
    body.insert(body.end(), bytes.begin(), bytes.end());
    peer_->put({.kind = CellKind::write,
                .flags = shm::kFlagLast,
                .length = static_cast<std::uint32_t>(body.size()),
                .connection = name_,
                .body = body});
  }
  bool hears(CellKind kind) {
    while (const auto message = peer_->take()) {
      if (message->kind == kind && message->connection == kOwnName) return true;
    }
    return false;
  }
  void expect_others_go_on() { expect_others_use(kBytes - kPage); }
  void expect_others_use(std::size_t offset) {
    for (int i = 0; i < 10; ++i) {
      post(*good_, here_->triplet(offset, 64), 64);
      expect_completion(side_->recv.get());
      expect_completion(other_side_->request.get());
    }
  }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(memory_.data()); }

  std::optional<Ep> ep_;
  std::optional<RawPeer> peer_;
  std::uint32_t name_ = 0;
};

TEST_P(AbsentForAPeer, WhatItWritesWaitsAndWhatComesBehindIsInOrder) {
  const std::vector<std::byte> first(8, std::byte{0x11}), second(8, std::byte{0x22}), message(16, std::byte{0x33});
  DAT_LMR_TRIPLET buffer = here_->triplet(kBytes / 2, 64);
  require(dat_ep_post_recv(ep_->get(), 1, &buffer, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  AbsentMemory absent(memory_.first(kPage));
  write(address(), first);
  write(address() + 8, second);
  write(address() + kBytes / 4, second);  // which is there, and comes behind all the same
  peer_->put({.kind = CellKind::send, .connection = name_, .body = message});
  expect_others_use(kBytes / 2 + 128);  // so that nothing but what is before the message keeps it from its buffer
  peer_->ring();
  expect_others_go_on();
  expect_no_event(side_->recv.get());
  EXPECT_NE(memory_[kBytes / 4], second.front());
  absent.fill(std::vector<std::byte>(kPage, std::byte{0x44}));
  const auto event = expect_completion(side_->recv.get());
  EXPECT_EQ(event.ep_handle, ep_->get());
  EXPECT_TRUE(std::ranges::equal(memory_.first(8), first));
  EXPECT_TRUE(std::ranges::equal(memory_.subspan(8, 8), second));
  EXPECT_EQ(memory_[16], std::byte{0x44});
  EXPECT_TRUE(std::ranges::equal(memory_.subspan(kBytes / 4, 8), second));
  EXPECT_TRUE(std::ranges::equal(memory_.subspan(kBytes / 2, 16), message));
  EXPECT_TRUE(hears(CellKind::done));
}

TEST_P(AbsentForAPeer, WhoWritesOnAndOnIsCut) {
  const AbsentMemory absent(memory_.first(kPage));
  const std::vector<std::byte> bytes(4096, std::byte{0x55});
  const auto room = [&] { return peer_->produced() - peer_->outbound().header().cells_consumed.load(); };
  constexpr std::size_t kMost = std::size_t{16} << 20;
  std::size_t written = 0;
  bool ended = false;
  for (; written < kMost && !ended; written += bytes.size()) {
    write(address(), bytes);
    if (room() < shm::kCellCount / 2) continue;
    peer_->ring();
    EXPECT_TRUE(eventually([&] {
      poll_event(side_->recv.get());
      return room() < shm::kCellCount / 4;
    }));
    while (const auto heard = peer_->take(std::chrono::milliseconds(0))) ended |= heard->kind == CellKind::close;
  }
  EXPECT_TRUE(ended) << written;
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_others_go_on();
}

// DTO-40: what is refused is not to blame for the message before it, which has completed at its sender.
TEST_P(AbsentForAPeer, AMessageBeforeWhatIsRefusedIsDelivered) {
  const std::vector<std::byte> bytes(8, std::byte{0x77}), message(16, std::byte{0x33});
  DAT_LMR_TRIPLET buffers[] = {here_->triplet(kBytes / 2, 64), here_->triplet(kBytes / 2 + 64, 64)};
  for (DAT_LMR_TRIPLET& buffer : buffers)
    require(dat_ep_post_recv(ep_->get(), 1, &buffer, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  AbsentMemory absent(memory_.first(kPage));
  write(address(), bytes);
  peer_->put({.kind = CellKind::send, .connection = name_, .body = message});
  write(address(), bytes, here_->rmr_context() ^ 0x40000000);
  peer_->ring();
  expect_others_go_on();
  absent.fill(std::vector<std::byte>(kPage, std::byte{0x44}));
  expect_completion(side_->recv.get());
  EXPECT_TRUE(std::ranges::equal(memory_.subspan(kBytes / 2, 16), message));
  expect_completion(side_->recv.get(), DAT_DTO_ERR_FLUSHED);
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_others_go_on();
}

// What it asks for behind a Write is refused behind it, and is not that Write's to answer for.
TEST_P(AbsentForAPeer, WhatItAsksForComesInOrder) {
  AbsentMemory absent(memory_.first(kPage));
  write(address(), std::vector<std::byte>(8, std::byte{0x77}));
  const shm::GetBody beyond{.address = address() + kBytes, .length = 8, .key = here_->rmr_context()};
  peer_->put(
      {.kind = CellKind::fault_in, .connection = name_, .aux = nic::access::kRemoteWrite, .body = bytes_of(beyond)});
  peer_->ring();
  expect_others_go_on();
  absent.fill(std::vector<std::byte>(kPage, std::byte{0x44}));
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_TRUE(hears(CellKind::done));
}

TEST_P(AbsentForAPeer, ItMayLeaveInOrderMeanwhile) {
  const AbsentMemory absent(memory_.first(kPage));
  write(address(), std::vector<std::byte>(8, std::byte{0x77}));
  peer_->put({.kind = CellKind::close,
              .connection = name_,
              .aux = static_cast<std::uint32_t>(nic::soft::CloseReason::graceful)});
  peer_->ring();
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_others_go_on();
}

TEST_P(AbsentForAPeer, TheRegionMayGoMeanwhile) {
  const AbsentMemory absent(memory_.first(kPage));
  write(address(), std::vector<std::byte>(8, std::byte{0x66}));
  peer_->ring();
  expect_others_go_on();
  {
    Lmr another(side_->ia, side_->pz, kPage);
    ASSERT_THAT(another.free(), Succeeds());
  }
  expect_no_event(side_->connect.get());
  ASSERT_THAT(here_->free(), Succeeds());
  EXPECT_TRUE(hears(CellKind::close));
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

std::vector<Wire> ring_wires() {
  std::vector<Wire> wires = all_wires();
  std::erase_if(wires, [](const Wire& wire) { return wire.name != "shm" && wire.name != "shm_ring"; });
  return wires;
}
INSTANTIATE_TEST_SUITE_P(Wires, AbsentForAPeer, testing::ValuesIn(ring_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
