// SPDX-License-Identifier: BSD-3-Clause
// What uDAPL 2.0 asks of the NIC beyond 1.2, at the seam: zero-based regions, atomic operations, Writes with immediate
// data. Over each wire.
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "wire/seam.h"

namespace anydat::test {
namespace {

using nic::Completion;
using nic::WorkKind;
using nic::WorkStatus;
namespace access = nic::access;

class Extended : public SeamTest {
 protected:
  nic::ExtendedRequest request(WorkKind kind, const nic::Segment& segment, nic::RemoteSegment remote,
                               std::uint64_t cookie = 0) {
    local_ = segment;
    nic::ExtendedRequest made{};
    made.cookie = cookie;
    made.segments = {&local_, segment.length > 0 ? 1u : 0u};
    made.length = segment.length;
    made.kind = kind;
    made.remote = remote;
    return made;
  }
  nic::Status atomic(SeamEnd& end, WorkKind kind, const nic::Segment& segment, nic::RemoteSegment remote,
                     std::uint64_t operand, std::uint64_t compare = 0) {
    nic::ExtendedRequest made = request(kind, segment, remote);
    made.operand = operand;
    made.compare = compare;
    return end->post_extended(made);
  }
  void expect_success(SeamEnd& end, WorkKind kind) {
    const Completion done = end.sent.next();
    EXPECT_EQ(done.status, WorkStatus::success);
    EXPECT_EQ(done.kind, kind);
  }

 private:
  nic::Segment local_{};
};

Bytes pattern(std::size_t count, int seed) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 13 + static_cast<std::size_t>(seed));
  return bytes;
}

// ---- zero-based regions

TEST_P(Extended, AZeroBasedRegionIsReachedByOffsets) {
  // D2-LMR-2, D2-LMR-6; long and short, often enough for each way that there is.
  SeamPair pair(GetParam());
  pair.join();
  constexpr std::size_t kBytes = 64 << 10;
  SeamMemory target(pair.server_nic, kBytes, kAllRights | access::kZeroBased, kSeamZone);
  SeamMemory local(pair.client_nic, kBytes, kAllRights, kSeamZone);
  for (int round = 0; round < 20; ++round) {
    const std::size_t bytes = round % 2 == 0 ? 100 : 40000;
    const std::size_t offset = static_cast<std::size_t>(round) * 8;
    const Bytes data = pattern(bytes, round);
    std::memcpy(local.data(), data.data(), bytes);
    ASSERT_EQ(
        pair.client->post_send(request(WorkKind::rdma_write, local.segment(0, bytes), {offset, target.remote_key()})),
        nic::Status::ok);
    expect_success(pair.client, WorkKind::rdma_write);
    EXPECT_TRUE(eventually([&] { return std::memcmp(target.data() + offset, data.data(), bytes) == 0; }));
    std::memset(local.data(), 0, bytes);
    ASSERT_EQ(
        pair.client->post_send(request(WorkKind::rdma_read, local.segment(0, bytes), {offset, target.remote_key()})),
        nic::Status::ok);
    expect_success(pair.client, WorkKind::rdma_read);
    EXPECT_EQ(std::memcmp(local.data(), data.data(), bytes), 0);
  }
}

TEST_P(Extended, TheBoundsOfAZeroBasedRegionAreExact) {
  // D2-LMR-4: also for what wraps, and for the addresses that a region of the other kind would have.
  for (const std::uint64_t kind : {0, 1, 2, 3}) {
    SeamPair pair(GetParam());
    pair.join();
    SeamMemory target(pair.server_nic, 4096, kAllRights | access::kZeroBased, kSeamZone);
    SeamMemory local(pair.client_nic, 4096, kAllRights, kSeamZone);
    const std::uint64_t at[] = {4096 - 7, ~std::uint64_t{0} - 3, target.address(), ~std::uint64_t{0} - 7};
    ASSERT_EQ(
        pair.client->post_send(request(WorkKind::rdma_write, local.segment(0, 8), {at[kind], target.remote_key()})),
        nic::Status::ok);
    EXPECT_EQ(pair.client.sent.next().status, WorkStatus::remote_access) << at[kind];
    pair.client.expect_closed(true);
  }
}

