// SPDX-License-Identifier: BSD-3-Clause
// What a target's memory grants to a peer, and what becomes of those who ask for more: sections 4.6, 6.3 and 6.7 of the
// rules. Windows are in rmr_access.cc.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "rdma_fixture.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

using namespace std::chrono_literals;

class RdmaProtection : public RdmaTest {
 protected:
  // One RDMA of 64 bytes over a new connection.
  void expect_refused(Rdma kind, const DAT_RMR_TRIPLET& remote, Caller caller = Caller::here()) {
    const Pair pair = make_connected_pair();
    expect_remote_refusal(pair, kind, rdma(kind, pair.client, local.triplet(0, remote.segment_length), remote, 1),
                          caller);
  }
  void expect_granted(Rdma kind, const DAT_RMR_TRIPLET& remote, Caller caller = Caller::here()) {
    const Pair pair = make_connected_pair();
    require(rdma(kind, pair.client, local.triplet(0, remote.segment_length), remote, 1), "RDMA");
    expect_completion(pair.client_evds.request.get(), DAT_DTO_SUCCESS, caller);
    EXPECT_EQ(pair.client.state(), DAT_EP_STATE_CONNECTED);
  }
  // A long one over a new connection, after so many short ones to the same region, which is freed so much later.
  void free_during_a_transfer(Rdma kind, int short_ones, std::chrono::microseconds delay) {
    constexpr std::size_t kBig = 1 << 20;
    const Lmr mine(client.ia, client.pz, kBig);
    std::fill(mine.bytes().begin(), mine.bytes().end(), std::byte{0x11});
    const Pair pair = make_connected_pair();
    std::vector<std::byte> memory(kBig, std::byte{0x42});
    Lmr lmr(server.ia, server.pz, std::span(memory));
    for (int i = 0; i < short_ones; ++i) {
      require(rdma(kind, pair.client, mine.triplet(0, 8), lmr.remote(0, 8), 0), "RDMA");
      expect_completion(pair.client_evds.request.get());
    }
    const DAT_RMR_TRIPLET remote = lmr.remote(0, kBig);
    // What comes last of a transfer is the owner's again at once, for something that no peer shall see or touch.
    const auto last = std::span(memory).last(4096);
    std::atomic<bool> begun = false;
    std::thread freeing([&] {
      while (!begun) std::this_thread::yield();
      const auto due = std::chrono::steady_clock::now() + delay;
      while (std::chrono::steady_clock::now() < due) continue;
      EXPECT_THAT(lmr.free(), Succeeds());
      std::fill(last.begin(), last.end(), std::byte{0x77});
    });
    begun = true;
    const DAT_RETURN rc = rdma(kind, pair.client, mine.triplet(), remote, 1);
    freeing.join();
    if (rc == DAT_SUCCESS) {
      const auto status = expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT)
                              .event_data.dto_completion_event_data.status;
      EXPECT_TRUE(status == DAT_DTO_SUCCESS || status == DAT_DTO_ERR_REMOTE_ACCESS) << status;
    }
    EXPECT_EQ(std::count(last.begin(), last.end(), std::byte{0x77}), 4096) << "written after the free had returned";
    if (kind == Rdma::kRead) {
      EXPECT_EQ(std::count(mine.bytes().begin(), mine.bytes().end(), std::byte{0x77}), 0) << "read after the free";
    }
  }
};

TEST_P(RdmaProtection, RightsAreThoseOfTheRegion) {
  // RDR-6, RDR-7, RDW-6, LMR-CREATE-6, LMR-CREATE-10, PROT-5, PROT-6, STAT-8
  for (int bits = 0; bits <= DAT_MEM_PRIV_ALL_FLAG; ++bits) {
    const int remote_bits = bits & (DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
    if ((bits & ~DAT_MEM_PRIV_ALL_FLAG) != 0 || remote_bits == 0) {
      continue;
    }
    SCOPED_TRACE(testing::Message() << "privileges 0x" << std::hex << bits);
    const Lmr lmr(server.ia, server.pz, 64, static_cast<DAT_MEM_PRIV_FLAGS>(bits));
    for (const Rdma kind : kBothRdma) {
      const int needed = kind == Rdma::kRead ? DAT_MEM_PRIV_REMOTE_READ_FLAG : DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
      if ((bits & needed) != 0) {
        expect_granted(kind, lmr.remote(0, 64));
      } else {
        expect_refused(kind, lmr.remote(0, 64));
      }
    }
  }
}

TEST_P(RdmaProtection, WithoutRemoteRightsNothingReachesTheRegion) {
  // LMR-CREATE-6, PROT-8: not by the local context either.
  const Lmr lmr(server.ia, server.pz, 64,
                static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG));
  fill_pattern(lmr.bytes(), 1);
  ASSERT_EQ(lmr.rmr_context(), 0u);
  for (const Rdma kind : kBothRdma) {
    for (const DAT_RMR_CONTEXT context : {DAT_RMR_CONTEXT{0}, static_cast<DAT_RMR_CONTEXT>(lmr.context())}) {
      expect_refused(kind, remote_triplet(context, lmr.bytes().data(), 64));
    }
  }
  EXPECT_TRUE(has_pattern(lmr.bytes(), 1));
}

