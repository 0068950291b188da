// SPDX-License-Identifier: BSD-3-Clause
// Memory whose pages take long to come, or never do: of a peer, or of one's own. What needs it waits; nothing else
// does.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <span>
#include <sstream>
#include <vector>

#include "absent_buffers.h"
#include "absent_memory.h"
#include "neighbour.h"
#include "payload.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

using Clock = std::chrono::steady_clock;

// What is under way between this process and the neighbour whose memory is absent.
enum class Transfer { its_send, its_receive, its_write, its_read, our_write, our_read };

std::string transfer_name(Transfer transfer) {
  switch (transfer) {
    case Transfer::its_send:
      return "ItsSend";
    case Transfer::its_receive:
      return "ItsReceive";
    case Transfer::its_write:
      return "ItsWrite";
    case Transfer::its_read:
      return "ItsRead";
    case Transfer::our_write:
      return "OurWrite";
    case Transfer::our_read:
      return "OurRead";
  }
  return {};
}

class AbsentPages : public testing::TestWithParam<std::tuple<Wire, Transfer>> {
 protected:
  Wire wire() const { return std::get<0>(GetParam()); }
  Transfer transfer() const { return std::get<1>(GetParam()); }

  void SetUp() override {
    if (!AbsentMemory::possible()) GTEST_SKIP() << "this system makes no memory absent for the kernel (userfaultfd)";
    side_.emplace(wire());
    other_side_.emplace(wire());
    DAT_EP_ATTR attr = default_ep_attr();
    attr.max_message_size = attr.max_rdma_size = kNeighbourBytes;
    ep_.emplace(*side_, attr);
    memory_.emplace(side_->ia, side_->pz, kNeighbourBytes);
    word_.emplace(side_->ia, side_->pz, 64);
    other_word_.emplace(other_side_->ia, other_side_->pz, 64);
    others_.emplace(connect_pair(*other_side_, *side_));
    neighbour_.emplace(wire());
    const DAT_CONN_QUAL qualifier = std::stoull(neighbour_->tell("listen"));
    require(dat_ep_connect(ep_->get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    if (transfer() == Transfer::its_receive) neighbour_->tell("post-receive-to-memory");
    neighbour_->tell("accept");
    expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    std::istringstream offer(neighbour_->tell("offer"));
    unsigned long long context = 0, address = 0;
    offer >> context >> address;
    remote_.rmr_context = static_cast<DAT_RMR_CONTEXT>(context);
    remote_.target_address = address;
    remote_.segment_length = kNeighbourBytes;
    neighbour_->tell("aim " + std::to_string(memory_->rmr_context()) + " " +
                     std::to_string(reinterpret_cast<std::uintptr_t>(memory_->bytes().data())));
    fill_message(memory_->bytes(), kOurSeed, 1);
  }

  void begin() {
    neighbour_->tell("lose-memory");
    DAT_LMR_TRIPLET ours = memory_->triplet();
    switch (transfer()) {
      case Transfer::its_send:
        require(dat_ep_post_recv(ep_->get(), 1, &ours, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
        neighbour_->tell("post-send-of-memory");
        break;
      case Transfer::its_receive:
        require(dat_ep_post_send(ep_->get(), 1, &ours, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
        break;
      case Transfer::its_write:
        neighbour_->tell("post-write-of-memory");
        break;
      case Transfer::its_read:
        neighbour_->tell("post-read-to-memory");
        break;
      case Transfer::our_write:
        require(dat_ep_post_rdma_write(ep_->get(), 1, &ours, {}, &remote_, DAT_COMPLETION_DEFAULT_FLAG),
                "dat_ep_post_rdma_write");
        break;
      case Transfer::our_read:
        require(dat_ep_post_rdma_read(ep_->get(), 1, &ours, {}, &remote_, DAT_COMPLETION_DEFAULT_FLAG),
                "dat_ep_post_rdma_read");
        break;
    }
  }

  // What this process waits for has not come, and it waits no longer than it has asked to.
  void expect_nothing_in_time() {
    for (const DAT_EVD_HANDLE evd : {side_->recv.get(), side_->request.get()}) {
      const auto begun = Clock::now();
      DAT_EVENT event{};
      DAT_COUNT more = 0;
      EXPECT_THAT(dat_evd_wait(evd, 100'000, 1, &event, &more), HasType(DAT_TIMEOUT_EXPIRED));
      EXPECT_LT(Clock::now() - begun, std::chrono::seconds(1));
    }
  }

  // By other connections of this adapter.
  void expect_others_go_on() {
    DAT_LMR_TRIPLET there = other_word_->triplet();
    DAT_LMR_TRIPLET here = word_->triplet();
    for (int i = 0; i < 10; ++i) {
      pass(*side_, others_->client.get(), here, *other_side_, others_->server.get(), there);
      pass(*other_side_, others_->server.get(), there, *side_, others_->client.get(), here);
    }
  }
  static void pass(const Side& from, DAT_EP_HANDLE from_ep, DAT_LMR_TRIPLET& source, const Side& to,
                   DAT_EP_HANDLE to_ep, DAT_LMR_TRIPLET& target) {
    require(dat_ep_post_recv(to_ep, 1, &target, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    require(dat_ep_post_send(from_ep, 1, &source, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    expect_completion(to.recv.get());
    expect_completion(from.request.get());
  }

  void expect_end() {
    switch (transfer()) {
      case Transfer::its_send:
        expect_completion(side_->recv.get());
        neighbour_->tell("await-sent 1");
        EXPECT_TRUE(is_message(memory_->bytes(), kItsSeed, 1));
        break;
      case Transfer::its_receive:
        neighbour_->tell("await-received");
        expect_completion(side_->request.get());
        EXPECT_TRUE(neighbour_->holds(kOurSeed));
        break;
      case Transfer::its_write:
        neighbour_->tell("await-sent 1");
        EXPECT_TRUE(is_message(memory_->bytes(), kItsSeed, 1));
        break;
      case Transfer::its_read:
        neighbour_->tell("await-sent 1");
        EXPECT_TRUE(neighbour_->holds(kOurSeed));
        break;
      case Transfer::our_write:
        expect_completion(side_->request.get());
        EXPECT_TRUE(neighbour_->holds(kOurSeed));
        break;
      case Transfer::our_read:
        expect_completion(side_->request.get());
        EXPECT_TRUE(is_message(memory_->bytes(), kItsSeed, 1));
        break;
    }
  }

  static constexpr int kOurSeed = 1;
  static constexpr int kItsSeed = 2;

  std::optional<Side> side_;
  std::optional<Side> other_side_;
  std::optional<Lmr> memory_;
  std::optional<Lmr> word_;
  std::optional<Lmr> other_word_;
  std::optional<Ep> ep_;
  std::optional<Connection> others_;
  std::optional<Neighbour> neighbour_;
  DAT_RMR_TRIPLET remote_{};
};

TEST_P(AbsentPages, AreWaitedForByWhatNeedsThemOnly) {
  begin();
  expect_nothing_in_time();
  expect_others_go_on();
  neighbour_->tell("listen-no-more");  // a call that needs the neighbour's engine
  neighbour_->tell("find-memory " + std::to_string(kItsSeed));
  expect_end();
  expect_others_go_on();
}

TEST_P(AbsentPages, LetTheirConnectionEnd) {
  begin();
  expect_nothing_in_time();
  const auto begun = Clock::now();
  EXPECT_THAT(ep_->free(), Succeeds());
  EXPECT_LT(Clock::now() - begun, std::chrono::seconds(1));
  const std::string end = neighbour_->connection_event();
  // Over TCP the word of how this side ends comes behind all that it sent, for which there is no room as long as the
  // neighbour cannot put it in place; it is given up after two seconds (docs/process-life.md).
  const bool behind_data =
      wire().name == "tcp" &&
      (transfer() == Transfer::its_receive || transfer() == Transfer::its_read || transfer() == Transfer::our_write);
  EXPECT_EQ(end, event_name(behind_data ? DAT_CONNECTION_EVENT_BROKEN : DAT_CONNECTION_EVENT_DISCONNECTED));
  expect_others_go_on();
  neighbour_->tell("free-endpoint");
}

TEST_P(AbsentPages, LetTheirOwnerEndTheConnection) {
  begin();
  expect_nothing_in_time();
  neighbour_->tell("free-endpoint");
  const auto event = wait_event(side_->connect.get());
  ASSERT_TRUE(event);
  EXPECT_EQ(event_name(event->event_number), event_name(DAT_CONNECTION_EVENT_DISCONNECTED));
  for (const DAT_EVD_HANDLE evd : {side_->recv.get(), side_->request.get()}) {
    while (poll_event(evd)) {  // what was flushed
    }
  }
  expect_others_go_on();
}

INSTANTIATE_TEST_SUITE_P(
    Transfers, AbsentPages,
    testing::Combine(testing::ValuesIn(all_wires()),
                     testing::Values(Transfer::its_send, Transfer::its_receive, Transfer::its_write, Transfer::its_read,
                                     Transfer::our_write, Transfer::our_read)),
    [](const auto& at) { return std::get<0>(at.param).name + "_" + transfer_name(std::get<1>(at.param)); });

// As a program does that tries again and again after each time-out.
TEST_P(AbsentBuffers, OneThatNeverComesHoldsUpNoOtherHoweverOftenItIsAskedFor) {
  const AbsentMemory absent(memory_.first(kPage));
  const Evd received(side_->ia, DAT_EVD_DTO_FLAG);
  const Evd sent(other_side_->ia, DAT_EVD_DTO_FLAG);
  for (int round = 0; round < 2; ++round) {
    std::vector<Connection> stuck;
    for (int i = 0; i < 17; ++i) {
      Connection& connection = stuck.emplace_back();
      connection.server =
          Ep(side_->ia, side_->pz, {received.get(), side_->request.get(), side_->connect.get()}, default_ep_attr());
      connection.client = Ep(other_side_->ia, other_side_->pz,
                             {other_side_->recv.get(), sent.get(), other_side_->connect.get()}, default_ep_attr());
      connect_pair(*side_, connection.server.get(), connection.client.get());
      post(connection, here_->triplet(0, 16 * kPage), 16 * kPage);
    }
    // Memory that has never been touched.
    const std::size_t offset = kBytes / 2;
    ::madvise(memory_.data() + offset, kBytes - offset, MADV_DONTNEED);
    post(*good_, here_->triplet(offset, 16 * kPage), 16 * kPage);
    expect_arrival(offset, 16 * kPage);
    for (Connection& connection : stuck) {
      ASSERT_THAT(connection.server.free(), Succeeds());
      expect_event(other_side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
      ASSERT_THAT(connection.client.free(), Succeeds());
    }
  }
}

TEST_P(AbsentBuffers, OtherPagesOfTheSameBufferComeMeanwhile) {
  constexpr std::size_t kBad = 20;
  const AbsentMemory absent(memory_.subspan(kBad * kPage, kPage));
  const Evd received(side_->ia, DAT_EVD_DTO_FLAG);
  const Evd sent(other_side_->ia, DAT_EVD_DTO_FLAG);
  Connection stuck;
  stuck.server =
      Ep(side_->ia, side_->pz, {received.get(), side_->request.get(), side_->connect.get()}, default_ep_attr());
  stuck.client = Ep(other_side_->ia, other_side_->pz, {other_side_->recv.get(), sent.get(), other_side_->connect.get()},
                    default_ep_attr());
  connect_pair(*side_, stuck.server.get(), stuck.client.get());
  post(stuck, here_->triplet(), 100 * kPage);
  post(*good_, here_->triplet((kBad + 1) * kPage, 16 * kPage), 16 * kPage);
  expect_arrival((kBad + 1) * kPage, 16 * kPage);
}

TEST_P(AbsentBuffers, NothingWaitsForThePartThatTheMessageDoesNotReach) {
  constexpr std::size_t kMessage = 100 << 10;
  const AbsentMemory absent(memory_.subspan(kMessage));
  post(*good_, here_->triplet(), kMessage);
  expect_arrival(0, kMessage);
}

// DTO-40: what was posted before is still done, and is not to blame.
TEST_P(AbsentBuffers, ThatAreUnmappedFailTheRequestThatSendsThemAndNoneBeforeIt) {
  constexpr std::size_t kLost = kBytes / 2;
  constexpr std::size_t kMessage = 3 * kPage;
  const auto write = [&](const Ep& ep, std::size_t from, std::uint64_t cookie) {
    DAT_LMR_TRIPLET source = here_->triplet(from, kMessage);
    const DAT_RMR_TRIPLET target = there_->remote(from, kMessage);
    DAT_DTO_COOKIE number;
    number.as_64 = cookie;
    require(dat_ep_post_rdma_write(ep.get(), 1, &source, number, &target, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_write");
  };
  const Evd other_requests(side_->ia, DAT_EVD_DTO_FLAG);
  Connection other;
  other.server =
      Ep(side_->ia, side_->pz, {side_->recv.get(), other_requests.get(), side_->connect.get()}, default_ep_attr());
  other.client =
      Ep(other_side_->ia, other_side_->pz,
         {other_side_->recv.get(), other_side_->request.get(), other_side_->connect.get()}, default_ep_attr());
  connect_pair(*side_, other.server.get(), other.client.get());

  std::optional<AbsentMemory> absent(page_there());
  ASSERT_EQ(::munmap(memory_.data() + kLost, kBytes - kLost), 0);
  constexpr std::uint64_t kGood = 20;
  for (std::uint64_t i = 0; i < kGood; ++i) write(good_->server, i * kPage, i);
  write(good_->server, kLost, kGood);
  // The same memory: when it is known of this one, it is of that one.
  write(other.server, kLost, 0);
  expect_completion(other_requests.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
  absent.reset();
  for (std::uint64_t i = 0; i < kGood; ++i) {
    EXPECT_EQ(expect_completion(side_->request.get()).user_cookie.as_64, i);
  }
  EXPECT_EQ(expect_completion(side_->request.get(), DAT_DTO_ERR_LOCAL_PROTECTION).user_cookie.as_64, kGood);
  for (int i = 0; i < 2; ++i) expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  memory_ = memory_.first(kLost);
}

// DTO-40: what waits for the peer before it is not to blame. It is waited for where the message has not begun; where
// the peer was to fetch it, and cannot, the connection ends at once.
TEST_P(AbsentBuffers, ThatAreUnmappedFailTheMessageOfWhichTheyAreAndNotTheOneBeforeIt) {
  constexpr std::size_t kLost = kBytes / 2;
  constexpr std::size_t kFirst = 5 * kPage;  // it waits for the peer's answer on all wires
  ASSERT_EQ(::munmap(memory_.data() + kLost, kBytes - kLost), 0);
  std::optional<AbsentMemory> absent(page_there());
  DAT_LMR_TRIPLET waiting = there_->triplet(0, kFirst);
  require(dat_ep_post_recv(good_->client.get(), 1, &waiting, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  DAT_LMR_TRIPLET first_source = here_->triplet(0, kFirst);
  DAT_DTO_COOKIE first;
  first.as_64 = 1;
  require(dat_ep_post_send(good_->server.get(), 1, &first_source, first, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_send");
  DAT_LMR_TRIPLET buffer = there_->triplet(kLost, kLost);
  require(dat_ep_post_recv(good_->client.get(), 1, &buffer, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  DAT_LMR_TRIPLET source = here_->triplet(kLost, kLost);
  DAT_DTO_COOKIE second;
  second.as_64 = 2;
  require(dat_ep_post_send(good_->server.get(), 1, &source, second, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  if (GetParam().name != "shm") {
    absent.reset();
    EXPECT_EQ(expect_completion(side_->request.get()).user_cookie.as_64, 1U);
  } else {
    EXPECT_EQ(expect_completion(side_->request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 1U);
  }
  EXPECT_EQ(expect_completion(side_->request.get(), DAT_DTO_ERR_LOCAL_PROTECTION).user_cookie.as_64, 2U);
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  memory_ = memory_.first(kLost);
}

// DTO-40, STAT-9: the same where the peer refuses what comes behind a Read that it has not answered yet.
TEST_P(AbsentBuffers, AReadThatWaitsIsNotToBlameForAWriteThatIsRefused) {
  if (GetParam().name == "shm")
    GTEST_SKIP() << "what is behind a Read that this side does itself is not sent before it";
  std::optional<AbsentMemory> absent(page_there());
  post_read(1);
  DAT_LMR_TRIPLET source = here_->triplet(kPage, kPage);
  DAT_RMR_TRIPLET target = there_->remote(2 * kPage, kPage);
  target.rmr_context ^= 0x5a5a;
  DAT_DTO_COOKIE second;
  second.as_64 = 2;
  require(dat_ep_post_rdma_write(good_->server.get(), 1, &source, second, &target, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_rdma_write");
  EXPECT_EQ(expect_completion(side_->request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 1U);
  EXPECT_EQ(expect_completion(side_->request.get(), DAT_DTO_ERR_REMOTE_ACCESS).user_cookie.as_64, 2U);
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

// The same of a message that is too long for its buffer, or finds none in time.
TEST_P(AbsentBuffers, AReadThatWaitsIsNotToBlameForAMessageThatFails) {
  if (GetParam().name == "shm")
    GTEST_SKIP() << "what is behind a Read that this side does itself is not sent before it";
  constexpr std::size_t kMessage = 5 * kPage;  // it waits for the peer's answer on all wires
  Wire impatient = GetParam();
  impatient.env["DAT_RNR_TIMEOUT_MS"] = "50";
  for (const bool too_long : {true, false}) {
    SCOPED_TRACE(too_long ? "too long" : "no buffer");
    Side peer(impatient);
    const Lmr memory(peer.ia, peer.pz, kBytes);
    const Connection connection = connect_pair(*side_, peer);
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.bytes().data());
    const std::size_t offset = (begin + kPage - 1) / kPage * kPage - begin;
    const AbsentMemory absent(memory.bytes().subspan(offset, kPage));
    DAT_DTO_COOKIE first, second;
    first.as_64 = 1;
    second.as_64 = 2;
    DAT_LMR_TRIPLET sink = here_->triplet(0, kPage);
    const DAT_RMR_TRIPLET target = memory.remote(offset, kPage);
    require(dat_ep_post_rdma_read(connection.server.get(), 1, &sink, first, &target, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_read");
    if (too_long) {
      DAT_LMR_TRIPLET buffer = memory.triplet(kBytes / 2, 8);
      require(dat_ep_post_recv(connection.client.get(), 1, &buffer, {}, DAT_COMPLETION_DEFAULT_FLAG),
              "dat_ep_post_recv");
    }
    DAT_LMR_TRIPLET source = here_->triplet(kBytes / 2, kMessage);
    require(dat_ep_post_send(connection.server.get(), 1, &source, second, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_send");
    EXPECT_EQ(expect_completion(side_->request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, 1U);
    EXPECT_EQ(expect_completion(side_->request.get(),
                                too_long ? DAT_DTO_ERR_REMOTE_RESPONDER : DAT_DTO_ERR_RECEIVER_NOT_READY)
                  .user_cookie.as_64,
              2U);
    expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  }
}

// DTO-40, STAT-9: nor is a message that is under way, from memory that is there, to blame for a Read of the peer's.
TEST_P(AbsentBuffers, ThatAreUnmappedFailTheReadOfThePeerAndNoneOfItsOwner) {
  constexpr std::size_t kLost = kBytes / 2;
  ASSERT_EQ(::munmap(memory_.data() + kLost, kBytes - kLost), 0);
  DAT_LMR_TRIPLET waiting = here_->triplet(0, 5 * kPage);  // for a receive, on all wires
  require(dat_ep_post_send(good_->server.get(), 1, &waiting, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  DAT_LMR_TRIPLET sink = there_->triplet(0, kPage);
  const DAT_RMR_TRIPLET lost = here_->remote(kLost, kPage);
  DAT_DTO_COOKIE number;
  number.as_64 = 7;
  require(dat_ep_post_rdma_read(good_->client.get(), 1, &sink, number, &lost, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_rdma_read");
  EXPECT_EQ(expect_completion(other_side_->request.get(), DAT_DTO_ERR_REMOTE_ACCESS).user_cookie.as_64, 7U);
  expect_completion(side_->request.get(), DAT_DTO_ERR_FLUSHED);
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  memory_ = memory_.first(kLost);
}

// RECV-10, DTO-40: nor does one that finds no buffer in time end the connection before those that have theirs are in.
TEST_P(AbsentBuffers, AMessageThatIsArrivingIsWaitedForByOneWithoutABuffer) {
  constexpr std::size_t kMessage = 5 * kPage;
  Wire impatient = GetParam();
  impatient.env["DAT_RNR_TIMEOUT_MS"] = "20";
  Side peer(impatient);
  const Lmr memory(peer.ia, peer.pz, kBytes);
  const Connection connection = connect_pair(*side_, peer);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.bytes().data());
  const std::size_t offset = (begin + kPage - 1) / kPage * kPage - begin;
  fill_message(here_->bytes(), 1, 1);
  AbsentMemory absent(memory.bytes().subspan(offset, kPage));
  DAT_LMR_TRIPLET buffer = memory.triplet(offset, kMessage);
  require(dat_ep_post_recv(connection.client.get(), 1, &buffer, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  DAT_LMR_TRIPLET source = here_->triplet(0, kMessage);
  for (const std::uint64_t number : {1U, 2U}) {
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = number;
    require(dat_ep_post_send(connection.server.get(), 1, &source, cookie, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_send");
  }
  for (int i = 0; i < 5; ++i) expect_no_event(peer.recv.get());  // longer than a message waits for a buffer
  absent.fill(here_->bytes().first(kPage));
  expect_completion(peer.recv.get());
  EXPECT_TRUE(std::ranges::equal(memory.bytes().subspan(offset, kMessage), here_->bytes().first(kMessage)));
  EXPECT_EQ(expect_completion(side_->request.get()).user_cookie.as_64, 1U);
  EXPECT_EQ(expect_completion(side_->request.get(), DAT_DTO_ERR_RECEIVER_NOT_READY).user_cookie.as_64, 2U);
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

// DTO-40, STAT-6
TEST_P(AbsentBuffers, ThatAreUnmappedFailTheReadThatIsToBringThere) {
  ASSERT_EQ(::munmap(memory_.data(), kPage), 0);
  post_read(1);
  EXPECT_EQ(expect_completion(side_->request.get(), DAT_DTO_ERR_LOCAL_PROTECTION).user_cookie.as_64, 1U);
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

INSTANTIATE_TEST_SUITE_P(Wires, AbsentBuffers, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