TEST_P(Extended, LocalSegmentsOfAZeroBasedRegionAreResolved) {
  // D2-LMR-2: what a DAT object does with the program's offsets.
  SeamNic nic(GetParam());
  SeamMemory memory(nic, 4096, kAllRights | access::kZeroBased, kSeamZone);
  const nic::RegionTable& regions = nic->regions();
  std::uint64_t where = 0;
  EXPECT_EQ(regions.check(memory.key(), 0, 8, kSeamZone, access::kLocalRead), nic::RegionCheck::no_right);
  EXPECT_EQ(regions.check(memory.key(), memory.address(), 8, kSeamZone, access::kLocalRead),
            nic::RegionCheck::no_right);
  EXPECT_EQ(regions.resolve(memory.key(), 4088, 8, kSeamZone, access::kLocalRead, where), nic::RegionCheck::ok);
  EXPECT_EQ(where, memory.address() + 4088);
  EXPECT_EQ(regions.covers(memory.key(), where, 8, kSeamZone, access::kLocalRead), nic::RegionCheck::ok);
  EXPECT_EQ(regions.resolve(memory.key(), 4089, 8, kSeamZone, access::kLocalRead, where),
            nic::RegionCheck::out_of_bounds);
  EXPECT_EQ(regions.resolve(memory.key(), memory.address(), 8, kSeamZone, access::kLocalRead, where),
            nic::RegionCheck::out_of_bounds);
  SeamMemory plain(nic, 64, kAllRights, kSeamZone);
  EXPECT_EQ(regions.resolve(plain.key(), plain.address(), 64, kSeamZone, access::kLocalRead, where),
            nic::RegionCheck::ok);
  EXPECT_EQ(where, plain.address());
}

// ---- atomic operations

constexpr std::uint32_t kAtomicRights = kAllRights | access::kRemoteAtomic;

TEST_P(Extended, AtomicOperationsDoWhatTheySayAndTellWhatWas) {
  // D2-ATOM-1, D2-ATOM-6
  SeamPair pair(GetParam());
  EXPECT_EQ(pair.client->peer_takes(), 0u);
  pair.join();
  EXPECT_EQ(pair.client->peer_takes() & nic::ability::kAtomics, nic::ability::kAtomics);
  EXPECT_EQ(pair.server->peer_takes() & nic::ability::kAtomics, nic::ability::kAtomics);
  SeamMemory target(pair.server_nic, 64, kAtomicRights, kSeamZone);
  SeamMemory local(pair.client_nic, 64, kAllRights, kSeamZone);
  auto& word = target.as<std::uint64_t>(1);
  const nic::RemoteSegment at{target.address() + 8, target.remote_key()};
  word = ~std::uint64_t{0} - 1;
  ASSERT_EQ(atomic(pair.client, WorkKind::fetch_add, local.segment(0, 8), at, 5), nic::Status::ok);
  const Completion done = pair.client.sent.next();
  EXPECT_EQ(done.status, WorkStatus::success);
  EXPECT_EQ(done.kind, WorkKind::fetch_add);
  EXPECT_EQ(done.length, 8u);
  EXPECT_EQ(local.as<std::uint64_t>(), ~std::uint64_t{0} - 1);
  EXPECT_EQ(word, 3u);
  ASSERT_EQ(atomic(pair.client, WorkKind::compare_swap, local.segment(8, 8), at, 77, 4), nic::Status::ok);
  expect_success(pair.client, WorkKind::compare_swap);
  EXPECT_EQ(local.as<std::uint64_t>(1), 3u);
  EXPECT_EQ(word, 3u);
  ASSERT_EQ(atomic(pair.client, WorkKind::compare_swap, local.segment(8, 8), at, 77, 3), nic::Status::ok);
  expect_success(pair.client, WorkKind::compare_swap);
  EXPECT_EQ(local.as<std::uint64_t>(1), 3u);
  EXPECT_EQ(word, 77u);
}