TEST_P(RdmaProtection, ZonesMustMatch) {
  // EP-CREATE-4, LMR-CREATE-5, PZ-CREATE-3, RDR-6, RDW-6, PROT-5, PROT-6, PROT-8
  const Pz other(server.ia);
  const Lmr foreign(server.ia, other, 64);
  fill_pattern(foreign.bytes(), 1);
  for (const Rdma kind : kBothRdma) {
    expect_refused(kind, foreign.remote(0, 64));
  }
  EXPECT_TRUE(has_pattern(foreign.bytes(), 1));
}

TEST_P(RdmaProtection, BoundsAreExact) {
  // RDR-6, RDW-6, RDW-8, LMR-CREATE-4, PROT-5, PROT-6, PROT-8
  std::vector<std::byte> memory(300, std::byte{0x42});
  const Lmr lmr(server.ia, server.pz, std::span(memory).subspan(100, 100));
  std::fill(local.bytes().begin(), local.bytes().end(), std::byte{0x99});
  for (const Rdma kind : kBothRdma) {
    SCOPED_TRACE(rdma_name(kind));
    const auto at = [&](std::ptrdiff_t offset, std::size_t length) {
      return remote_triplet(lmr.rmr_context(), memory.data() + 100 + offset, length);
    };
    for (const auto& [offset, length] :
         {std::pair<std::ptrdiff_t, std::size_t>{-1, 1}, {-1, 2}, {0, 101}, {99, 2}, {100, 1}, {-1, 102}, {5000, 1}}) {
      SCOPED_TRACE(testing::Message() << "from " << offset << ", " << length << " bytes");
      expect_refused(kind, at(offset, length));
    }
    DAT_RMR_TRIPLET wrapping = at(0, 64);
    wrapping.target_address = ~DAT_VADDR{0} - 10;
    expect_refused(kind, wrapping);
    if (kind == Rdma::kWrite) {
      for (const std::byte byte : memory) {
        ASSERT_EQ(byte, std::byte{0x42}) << "a refused Write has written";
      }
    }
    expect_granted(kind, at(0, 100));
    expect_granted(kind, at(99, 1));
  }
  const Pair pair = make_connected_pair();
  pass_message(pair);
  EXPECT_EQ(memory[99], std::byte{0x42});
  EXPECT_EQ(memory[200], std::byte{0x42});
}

TEST_P(RdmaProtection, ATargetsRefusalEndsTheConnectionInOrder) {
  // RDR-7, RDW-6, STAT-8, STAT-15, STAT-16, STAT-17, STAT-21, PROT-5, PROT-6
  for (const Rdma kind : kBothRdma) {
    SCOPED_TRACE(rdma_name(kind));
    const Pair bystander = make_connected_pair();
    const Pair pair = make_connected_pair();
    post_recv(pair.client, client_buffers, 0, 2);
    post_recv(pair.server, server_buffers, 0, 2);
    const DAT_RETURN rc =
        rdma(kind, pair.client, local.triplet(0, 64), remote_triplet(0xDEADBEEF, target.bytes().data(), 64), 7);
    if (rc == DAT_SUCCESS) {
      ASSERT_TRUE(eventually([&] { return pair.client.state() == DAT_EP_STATE_DISCONNECTED; }));
      const auto failing =
          expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
      EXPECT_EQ(failing.user_cookie.as_64, 7u);
      EXPECT_TRUE(failing.status == DAT_DTO_ERR_REMOTE_ACCESS ||
                  (kind == Rdma::kWrite && failing.status == DAT_DTO_SUCCESS) ||
                  (!remote_errors_told(client.ia) && failing.status == DAT_DTO_ERR_FLUSHED))
          << failing.status;
      expect_completions(pair.client_evds.recv.get(), 2, DAT_DTO_ERR_FLUSHED);
      expect_completions(pair.server_evds.recv.get(), 2, DAT_DTO_ERR_FLUSHED);
      expect_terminal_event(pair.client_evds.connect.get(), pair.client.get());
      expect_terminal_event(pair.server_evds.connect.get(), pair.server.get());
      expect_no_event(pair.client_evds.connect.get());
      expect_no_event(pair.server_evds.connect.get());
    }
    expect_working(bystander);
  }
}

