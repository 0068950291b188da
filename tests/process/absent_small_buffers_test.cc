// SPDX-License-Identifier: BSD-3-Clause
// Memory whose pages take long to come, or never do, of messages that are short. Those have a way of their own on each
// wire.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "absent_buffers.h"
#include "absent_memory.h"
#include "payload.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

class AbsentSmallBuffers : public AbsentBuffersOfAnother {
 protected:
  static constexpr std::size_t kSmall = 64;
  void send(const Connection& connection) {
    DAT_LMR_TRIPLET source = there_->triplet(0, kSmall);
    require(dat_ep_post_send(connection.client.get(), 1, &source, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  }
};

TEST_P(AbsentSmallBuffers, AreWaitedForAndTheNextMessagesBehindThem) {
  constexpr std::size_t kElsewhere = kBytes / 2;
  AbsentMemory absent(memory_.first(kPage));
  post(*connection_, here_->triplet(0, kSmall), kSmall);
  post(*connection_, here_->triplet(kElsewhere, kSmall), kSmall);
  for (int i = 0; i < 2; ++i) expect_completion(other_side_->request.get());
  post(*good_, here_->triplet(2 * kElsewhere - kPage, kSmall), kSmall);
  EXPECT_EQ(expect_completion(side_->recv.get()).ep_handle, good_->server.get());
  expect_completion(other_side_->request.get());
  absent.fill(there_->bytes().first(kPage));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(expect_completion(side_->recv.get()).ep_handle, connection_->server.get());
  }
  for (const std::size_t offset : {std::size_t{0}, kElsewhere}) {
    EXPECT_TRUE(std::ranges::equal(memory_.subspan(offset, kSmall), there_->bytes().first(kSmall)));
  }
}

// The word of it comes behind what cannot be put in place.
TEST_P(AbsentSmallBuffers, LetTheEndOfThePeerBeHeard) {
  const AbsentMemory absent(memory_.first(kPage));
  post(*connection_, here_->triplet(0, kSmall), kSmall);
  expect_completion(other_side_->request.get());
  ASSERT_THAT(connection_->client.free(), Succeeds());
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_completion(side_->recv.get(), DAT_DTO_ERR_FLUSHED);
}

// It has said that all was sent, but not all of it has been delivered. Over TCP the word of that comes behind what
// cannot be put in place.
TEST_P(AbsentSmallBuffers, EndTheConnectionOfAPeerThatLeavesInOrder) {
  const AbsentMemory absent(memory_.first(kPage));
  post(*connection_, here_->triplet(0, kSmall), kSmall);
  expect_completion(other_side_->request.get());
  ASSERT_THAT(dat_ep_disconnect(connection_->client.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  expect_event(side_->connect.get(),
               GetParam().name == "tcp" ? DAT_CONNECTION_EVENT_BROKEN : DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_completion(side_->recv.get(), DAT_DTO_ERR_FLUSHED);
}

// The peer has gone when the pages come.
TEST_P(AbsentSmallBuffers, AreFilledAfterThePeerHasLeftInOrder) {
  if (GetParam().name == "tcp") GTEST_SKIP() << "its close notify comes behind what cannot be put in place";
  AbsentMemory absent(memory_.first(kPage));
  post(*connection_, here_->triplet(0, kSmall), kSmall);
  expect_completion(other_side_->request.get());
  ASSERT_THAT(dat_ep_disconnect(connection_->client.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  expect_event(other_side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_no_event(side_->connect.get());
  const std::vector<std::byte> sent(there_->bytes().begin(), there_->bytes().begin() + kPage);
  EXPECT_THAT(connection_->client.free(), Succeeds());
  EXPECT_THAT(good_->client.free(), Succeeds());
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);  // of the other one
  there_.reset();
  other_side_.reset();
  expect_no_event(side_->recv.get());
  absent.fill(sent);
  expect_completion(side_->recv.get());
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_TRUE(std::ranges::equal(memory_.first(kSmall), std::span(sent).first(kSmall)));
}

TEST_P(AbsentSmallBuffers, ThatAreUnmappedEndTheirConnectionAlone) {
  ASSERT_EQ(::munmap(memory_.data(), kPage), 0);
  post(*connection_, here_->triplet(0, kSmall), kSmall);
  expect_completion(side_->recv.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  post(*good_, here_->triplet(kBytes / 2, kSmall), kSmall);
  expect_completion(side_->recv.get());
}

// Each connection of a shared receive queue has taken the buffer that its message goes to.
TEST_P(AbsentSmallBuffers, OfASharedQueueHoldUpOneConnection) {
  const Srq srq(side_->ia, side_->pz, 8);
  const std::size_t elsewhere = kBytes / 2;
  Connection one, two;
  for (Connection* const connection : {&one, &two}) {
    connection->server = Ep(*side_, srq);
    connection->client = Ep(*other_side_);
    connect_pair(*side_, connection->server.get(), connection->client.get());
  }
  AbsentMemory absent(memory_.first(kPage));
  for (const std::size_t offset : {std::size_t{0}, elsewhere}) {
    DAT_LMR_TRIPLET buffer = here_->triplet(offset, kSmall);
    require(dat_srq_post_recv(srq.get(), 1, &buffer, {}), "dat_srq_post_recv");
  }
  send(one);
  send(two);
  EXPECT_EQ(expect_completion(side_->recv.get()).ep_handle, two.server.get());
  EXPECT_TRUE(std::ranges::equal(memory_.subspan(elsewhere, kSmall), there_->bytes().first(kSmall)));
  absent.fill(there_->bytes().first(kPage));
  EXPECT_EQ(expect_completion(side_->recv.get()).ep_handle, one.server.get());
  EXPECT_TRUE(std::ranges::equal(memory_.first(kSmall), there_->bytes().first(kSmall)));
}

// DTO-40: what was sent before them, and what comes behind.
TEST_P(AbsentSmallBuffers, OfSeveralSegmentsAreFilledInOrder) {
  constexpr std::size_t kElsewhere = kBytes / 2;
  AbsentMemory absent(memory_.subspan(kPage, kPage));
  std::array<DAT_LMR_TRIPLET, 2> parts{here_->triplet(0, kSmall / 2), here_->triplet(kPage, kSmall)};
  require(dat_ep_post_recv(connection_->server.get(), 2, parts.data(), {}, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_recv");
  send(*connection_);
  // A long one behind it, which crosses by another way.
  post(*connection_, here_->triplet(kElsewhere, 16 * kPage), 16 * kPage);
  for (int i = 0; i < 3; ++i) expect_no_event(side_->recv.get());
  absent.fill(there_->bytes().first(kPage));
  EXPECT_EQ(expect_completion(side_->recv.get()).transfered_length, kSmall);
  EXPECT_EQ(expect_completion(side_->recv.get()).transfered_length, 16 * kPage);
  EXPECT_TRUE(std::ranges::equal(memory_.first(kSmall / 2), there_->bytes().first(kSmall / 2)));
  EXPECT_TRUE(std::ranges::equal(memory_.subspan(kPage, kSmall / 2), there_->bytes().subspan(kSmall / 2, kSmall / 2)));
  EXPECT_TRUE(std::ranges::equal(memory_.subspan(kElsewhere, 16 * kPage), there_->bytes().first(16 * kPage)));
}

// LMR-FREE-8: its buffer is gone before its pages have come.
TEST_P(AbsentSmallBuffers, WhoseRegionGoesEndTheirConnection) {
  Lmr region(side_->ia, side_->pz, memory_.first(kPage));
  const AbsentMemory absent(memory_.first(kPage));
  post(*connection_, region.triplet(0, kSmall), kSmall);
  expect_completion(other_side_->request.get());
  DAT_LMR_TRIPLET source = there_->triplet(0, kBytes / 2);
  require(dat_ep_post_send(connection_->client.get(), 1, &source, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  expect_no_event(side_->recv.get());
  EXPECT_THAT(region.free(), Succeeds());
  expect_completion(side_->recv.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
  // The one that it is about has completed long ago, and the one behind it is not to blame.
  if (GetParam().name != "tcp") expect_completion(other_side_->request.get(), DAT_DTO_ERR_FLUSHED);
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

// The same of a message that was there before its buffer.
TEST_P(AbsentSmallBuffers, WhoseRegionGoesEndTheConnectionOfAMessageThatHasWaitedForThem) {
  Lmr region(side_->ia, side_->pz, memory_.first(kPage));
  const AbsentMemory absent(memory_.first(kPage));
  send(*connection_);
  // What is read behind it shows that it has been looked past.
  DAT_LMR_TRIPLET sink = there_->triplet(kBytes / 2, kSmall);
  const DAT_RMR_TRIPLET source = here_->remote(kBytes / 2, kSmall);
  require(dat_ep_post_rdma_read(connection_->client.get(), 1, &sink, {}, &source, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_rdma_read");
  for (int i = 0; i < 2; ++i) expect_completion(other_side_->request.get());
  DAT_LMR_TRIPLET target = region.triplet(0, kSmall);
  require(dat_ep_post_recv(connection_->server.get(), 1, &target, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  expect_no_event(side_->recv.get());
  EXPECT_THAT(region.free(), Succeeds());
  EXPECT_EQ(expect_completion(side_->recv.get(), DAT_DTO_ERR_LOCAL_PROTECTION).ep_handle, connection_->server.get());
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

// What is sent from them, of this side.
TEST_P(AbsentSmallBuffers, ThatAreSentHoldUpTheirConnectionAlone) {
  const std::size_t elsewhere = kBytes / 2;
  fill_message(memory_, 2, 1);
  const std::vector<std::byte> content(memory_.begin(), memory_.begin() + kPage);
  AbsentMemory absent(memory_.first(kPage));
  DAT_LMR_TRIPLET buffer = there_->triplet(0, kBytes);
  for (const std::size_t offset : {std::size_t{0}, elsewhere}) {
    DAT_LMR_TRIPLET target = there_->triplet(offset, kSmall);
    require(dat_ep_post_recv(connection_->client.get(), 1, &target, {}, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_recv");
    DAT_LMR_TRIPLET source = here_->triplet(offset, kSmall);
    require(dat_ep_post_send(connection_->server.get(), 1, &source, {}, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_send");
  }
  require(dat_ep_post_recv(good_->client.get(), 1, &buffer, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  DAT_LMR_TRIPLET source = here_->triplet(elsewhere + kPage, kSmall);
  require(dat_ep_post_send(good_->server.get(), 1, &source, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  EXPECT_EQ(expect_completion(other_side_->recv.get()).ep_handle, good_->client.get());
  EXPECT_EQ(expect_completion(side_->request.get()).ep_handle, good_->server.get());
  absent.fill(content);
  for (const std::size_t offset : {std::size_t{0}, elsewhere}) {
    EXPECT_EQ(expect_completion(other_side_->recv.get()).ep_handle, connection_->client.get());
    EXPECT_TRUE(std::ranges::equal(there_->bytes().subspan(offset, kSmall), memory_.subspan(offset, kSmall)));
    expect_completion(side_->request.get());
  }
}

// Each direction waits for its own: for memory that is about to come though the other's never does.
TEST_P(AbsentSmallBuffers, ThatNeverComeHoldUpNothingThatGoesTheOtherWay) {
  const std::size_t elsewhere = kBytes / 2;  // never touched
  for (const bool arriving : {true, false}) {
    SCOPED_TRACE(arriving ? "what arrives is stuck" : "what is sent is stuck");
    connection_.emplace(connect_pair(*side_, *other_side_));
    const std::size_t bad = arriving ? 0 : kPage, good = elsewhere + (arriving ? 0 : 64 * kPage);
    const AbsentMemory absent(memory_.subspan(bad, kPage));
    ::madvise(memory_.data() + good, kPage, MADV_DONTNEED);
    if (arriving) {
      post(*connection_, here_->triplet(bad, kSmall), kSmall);
      expect_completion(other_side_->request.get());
      expect_no_event(side_->recv.get());
      DAT_LMR_TRIPLET target = there_->triplet(elsewhere, kSmall);
      require(dat_ep_post_recv(connection_->client.get(), 1, &target, {}, DAT_COMPLETION_DEFAULT_FLAG),
              "dat_ep_post_recv");
      DAT_LMR_TRIPLET source = here_->triplet(good, kSmall);
      require(dat_ep_post_send(connection_->server.get(), 1, &source, {}, DAT_COMPLETION_DEFAULT_FLAG),
              "dat_ep_post_send");
      expect_completion(other_side_->recv.get());
      expect_completion(side_->request.get());
    } else {
      DAT_LMR_TRIPLET source = here_->triplet(bad, kSmall);
      require(dat_ep_post_send(connection_->server.get(), 1, &source, {}, DAT_COMPLETION_DEFAULT_FLAG),
              "dat_ep_post_send");
      expect_no_event(side_->request.get());
      post(*connection_, here_->triplet(good, kSmall), kSmall);
      expect_completion(side_->recv.get());
      expect_completion(other_side_->request.get());
    }
    connection_.reset();
    for (const Side* const side : {&*side_, &*other_side_}) {
      while (poll_event(side->recv.get()) || poll_event(side->request.get()) || poll_event(side->connect.get())) {
      }
    }
  }
}

// By the way that a connection takes when it has sent from the same region before.
TEST_P(AbsentSmallBuffers, ThatAreSentAgainAndAgainHoldUpTheirConnectionAlone) {
  fill_message(memory_, 2, 1);
  const std::vector<std::byte> content(memory_.begin(), memory_.begin() + kPage);
  const auto send_once = [&](const Connection& connection, std::size_t offset) {
    DAT_LMR_TRIPLET target = there_->triplet(offset, kSmall);
    require(dat_ep_post_recv(connection.client.get(), 1, &target, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    DAT_LMR_TRIPLET source = here_->triplet(offset, kSmall);
    require(dat_ep_post_send(connection.server.get(), 1, &source, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  };
  for (int i = 0; i < 100; ++i) {
    for (const Connection* const connection : {&*connection_, &*good_}) {
      send_once(*connection, 0);
      expect_completion(other_side_->recv.get());
      expect_completion(side_->request.get());
    }
  }
  std::optional<AbsentMemory> absent(memory_.first(kPage));
  // What has been seen in memory is taken to be there for some milliseconds.
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
       std::chrono::steady_clock::now() < until;) {
    send_once(*good_, kBytes / 2);
    expect_completion(other_side_->recv.get());
    expect_completion(side_->request.get());
  }
  send_once(*connection_, 0);
  for (int i = 0; i < 100; ++i) {
    send_once(*good_, kBytes / 2);
    EXPECT_EQ(expect_completion(other_side_->recv.get()).ep_handle, good_->client.get());
    expect_completion(side_->request.get());
  }
  absent->fill(content);
  EXPECT_EQ(expect_completion(other_side_->recv.get()).ep_handle, connection_->client.get());
  EXPECT_TRUE(std::ranges::equal(there_->bytes().first(kSmall), memory_.first(kSmall)));
  expect_completion(side_->request.get());
}

TEST_P(AbsentSmallBuffers, ThatAreUnmappedFailTheSendFromThere) {
  ASSERT_EQ(::munmap(memory_.data(), kPage), 0);
  DAT_LMR_TRIPLET source = here_->triplet(0, kSmall);
  require(dat_ep_post_send(connection_->server.get(), 1, &source, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  expect_completion(side_->request.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  post(*good_, here_->triplet(kBytes / 2, kSmall), kSmall);
  expect_completion(side_->recv.get());
}

INSTANTIATE_TEST_SUITE_P(Wires, AbsentSmallBuffers, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