TEST_P(Extended, AtomicOperationsKeepTheirPlaceAmongOtherRequests) {
  // D2-ATOM-5, DTO-40: more than may be under way at once, with Reads and Writes of the same word between them.
  SeamPair pair(GetParam());
  pair.join();
  SeamMemory target(pair.server_nic, 64, kAtomicRights, kSeamZone);
  SeamMemory local(pair.client_nic, 4096, kAllRights, kSeamZone);
  const nic::RemoteSegment at{target.address(), target.remote_key()};
  constexpr std::uint64_t kRounds = 15;
  std::vector<WorkKind> kinds;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    ASSERT_EQ(atomic(pair.client, WorkKind::fetch_add, local.segment(i * 24, 8), at, 1), nic::Status::ok);
    ASSERT_EQ(pair.client->post_send(request(WorkKind::rdma_read, local.segment(i * 24 + 8, 8), at)), nic::Status::ok);
    ASSERT_EQ(atomic(pair.client, WorkKind::compare_swap, local.segment(i * 24 + 16, 8), at, i * 10 + 10, i * 10 + 1),
              nic::Status::ok);
    kinds.insert(kinds.end(), {WorkKind::fetch_add, WorkKind::rdma_read, WorkKind::compare_swap});
  }
  for (const WorkKind kind : kinds) expect_success(pair.client, kind);
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    EXPECT_EQ(local.as<std::uint64_t>(i * 3), i * 10) << i;
    EXPECT_EQ(local.as<std::uint64_t>(i * 3 + 1), i * 10 + 1) << i;
    EXPECT_EQ(local.as<std::uint64_t>(i * 3 + 2), i * 10 + 1) << i;
  }
}

TEST_P(Extended, AtomicOperationsOfAllPeersAndTheOwnerHaveOneOrder) {
  // D2-ATOM-4, D2-ATOM-7
  constexpr std::uint64_t kEach = 300;
  SeamNic server_nic(GetParam());
  SeamMemory target(server_nic, 64, kAtomicRights, kSeamZone);
  std::vector<std::thread> peers;
  for (int i = 0; i < 3; ++i) {
    peers.emplace_back([&] {
      SeamNic nic(GetParam());
      SeamServer service(server_nic);
      SeamEnd server(server_nic);
      SeamEnd client(nic);
      SeamMemory local(nic, 64, kAllRights, kSeamZone);
      seam_join(client, service, server);
      for (std::uint64_t n = 0; n < kEach; ++n) {
        const nic::Segment segment = local.segment(0, 8);
        nic::ExtendedRequest add{};
        add.segments = {&segment, 1};
        add.length = 8;
        add.kind = WorkKind::fetch_add;
        add.remote = {target.address(), target.remote_key()};
        add.operand = 1;
        EXPECT_EQ(client->post_extended(add), nic::Status::ok);
        EXPECT_EQ(client.sent.next().status, WorkStatus::success);
      }
    });
  }
  const std::atomic_ref<std::uint64_t> word(target.as<std::uint64_t>());
  for (std::uint64_t n = 0; n < 100 * kEach; ++n) word.fetch_add(1);
  for (std::thread& peer : peers) peer.join();
  EXPECT_EQ(word.load(), 103 * kEach);
}

TEST_P(Extended, AnAtomicOperationThatIsNotAllowedBreaksTheConnection) {
  // D2-ATOM-3
  struct Case {
    const char* what;
    std::uint32_t rights;
    std::uint64_t at;
    std::uint32_t key_change;
  };
  for (const Case& wrong : {Case{"right", kAllRights, 0, 0}, Case{"bounds", kAtomicRights, 64, 0},
                            Case{"alignment", kAtomicRights, 4, 0}, Case{"key", kAtomicRights, 0, 1}}) {
    SCOPED_TRACE(wrong.what);
    SeamPair pair(GetParam());
    pair.join();
    SeamMemory target(pair.server_nic, 64, wrong.rights, kSeamZone);
    SeamMemory local(pair.client_nic, 64, kAllRights, kSeamZone);
    const nic::RemoteSegment at{target.address() + wrong.at, target.remote_key() ^ wrong.key_change};
    ASSERT_EQ(atomic(pair.client, WorkKind::fetch_add, local.segment(0, 8), at, 1), nic::Status::ok);
    EXPECT_EQ(pair.client.sent.next().status, WorkStatus::remote_access);
    pair.client.expect_closed(true);
    pair.server.expect_closed(true);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(target.as<std::uint64_t>(static_cast<std::size_t>(i)), 0u);
  }
}

