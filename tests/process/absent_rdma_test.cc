// SPDX-License-Identifier: BSD-3-Clause
// RDMA where both ends are in the memory of who carries it out, and pages of that are not there: it waits with its
// connection alone.
#include <anydat/anydat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absent_buffers.h"
#include "absent_memory.h"
#include "payload.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"
#include "support/threads.h"

namespace anydat::test {
namespace {

constexpr std::size_t kShort = 8;
constexpr std::size_t kLong = std::size_t{256} << 10;

class AbsentRdma : public AbsentBuffersOfAnother {
 protected:
  void SetUp() override {
    AbsentBuffersOfAnother::SetUp();
    if (IsSkipped()) return;
    fill_message(memory_, 2, 1);
    content_.assign(memory_.begin(), memory_.end());
  }

  static void write(const Ep& ep, DAT_LMR_TRIPLET from, const DAT_RMR_TRIPLET& to) {
    require(dat_ep_post_rdma_write(ep.get(), 1, &from, {}, &to, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_rdma_write");
  }
  static void read(const Ep& ep, DAT_LMR_TRIPLET to, const DAT_RMR_TRIPLET& from) {
    require(dat_ep_post_rdma_read(ep.get(), 1, &to, {}, &from, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_rdma_read");
  }
  // Messages of another connection of this adapter, from memory that is there.
  void expect_others_go_on(int messages = 10) {
    for (int i = 0; i < messages; ++i) {
      post(*good_, here_->triplet(kBytes - kPage, kShort), kShort);
      expect_completion(side_->recv.get());
      expect_completion(other_side_->request.get());
    }
  }
  // What has been seen in memory is taken to be there for some milliseconds.
  void forget_what_was_seen() {
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
         std::chrono::steady_clock::now() < until;) {
      expect_others_go_on(1);
    }
  }
  // By another connection, so that only what is absent is not known to be there.
  void use_what_is_there() {
    read(good_->client, there_->triplet(0, kShort), here_->remote(kBytes - kPage, kShort));
    expect_completion(other_side_->request.get());
  }
  std::span<const std::byte> content(std::size_t bytes) const { return std::span(content_).first(bytes); }
  std::vector<std::byte> pages(std::size_t bytes) const {
    const auto whole = content((bytes + kPage - 1) / kPage * kPage);
    return {whole.begin(), whole.end()};
  }

  // Of the absent memory and that of the other side, from their beginnings: short and long, by begin(bytes).
  template <typename Begin>
  void expect_it_waits(const Evd& requests, Begin&& begin) {
    for (const std::size_t bytes : {kShort, kLong}) {
      AbsentMemory absent(memory_.first(pages(bytes).size()));
      forget_what_was_seen();
      begin(bytes);
      expect_others_go_on();
      expect_no_event(requests.get());
      absent.fill(pages(bytes));
      expect_completion(requests.get());
      EXPECT_TRUE(std::ranges::equal(there_->bytes().first(bytes), memory_.first(bytes)));
    }
  }

  std::vector<std::byte> content_;
};

TEST_P(AbsentRdma, AWriteFromThereHoldsUpItsConnectionAlone) {
  expect_it_waits(side_->request, [this](std::size_t bytes) {
    write(connection_->server, here_->triplet(0, bytes), there_->remote(0, bytes));
  });
}

TEST_P(AbsentRdma, AReadToThereHoldsUpItsConnectionAlone) {
  expect_it_waits(side_->request, [this](std::size_t bytes) {
    read(connection_->server, here_->triplet(0, bytes), there_->remote(0, bytes));
  });
}

TEST_P(AbsentRdma, AWriteToThereHoldsUpItsConnectionAlone) {
  expect_it_waits(other_side_->request, [this](std::size_t bytes) {
    write(connection_->client, there_->triplet(0, bytes), here_->remote(0, bytes));
  });
}

// Who has the message finds the Writes before it in place, also those to memory that is there (RDW-9).
TEST_P(AbsentRdma, AMessageBehindAWriteToThereComesAfterIt) {
  constexpr std::size_t kElsewhere = kBytes / 2;
  constexpr std::size_t kWrites = 4;
  AbsentMemory absent(memory_.first(kPage));
  DAT_LMR_TRIPLET buffer = here_->triplet(kElsewhere + kPage, kShort);
  require(dat_ep_post_recv(connection_->server.get(), 1, &buffer, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  for (std::size_t i = 0; i < kWrites; ++i) {
    const std::size_t offset = i * kShort;
    write(connection_->client, there_->triplet(offset, kShort), here_->remote(offset, kShort));
    write(connection_->client, there_->triplet(offset, kShort), here_->remote(kElsewhere + offset, kShort));
  }
  DAT_LMR_TRIPLET source = there_->triplet(0, kShort);
  require(dat_ep_post_send(connection_->client.get(), 1, &source, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  expect_no_event(side_->recv.get());
  expect_no_event(other_side_->request.get());
  absent.fill(pages(kPage));
  expect_completion(side_->recv.get());
  for (const std::size_t place : {std::size_t{0}, kElsewhere}) {
    EXPECT_TRUE(std::ranges::equal(there_->bytes().first(kWrites * kShort), memory_.subspan(place, kWrites * kShort)));
  }
  for (std::size_t i = 0; i < 2 * kWrites + 1; ++i) expect_completion(other_side_->request.get());
}

TEST_P(AbsentRdma, AReadFromThereHoldsUpItsConnectionAlone) {
  expect_it_waits(other_side_->request, [this](std::size_t bytes) {
    read(connection_->client, there_->triplet(0, bytes), here_->remote(0, bytes));
  });
}

// By the way that a connection takes when it has used the same regions a thousand times before. Nor does the post wait,
// which would copy the bytes itself.
TEST_P(AbsentRdma, ThatIsDoneAgainAndAgainHoldsUpItsConnectionAlone) {
  for (const bool writes : {true, false}) {
    for (const bool from_here : {true, false}) {
      const Ep& ep = from_here ? connection_->server : connection_->client;
      const Evd& requests = from_here ? side_->request : other_side_->request;
      const auto go = [&](std::size_t bytes) {
        const DAT_LMR_TRIPLET local = from_here ? here_->triplet(0, bytes) : there_->triplet(0, bytes);
        const DAT_RMR_TRIPLET remote = from_here ? there_->remote(0, bytes) : here_->remote(0, bytes);
        writes ? write(ep, local, remote) : read(ep, local, remote);
      };
      for (int i = 0; i < 1100; ++i) {
        go(kShort);
        expect_completion(requests.get());
      }
      for (const std::size_t bytes : {kShort, kLong}) {
        std::optional<WatchedThread> post;
        AbsentMemory absent(memory_.first(pages(bytes).size()));
        forget_what_was_seen();
        use_what_is_there();
        post.emplace([&] { go(bytes); });
        ASSERT_TRUE(post->ended_within(patience())) << writes << from_here << bytes;
        expect_others_go_on();
        expect_no_event(requests.get());
        absent.fill(pages(bytes));
        expect_completion(requests.get());
        EXPECT_TRUE(std::ranges::equal(there_->bytes().first(bytes), memory_.first(bytes)));
      }
    }
  }
}

// Of one's own, or of the peer: dat_ia_close(3).
TEST_P(AbsentRdma, TheInstanceIsClosedInASecond) {
  for (const bool ours : {true, false}) {
    Side side(GetParam());
    Side other(GetParam());
    Lmr region(side.ia, side.pz, memory_);
    Lmr there(other.ia, other.pz, kBytes);
    Connection connection = connect_pair(side, other);
    const AbsentMemory absent(memory_.first(pages(kLong).size()));
    write(connection.client, there.triplet(0, kLong), region.remote(0, kLong));
    read(connection.server, region.triplet(0, kLong), there.remote(0, kLong));
    expect_no_event(other.request.get());
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_THAT((ours ? side : other).ia.close(DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(1500)) << ours;
    // Nothing of it is left to be freed.
    (ours ? region : there).release();
    (ours ? connection.server : connection.client).release();
    Side& closed = ours ? side : other;
    for (Evd* evd : {&closed.recv, &closed.request, &closed.connect, &closed.requests}) evd->release();
    closed.pz.release();
    if (closed.psp) closed.psp->release();
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, AbsentRdma, testing::ValuesIn(all_wires()), wire_name);

// The same with memory of another process that is mapped here.
class AbsentMapped : public AbsentRdma {
 protected:
  void SetUp() override {
    AbsentRdma::SetUp();
    if (IsSkipped()) return;
    target_.emplace("shareable-target", GetParam(),
                    std::vector<std::string>{"sealed", std::to_string(DAT_MEM_PRIV_ALL_FLAG)});
    unsigned long long qualifier = 0, context = 0, address = 0;
    ASSERT_EQ(std::sscanf(target_->channel().hear().c_str(), "%llu %llu %llu", &qualifier, &context, &address), 3);
    remote_.rmr_context = static_cast<DAT_RMR_CONTEXT>(context);
    remote_.target_address = address;
    remote_.segment_length = kShort;
    ep_.emplace(*side_);
    require(dat_ep_connect(ep_->get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    ASSERT_TRUE(eventually([&] {
      write(*ep_, here_->triplet(0, kShort), remote_);
      expect_completion(side_->request.get());
      return rdmas_in_memory() > 1000;  // and thus by what has been found out before
    }));
  }
  void TearDown() override {
    if (target_) {
      target_->channel().say("end");
      EXPECT_EQ(target_->channel().hear(), "well");
    }
    ep_.reset();
    AbsentRdma::TearDown();
  }
  std::uint64_t rdmas_in_memory() const {
    std::vector<ANYDAT_COUNTER> counters(32);
    DAT_COUNT count = 0;
    require(anydat_get_counters(ep_->get(), static_cast<DAT_COUNT>(counters.size()), counters.data(), &count),
            "anydat_get_counters");
    counters.resize(static_cast<std::size_t>(count));
    const auto found = std::ranges::find_if(
        counters, [](const ANYDAT_COUNTER& it) { return it.name == std::string("rdmas_in_memory"); });
    return found != counters.end() ? found->value : 0;
  }

  std::optional<PeerProcess> target_;
  std::optional<Ep> ep_;
  DAT_RMR_TRIPLET remote_{};
};

TEST_P(AbsentMapped, AWriteThatIsDoneAgainAndAgainHoldsUpItsConnectionAlone) {
  AbsentMemory absent(memory_.first(kPage));
  forget_what_was_seen();
  write(*ep_, here_->triplet(0, kShort), remote_);
  expect_others_go_on();
  expect_no_event(side_->request.get());
  absent.fill(pages(kPage));
  expect_completion(side_->request.get());
  read(*ep_, here_->triplet(kPage, kShort), remote_);
  expect_completion(side_->request.get());
  EXPECT_TRUE(std::ranges::equal(memory_.subspan(kPage, kShort), content(kShort)));
}

TEST_P(AbsentMapped, AWriteFromElsewhereInTheRegionHoldsUpItsConnectionAlone) {
  AbsentMemory absent(memory_.subspan(kPage, kPage));
  forget_what_was_seen();
  write(*ep_, here_->triplet(kPage, kShort), remote_);
  expect_others_go_on();
  expect_no_event(side_->request.get());
  absent.fill(pages(kPage));
  expect_completion(side_->request.get());
}

// A thread that polls memory looks at no events; then only a thread that posts tells the time (nic/moment.h).
TEST_P(AbsentMapped, AWriteOfWhoDoesNotPollHoldsUpItsConnectionAlone) {
  const auto write_quietly = [&] {
    DAT_LMR_TRIPLET from = here_->triplet(0, kShort);
    require(dat_ep_post_rdma_write(ep_->get(), 1, &from, {}, &remote_, DAT_COMPLETION_SUPPRESS_FLAG),
            "dat_ep_post_rdma_write");
  };
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
       std::chrono::steady_clock::now() < until;) {
    write_quietly();
  }
  const AbsentMemory absent(memory_.first(kPage));
  // What has been seen in memory is taken to be there for some milliseconds, and no thread polls meanwhile.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::uint64_t before = rdmas_in_memory();
  write_quietly();
  EXPECT_EQ(rdmas_in_memory(), before);
  expect_others_go_on();
}

std::vector<Wire> mapping_wires() {
  std::vector<Wire> wires = all_wires();
  std::erase_if(wires, [](const Wire& wire) { return wire.name != "shm"; });
  return wires;
}
INSTANTIATE_TEST_SUITE_P(Wires, AbsentMapped, testing::ValuesIn(mapping_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
