// SPDX-License-Identifier: BSD-3-Clause
// An RDMA Write that finds the ring full, in which the word is to go that the connection stands; or all slots taken, in
// one of which it is to be noted.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "fake_service.h"
#include "nic/region_table.h"
#include "support/dat_events.h"
#include "support/dat_fixture.h"
#include "support/waiter.h"

namespace anydat::test {
namespace {

using shm::CellKind;

constexpr std::uint32_t kKey = 0x12345;
constexpr std::uint32_t kSpread = 0x9e3779b1;

// A table that opens a word of this process's memory to every peer, and names no zone for it.
Fd table_with(const std::atomic<std::uint64_t>& word) {
  Fd fd = make_region_table();
  void* const memory = ::mmap(nullptr, nic::RegionView::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) throw std::runtime_error("the region table cannot be mapped");
  auto* const entries = static_cast<nic::RegionEntry*>(memory);
  entries[0].address.store(kSpread);
  nic::RegionEntry& entry = entries[nic::region_slot(kKey, kSpread)];
  entry.zone.store(nic::kNoZone);
  entry.rights.store(nic::access::kRemoteWrite);
  entry.address.store(reinterpret_cast<std::uint64_t>(&word));
  entry.length.store(sizeof word);
  entry.key.store(kKey);
  ::munmap(memory, nic::RegionView::kBytes);
  return fd;
}

void connect(const Ep& ep, DAT_CONN_QUAL qualifier) {
  require(dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
}

std::uint32_t attempt_in(const std::optional<RawPeer::Message>& message) {
  shm::ConnectBody body{};
  if (!message || message->kind != CellKind::connect) throw std::runtime_error("nobody asks for a connection");
  std::memcpy(&body, message->body.data(), sizeof body);
  return body.connection;
}

// A client, and its Write of one word into memory of a peer that is played by hand.
class EarlyWrite : public testing::Test {
 protected:
  EarlyWrite() { std::memset(source.bytes().data(), 0x5a, 8); }
  RawPeer call_on(const Ep& ep) {
    connect(ep, service.qualifier());
    RawPeer peer = service.accept();
    peer.offer_memory();
    if (!welcome(peer, table_with(target))) throw std::runtime_error("there is no link");
    return peer;
  }
  void accept(RawPeer& peer, std::uint32_t attempt) {
    peer.put(acceptance(attempt));
    peer.ring();
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  void write() {
    DAT_LMR_TRIPLET from = source.triplet();
    DAT_RMR_TRIPLET to{};
    to.rmr_context = kKey;
    to.target_address = reinterpret_cast<DAT_VADDR>(&target);
    to.segment_length = sizeof target;
    require(dat_ep_post_rdma_write(writer.get(), 1, &from, {}, &to, DAT_COMPLETION_DEFAULT_FLAG), "RDMA Write");
  }

  Random random{announced_seed()};
  FakeService service{random};
  const Side client{wire_by_name("shm")};
  const Ep writer{client};
  std::atomic<std::uint64_t> target = 0;
  const Lmr source{client.ia, client.pz, 8};
};

// RDW-9, EP-SM-16: a thread that sees the bytes finds the connection established when it looks.
TEST_F(EarlyWrite, WaitsForTheWordThatTheConnectionStands) {
  // Two connections over one link.
  const Ep filler(client);
  RawPeer peer = call_on(filler);
  const std::uint32_t first = attempt_in(peer.take());
  connect(writer, service.qualifier());
  RawPeer second_call = service.accept();
  second_call.join(peer);
  ASSERT_TRUE(second_call.hear() && second_call.greet(shm::GreetingKind::welcome));
  const std::uint32_t second = attempt_in(peer.take());
  accept(peer, first);

  // More messages than the ring has cells, for which the peer gives room that it has not.
  for (std::uint32_t given = 0; given <= shm::kCellCount; given += shm::kWindowCells / 2) {
    DAT_LMR_TRIPLET segment = source.triplet();
    while (dat_ep_post_send(filler.get(), 1, &segment, {}, DAT_COMPLETION_SUPPRESS_FLAG) == DAT_SUCCESS) continue;
    peer.put({.kind = CellKind::credit, .connection = first, .aux = shm::kWindowCells / 2});
    peer.ring();
    poll_event(client.request.get());
  }
  accept(peer, second);
  write();
  int words = 0;
  const auto take = [&] {
    const auto message = peer.take(std::chrono::milliseconds(0));
    words += message && message->kind == CellKind::ready ? 1 : 0;
    return message.has_value();
  };
  EXPECT_TRUE(eventually([&] {
    if (target.load() != 0) return true;
    take();
    poll_event(client.request.get());
    return false;
  }));
  while (take()) continue;  // what is in the ring by now
  EXPECT_EQ(words, 2) << "the Write has overtaken it";
  EXPECT_EQ(target.load(), 0x5a5a5a5a5a5a5a5a);
}

// A slot comes free without a word, and everybody may be asleep by then.
TEST_F(EarlyWrite, FindsASlotThatComesFreeWhileAllSleep) {
  RawPeer peer = call_on(writer);
  accept(peer, attempt_in(peer.take()));
  // As threads would that are in the middle of Writes by other connections of the link.
  auto& slots = peer.inbound().header().rdma_uses;
  for (std::uint32_t slot = 0; slot < shm::kSharedRdmaSlots; ++slot) slots[slot].store(1);
  write();
  Waiter waiter(client.request.get());
  EXPECT_FALSE(waiter.woken_within(quiet_time()));
  EXPECT_EQ(target.load(), 0u);
  slots[shm::kSharedRdmaSlots - 1].store(0);
  EXPECT_THAT(waiter.result().rc, Succeeds());
  EXPECT_EQ(target.load(), 0x5a5a5a5a5a5a5a5a);
  for (std::uint32_t slot = 0; slot < shm::kSharedRdmaSlots; ++slot) slots[slot].store(0);
}

}  // namespace
}  // namespace anydat::test