TEST_P(Extended, AtomicOperationsReachZeroBasedRegions) {
  SeamPair pair(GetParam());
  pair.join();
  SeamMemory target(pair.server_nic, 64, kAtomicRights | access::kZeroBased, kSeamZone);
  SeamMemory local(pair.client_nic, 64, kAllRights, kSeamZone);
  ASSERT_EQ(atomic(pair.client, WorkKind::fetch_add, local.segment(0, 8), {16, target.remote_key()}, 9),
            nic::Status::ok);
  expect_success(pair.client, WorkKind::fetch_add);
  EXPECT_EQ(target.as<std::uint64_t>(2), 9u);
}

// ---- Writes with immediate data

TEST_P(Extended, ImmediateDataComeBehindTheirWrite) {
  // D2-IMM-1..5: the receive of a Send before and after each keeps its place.
  SeamPair pair(GetParam());
  pair.server->take_immediates(true);
  pair.join();
  EXPECT_NE(pair.client->peer_takes() & nic::ability::kImmediate, 0u);
  EXPECT_EQ(pair.server->peer_takes() & nic::ability::kImmediate, 0u);  // D2-IMM-9
  constexpr std::size_t kBytes = 100000;
  SeamMemory target(pair.server_nic, kBytes, kAllRights, kSeamZone);
  SeamMemory buffer(pair.server_nic, 4096, kAllRights, kSeamZone);
  SeamMemory local(pair.client_nic, kBytes, kAllRights, kSeamZone);
  for (int round = 0; round < 12; ++round) {
    const std::size_t sizes[] = {0, 8, 5000, kBytes};
    const std::size_t bytes = sizes[round % 4];
    for (std::uint64_t i = 0; i < 3; ++i) pair.server.post_recv(buffer.segment(i * 64, 64), i);
    std::memset(buffer.data(), 0x55, 4096);
    const Bytes data = pattern(kBytes, round);
    std::memcpy(local.data(), data.data(), kBytes);
    ASSERT_EQ(pair.client->post_send(request(WorkKind::send, local.segment(0, 16), {})), nic::Status::ok);
    nic::RemoteSegment to{target.address(), target.remote_key(), 0xfedc0000u + static_cast<std::uint32_t>(round)};
    nic::ExtendedRequest write = request(WorkKind::write_immediate, local.segment(0, bytes), to, 42);
    write.flags = nic::WorkFlags(round % 2 == 0 ? nic::WorkFlags::kSolicited : 0);
    ASSERT_EQ(pair.client->post_extended(write), nic::Status::ok);
    ASSERT_EQ(pair.client->post_send(request(WorkKind::send, local.segment(0, 24), {})), nic::Status::ok);
    const Completion before = pair.server.received.next();
    EXPECT_EQ(before.kind, WorkKind::recv);
    EXPECT_EQ(before.length, 16u);
    const Completion told = pair.server.received.next();
    EXPECT_EQ(std::memcmp(target.data(), data.data(), bytes), 0);  // D2-IMM-3
    EXPECT_EQ(told.kind, WorkKind::recv_immediate);
    EXPECT_EQ(told.status, WorkStatus::success);
    EXPECT_EQ(told.cookie, 1u);
    EXPECT_EQ(told.length, bytes);
    EXPECT_EQ(told.value, to.value);
    EXPECT_EQ(told.solicited, round % 2 == 0);  // D2-IMM-8
    EXPECT_EQ(buffer.data()[64], std::byte{0x55});
    EXPECT_EQ(pair.server.received.next().length, 24u);
    expect_success(pair.client, WorkKind::send);
    const Completion done = pair.client.sent.next();
    EXPECT_EQ(done.status, WorkStatus::success);
    EXPECT_EQ(done.kind, WorkKind::write_immediate);
    EXPECT_EQ(done.cookie, 42u);
    EXPECT_EQ(done.length, bytes);
    expect_success(pair.client, WorkKind::send);
  }
}