TEST_P(RdmaProtection, WhatFollowsARefusedOneIsFlushed) {
  // STAT-16, DTO-46
  const Pair pair = make_connected_pair();
  const DAT_RMR_TRIPLET bad = remote_triplet(0xDEADBEEF, target.bytes().data(), 64);
  ASSERT_THAT(rdma_read(pair.client, local.triplet(0, 64), target.remote(0, 64), 0), Succeeds());
  if (rdma_read(pair.client, local.triplet(0, 64), bad, 1) != DAT_SUCCESS) {
    GTEST_SKIP() << "the library refuses it at once";
  }
  int posted = 2;
  while (posted < 5 && rdma_write(pair.client, local.triplet(0, 64), target.remote(0, 64),
                                  static_cast<DAT_UINT64>(posted)) == DAT_SUCCESS) {
    ++posted;  // to a connection that breaks meanwhile
  }
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, 0u);
  const auto status = remote_errors_told(client.ia) ? DAT_DTO_ERR_REMOTE_ACCESS : DAT_DTO_ERR_FLUSHED;
  EXPECT_EQ(expect_completion(pair.client_evds.request.get(), status).user_cookie.as_64, 1u);
  for (int i = 2; i < posted; ++i) {
    const auto dto =
        expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
    // What was on its way then was cut off, of which a device may say so.
    const bool cut_off = dto.status == DAT_DTO_ERR_TRANSPORT || dto.status == DAT_DTO_ERR_LOCAL_EP;
    EXPECT_TRUE(dto.status == DAT_DTO_ERR_FLUSHED || (!remote_errors_told(client.ia) && cut_off)) << dto.status;
    EXPECT_EQ(dto.user_cookie.as_64, static_cast<DAT_UINT64>(i));
  }
}

TEST_P(RdmaProtection, ContextWorksUntilTheRegionIsFreed) {
  // LMR-CREATE-7, LMR-FREE-6, LMR-FREE-8, STAT-8
  std::vector<std::byte> memory(256, std::byte{0x42});
  for (const Rdma kind : kBothRdma) {
    DAT_RMR_TRIPLET remote{};
    {
      const Lmr lmr(server.ia, server.pz, std::span(memory));
      remote = lmr.remote(0, memory.size());
      expect_granted(Rdma::kRead, remote);
      expect_granted(Rdma::kRead, remote);  // by every connection, any time
    }
    expect_refused(kind, remote);
  }
  for (const std::byte byte : memory) {
    ASSERT_EQ(byte, std::byte{0x42});
  }
}

TEST_P(RdmaProtection, FreedDuringATransferItSucceedsOrFailsCleanly) {
  // LMR-FREE-7, LMR-FREE-8, MT-3
  for (int round = 0; round < 20; ++round) {
    free_during_a_transfer(round % 4 == 0 ? Rdma::kRead : Rdma::kWrite, 0, round * 5us);
  }
}

TEST_P(RdmaProtection, FreedDuringTheTransferOfAConnectionThatHasLongUsedIt) {
  // LMR-FREE-7, LMR-FREE-8, MT-3: a provider may have made that connection's way shorter.
  for (int round = 0; round < 10; ++round) {
    free_during_a_transfer(round % 4 == 0 ? Rdma::kRead : Rdma::kWrite, 1100, round * 10us);
  }
}

TEST_P(RdmaProtection, ASourceOrSinkThatIsFreedFails) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // PROT-2, DTO-12, STAT-6: queued behind a Send that waits for a buffer.
  for (const Rdma kind : kBothRdma) {
    SCOPED_TRACE(rdma_name(kind));
    const Pair pair = make_connected_pair();
    const Lmr large(client.ia, client.pz, kLarge);
    const Lmr sink(server.ia, server.pz, kLarge);
    DAT_RETURN rc = DAT_SUCCESS;
    {
      const Lmr gone(client.ia, client.pz, 64);
      post_large_send(pair.client, large, 1);
      rc = rdma(kind, pair.client, gone.triplet(), target.remote(0, 64), 2);
    }
    ASSERT_THAT(rc, Succeeds());
    DAT_LMR_TRIPLET to = sink.triplet();
    ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    expect_completion(pair.client_evds.request.get());
    const auto dto =
        expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
    EXPECT_EQ(dto.user_cookie.as_64, 2u);
    if (dto.status == DAT_DTO_SUCCESS) {
      continue;  // it was executed before the region was freed
    }
    EXPECT_EQ(dto.status, DAT_DTO_ERR_LOCAL_PROTECTION);
    expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN, pair.client.get());
    expect_terminal_event(pair.server_evds.connect.get(), pair.server.get());
  }
}

TEST_P(RdmaProtection, NoRequestReachesWhatIsNotGranted) {
  // PROT-8, PROT-10, RDW-8: random contexts, addresses and lengths around a granted range.
  constexpr std::size_t kBlock = 4096;
  std::vector<std::byte> memory(3 * kBlock, std::byte{0x42});
  const Lmr granted(server.ia, server.pz, std::span(memory).subspan(kBlock, kBlock));
  std::fill(local.bytes().begin(), local.bytes().end(), std::byte{0x99});
  std::mt19937_64 random(4711);
  for (int i = 0; i < 60; ++i) {
    DAT_RMR_TRIPLET remote{};
    remote.rmr_context = granted.rmr_context();
    if (i % 3 == 0) {
      remote.rmr_context ^= DAT_RMR_CONTEXT{1} << (random() % 32);
    }
    remote.target_address = reinterpret_cast<DAT_VADDR>(memory.data()) + random() % (3 * kBlock);
    remote.segment_length = 1 + random() % (2 * kBlock);
    const DAT_VADDR start = reinterpret_cast<DAT_VADDR>(memory.data()) + kBlock;
    const bool inside =
        remote.target_address >= start && remote.target_address + remote.segment_length <= start + kBlock;
    const Rdma kind = i % 2 == 0 ? Rdma::kRead : Rdma::kWrite;
    if (inside && remote.rmr_context == granted.rmr_context()) {
      expect_granted(kind, remote);
    } else {
      expect_refused(kind, remote);
    }
  }
  const Pair pair = make_connected_pair();
  pass_message(pair);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (i < kBlock || i >= 2 * kBlock) {
      ASSERT_EQ(memory[i], std::byte{0x42}) << "byte " << i;
    }
  }
}

TEST_P(RdmaProtection, LoopbackIsCheckedAlike) {
  // PROT-10, EP-CONN-19
  const Pz other(server.ia);
  const Lmr foreign(server.ia, other, 64);
  const Lmr mine(server.ia, server.pz, 64);
  const OwnEvds evds(server);
  const OwnEvds peer_evds(server);
  const Ep ep(server.ia, server.pz, evds, default_ep_attr());
  const Ep peer(server.ia, server.pz, peer_evds, default_ep_attr());
  connect_pair(server, peer.get(), ep.get());
  ASSERT_THAT(rdma_read(ep, mine.triplet(), target.remote(0, 64), 1), Succeeds());
  expect_completion(evds.request.get());
  const DAT_RETURN rc = rdma_read(ep, mine.triplet(), foreign.remote(0, 64), 2);
  if (rc == DAT_SUCCESS) {
    if (remote_errors_told(client.ia)) {
      expect_completion(evds.request.get(), DAT_DTO_ERR_REMOTE_ACCESS);
      expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN, ep.get());
    } else {
      expect_completion(evds.request.get(), DAT_DTO_ERR_FLUSHED);
      expect_terminal_event(evds.connect.get(), ep.get());
    }
    expect_terminal_event(peer_evds.connect.get(), peer.get());
  } else {
    EXPECT_TRUE(is_type(rc, DAT_PROTECTION_VIOLATION)) << describe(rc);
  }
}

ANYDAT_OVER_ALL_WIRES(RdmaProtection);

}  // namespace
}  // namespace anydat::test