TEST_P(Extended, ImmediateDataWaitForAReceiveAsASendDoes) {
  // D2-IMM-6: and keep their order with a Send among them.
  constexpr int kCount = 40;
  SeamPair pair(GetParam());
  pair.server->take_immediates(true);
  pair.join();
  SeamMemory target(pair.server_nic, 4096, kAllRights, kSeamZone);
  SeamMemory buffer(pair.server_nic, 4096, kAllRights, kSeamZone);
  SeamMemory local(pair.client_nic, 4096, kAllRights, kSeamZone);
  constexpr std::byte kWritten{0x5a};
  local.data()[0] = kWritten;  // each Write begins one byte behind the one before it
  for (std::uint32_t i = 0; i < kCount; ++i) {
    if (i == kCount / 2) {
      ASSERT_EQ(pair.client->post_send(request(WorkKind::send, local.segment(0, 32), {})), nic::Status::ok);
    }
    const nic::RemoteSegment to{target.address(), target.remote_key(), i};
    ASSERT_EQ(pair.client->post_extended(request(WorkKind::write_immediate, local.segment(0, 8), to)), nic::Status::ok);
  }
  // Nothing is lost while the receiver does not look, and what the first of them has written is there.
  const std::atomic_ref<std::byte> first(target.data()[0]);
  EXPECT_TRUE(pair.server.wait_for([&] { return first == kWritten; }));
  EXPECT_FALSE(pair.server.received.poll());
  for (std::uint32_t i = 0; i < kCount; ++i) {
    if (i == kCount / 2) {
      pair.server.post_recv(buffer.segment(0, 64));
      EXPECT_EQ(pair.server.received.next().kind, WorkKind::recv);
    }
    pair.server.post_recv(buffer.segment(0, 64));
    const Completion told = pair.server.received.next();
    EXPECT_EQ(told.kind, WorkKind::recv_immediate);
    EXPECT_EQ(told.value, i);
    EXPECT_EQ(told.length, 8u);
  }
}

TEST_P(Extended, WhatThePeerDoesNotTakeIsRefusedAtThePost) {
  // D2-EXT-8, D2-IMM-9: nothing reaches the peer, and the connection goes on.
  SeamPair pair(GetParam());
  pair.join();
  SeamMemory target(pair.server_nic, 64, kAllRights, kSeamZone);
  SeamMemory local(pair.client_nic, 64, kAllRights, kSeamZone);
  const nic::RemoteSegment to{target.address(), target.remote_key(), 1};
  EXPECT_EQ(pair.client->post_extended(request(WorkKind::write_immediate, local.segment(0, 8), to)),
            nic::Status::unsupported);
  pair.server.post_recv(target.segment(0, 64));
  ASSERT_EQ(pair.client->post_send(request(WorkKind::send, local.segment(0, 8), {})), nic::Status::ok);
  EXPECT_EQ(pair.server.received.next().status, WorkStatus::success);
  EXPECT_TRUE(pair.client->send_idle() || eventually([&] { return pair.client->send_idle(); }));
}

TEST_P(Extended, WhatIsPostedWhenTheConnectionEndsIsFlushed) {
  SeamPair pair(GetParam());
  pair.server->take_immediates(true);
  pair.join();
  SeamMemory target(pair.server_nic, 64, kAtomicRights, kSeamZone);
  SeamMemory local(pair.client_nic, 64, kAllRights, kSeamZone);
  pair.client_nic.held([&] { pair.client->disconnect(false); });
  pair.client.expect_closed(false);
  const nic::RemoteSegment to{target.address(), target.remote_key(), 1};
  for (const WorkKind kind : {WorkKind::write_immediate, WorkKind::fetch_add, WorkKind::compare_swap}) {
    ASSERT_EQ(pair.client->post_extended(request(kind, local.segment(0, 8), to, 5)), nic::Status::ok);
    const Completion flushed = pair.client.sent.next();
    EXPECT_EQ(flushed.status, WorkStatus::flushed);
    EXPECT_EQ(flushed.kind, kind);
    EXPECT_EQ(flushed.cookie, 5u);
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, Extended, testing::ValuesIn(seam_wires()), seam_wire_name);

}  // namespace
}  // namespace anydat::test
