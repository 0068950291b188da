// SPDX-License-Identifier: BSD-3-Clause
// Who has to go when the descriptors for sockets that are no connection are used up.
#include "nic/soft/strangers.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "nic/budget.h"
#include "os/slow_close.h"
#include "os/unique_fd.h"
#include "support/patience.h"
#include "unit/slow_socket.h"

namespace anydat::nic::soft {
namespace {

using Stage = Stranger::Stage;

class Someone final : public Stranger {
 public:
  template <typename Source>
  Someone(Strangers& all, const Source& source, Stage stage) : Stranger(all, source, stage) {}
  void turn_out() override { gone_ = true; }
  bool gone() const { return gone_; }

 private:
  bool gone_ = false;
};

Address host(std::uint8_t number) {
  Address address{};
  address.v4.sin_family = AF_INET;
  address.v4.sin_addr.s_addr = htonl(0x0a000000u + number);
  return address;
}

class StrangersOfAnAdapter : public testing::Test {
 protected:
  static constexpr std::size_t kShare = 16;

  StrangersOfAnAdapter() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = 4 * kShare;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~StrangersOfAnAdapter() override { setrlimit(RLIMIT_NOFILE, &before_); }
  void add(std::size_t count, Stage stage, const Address& source = {}) { add_to(strangers_, count, stage, source); }
  void add_to(Strangers& all, std::size_t count, Stage stage, const Address& source = {}) {
    while (count-- > 0) everybody_.push_back(std::make_unique<Someone>(all, source, stage));
  }
  template <typename Source>
  void expect_soon_let_in(const Source& slow, const Source& busy, Strangers::By way);
  // There is room before long, for one who comes then.
  void let_one_in(Strangers::By way = Strangers::By::tcp) {
    EXPECT_TRUE(test::eventually([&] { return strangers_.may_come(way); }));
    strangers_.one_has_come(way);
  }
  template <typename Source>
  Someone& come(const Source& source, Stage stage) {
    everybody_.push_back(std::make_unique<Someone>(strangers_, source, stage));
    return *everybody_.back();
  }
  std::size_t gone() const {
    std::size_t count = 0;
    for (const auto& one : everybody_) count += one && one->gone() ? 1 : 0;
    return count;
  }

  Strangers strangers_;
  Strangers of_another_;  // adapter
  std::vector<std::unique_ptr<Someone>> everybody_;

 private:
  rlimit before_{};
};

TEST_F(StrangersOfAnAdapter, HaveTheirShareHoweverManyConnectionsEnd) {
  add(kShare - 1, Stage::lingering);
  add(kShare - 1, Stage::asking);  // the program owes them the answer
  EXPECT_TRUE(strangers_.may_come(Strangers::By::tcp));
  EXPECT_EQ(gone(), 0u);
  add(1, Stage::asking);
  EXPECT_FALSE(strangers_.may_come(Strangers::By::tcp));
  EXPECT_EQ(gone(), 0u);
}

// EP-DISC-4: a peer that has just heard of the end has time to take what was sent to it, whichever caller wants to come
// in.
TEST_F(StrangersOfAnAdapter, WaitForEndsThatHaveJustBegunAndTakeThePlaceOfOldOnes) {
  add(kShare + 3, Stage::lingering);
  EXPECT_FALSE(strangers_.may_come(Strangers::By::tcp));
  strangers_.one_has_come(Strangers::By::tcp);  // he has not waited
  EXPECT_EQ(gone(), 0u);
  // Each the place of one, the oldest first.
  for (std::size_t i = 0; i < 4; ++i) {
    let_one_in();
    EXPECT_EQ(gone(), i + 1);
    EXPECT_TRUE(everybody_[i]->gone());
  }
  // Now there is room, and no stranger need go for it.
  let_one_in();
  EXPECT_EQ(gone(), 4u);
}

// RFC 5042, section 6: who says a part of what it wants on very many sockets has the others wait for none of them long,
// and loses its own: a host, or a process of this one.
template <typename Source>
void StrangersOfAnAdapter::expect_soon_let_in(const Source& slow, const Source& busy, Strangers::By way) {
  everybody_.push_back(std::make_unique<Someone>(strangers_, slow, Stage::talking));
  for (std::size_t i = 1; i < (way == Strangers::By::tcp ? kShare : kShare / 2); ++i) {
    everybody_.push_back(std::make_unique<Someone>(strangers_, busy, Stage::talking));
  }
  const auto begun = std::chrono::steady_clock::now();
  let_one_in(way);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1));
  EXPECT_EQ(gone(), 1u);
}

TEST_F(StrangersOfAnAdapter, WithoutAnEndAreTurnedOutSoonWhereTheyAreManyOfOneHost) {
  std::size_t others = 0;
  for (std::uint8_t i = 0; i < 3; ++i) {  // two hosts may happen to have the same number, but hardly each time
    expect_soon_let_in(host(2), host(static_cast<std::uint8_t>(10 + i)), Strangers::By::tcp);
    others += everybody_.front()->gone() ? 1 : 0;
    everybody_.clear();
  }
  EXPECT_LT(others, 3u);
}

TEST_F(StrangersOfAnAdapter, WithoutAnEndAreTurnedOutSoonWhereTheyAreManyOfOneProcess) {
  std::size_t others = 0;
  for (os::PeerName i = 0; i < 3; ++i) {
    expect_soon_let_in(os::PeerName{1000}, os::PeerName{2000} + i, Strangers::By::local_socket);
    others += everybody_.front()->gone() ? 1 : 0;
    everybody_.clear();
  }
  EXPECT_LT(others, 3u);
}

// RFC 5042, section 6: however many local processes begin a greeting, hosts that call over TCP have half of the share;
// and no caller that has come the other way goes for them.
TEST_F(StrangersOfAnAdapter, OfThisHostHaveHalfOfTheShare) {
  for (std::size_t i = 0; i < kShare / 2; ++i) come(os::PeerName{1000 + i}, Stage::talking);
  EXPECT_FALSE(Strangers::has_room(Strangers::By::local_socket));
  for (std::size_t i = 0; i < kShare / 2; ++i) {
    EXPECT_TRUE(Strangers::has_room(Strangers::By::tcp)) << i;
    come(host(static_cast<std::uint8_t>(i)), Stage::talking);
  }
  EXPECT_FALSE(Strangers::has_room(Strangers::By::tcp));
  let_one_in(Strangers::By::local_socket);
  EXPECT_EQ(gone(), 1u);
  std::size_t of_this_host = 0;
  for (std::size_t i = 0; i < kShare / 2; ++i) of_this_host += everybody_[i]->gone() ? 1 : 0;
  EXPECT_EQ(of_this_host, 1u);
}

// The same where local processes have left more behind than the whole share, as who passes several descriptors at once
// and who has been connected may: it is theirs, and of the share it takes no more than their half.
TEST_F(StrangersOfAnAdapter, OfThisHostThatLeaveMoreThanTheShareBehindLeaveOthersTheirHalf) {
  constexpr os::PeerName kLeaver = 1000;
  std::array<test::SlowSocket, 2> slow;  // which hold up all that is behind them
  for (test::SlowSocket& one : slow) os::close_elsewhere(one.take(), kLeaver);
  while (os::closing_elsewhere() < kShare) {
    os::close_elsewhere(os::UniqueFd::of([] { return ::eventfd(0, EFD_CLOEXEC); }), kLeaver);
  }
  EXPECT_FALSE(strangers_.may_come(Strangers::By::local_socket));
  for (std::size_t i = 0; i < kShare / 2; ++i) {
    EXPECT_TRUE(Strangers::has_room(Strangers::By::tcp)) << i;
    come(host(static_cast<std::uint8_t>(i)), Stage::asking);
  }
  EXPECT_FALSE(Strangers::has_room(Strangers::By::tcp));
  for (test::SlowSocket& one : slow) one.let_close();
  EXPECT_TRUE(test::eventually([] { return os::closing_elsewhere() == 0; }));
}

// All of them together have the share, and none goes but the one in whose place another comes: of those over TCP while
// they have more than half.
TEST_F(StrangersOfAnAdapter, OfThisHostTakeThePlacesThatOthersHaveBeyondTheirHalf) {
  for (std::size_t i = 0; i < kShare; ++i) come(host(1), Stage::silent);
  for (std::size_t i = 0; i < kShare / 2; ++i) {
    EXPECT_FALSE(Strangers::has_room(Strangers::By::local_socket)) << i;
    let_one_in(Strangers::By::local_socket);
    come(os::PeerName{1000}, Stage::silent);
    EXPECT_EQ(gone(), i + 1);
  }
  let_one_in();  // in the place of one that has come as he does
  come(host(1), Stage::silent);
  EXPECT_EQ(gone(), kShare / 2 + 1);
  let_one_in(Strangers::By::local_socket);
  EXPECT_EQ(gone(), kShare / 2 + 2);
  EXPECT_TRUE(everybody_[kShare]->gone());
}

// RFC 5042, section 6: a host that says a part again and again has always just said it. Who has been there for longer
// does not go for that: the newcomer waits, until one of the many has been there for its time.
TEST_F(StrangersOfAnAdapter, OfAnotherHostDoNotGoForThoseOfTheBusiestThatHaveJustCome) {
  std::size_t others = 0;
  for (std::uint8_t round = 0; round < 3; ++round) {  // two hosts may happen to have the same number
    const Someone& slow = come(host(2), Stage::talking);
    const auto old = std::chrono::steady_clock::now() + std::chrono::milliseconds(1100);
    EXPECT_TRUE(test::eventually([&] { return std::chrono::steady_clock::now() > old; }));
    for (std::size_t i = 1; i < kShare; ++i) come(host(static_cast<std::uint8_t>(10 + round)), Stage::talking);
    let_one_in();
    EXPECT_EQ(gone(), 1u);
    others += slow.gone() ? 1 : 0;
    everybody_.clear();
  }
  EXPECT_LT(others, 3u);
}

// Nor does one that has called and has not had the time to say what it wants.
TEST_F(StrangersOfAnAdapter, OfAnotherHostHaveTheTimeToSaySomething) {
  std::size_t others = 0;
  for (std::uint8_t round = 0; round < 3; ++round) {
    const auto busy = host(static_cast<std::uint8_t>(10 + round));
    for (std::size_t i = 1; i < kShare; ++i) come(busy, Stage::talking);
    const Someone& silent = come(host(2), Stage::silent);
    let_one_in();
    EXPECT_EQ(gone(), 1u);
    others += silent.gone() ? 1 : 0;
    everybody_.clear();
  }
  EXPECT_LT(others, 3u);
}

// Others have the time that a slow network takes.
TEST_F(StrangersOfAnAdapter, WithoutAnEndAreWaitedForWhereTheyAreFewOfEachHost) {
  const auto begun = std::chrono::steady_clock::now();
  for (std::uint8_t i = 0; i < kShare; ++i) add(1, Stage::talking, host(i));
  let_one_in();
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1));
}

// A thread that looks for callers finds none in the end: looking turns out no stranger.
TEST_F(StrangersOfAnAdapter, CostNothingBeforeTheyCome) {
  add(kShare, Stage::lingering);
  EXPECT_TRUE(test::eventually([&] { return strangers_.may_come(Strangers::By::tcp); }));
  EXPECT_TRUE(strangers_.may_come(Strangers::By::tcp));
  EXPECT_EQ(gone(), 0u);
}

TEST_F(StrangersOfAnAdapter, CostNoneOfTheirLikeAnythingBeforeTheyCome) {
  for (const Strangers::By way : {Strangers::By::tcp, Strangers::By::local_socket}) {
    while (Strangers::has_room(way)) {
      if (way == Strangers::By::tcp) {
        come(host(1), Stage::silent);
      } else {
        come(os::PeerName{1000}, Stage::silent);
      }
    }
    EXPECT_TRUE(strangers_.may_come(way));
    EXPECT_TRUE(strangers_.may_come(way));
    EXPECT_EQ(gone(), 0u);
    EXPECT_TRUE(strangers_.one_has_come(way));
    EXPECT_EQ(gone(), 1u);
    EXPECT_TRUE(everybody_.front()->gone());
    everybody_.clear();
  }
}

// Too many ends of connections cost no caller its place.
TEST_F(StrangersOfAnAdapter, AreNotTurnedOutForEndsOfConnections) {
  add(kShare + 3, Stage::lingering);
  add(2, Stage::silent);
  let_one_in();
  for (std::size_t i = kShare + 3; i < everybody_.size(); ++i) EXPECT_FALSE(everybody_[i]->gone());
}

// RFC 5042, section 6: who lets ends pile up does so at his own expense. Of how many have called he may have fewer.
TEST_F(StrangersOfAnAdapter, TakeThePlaceOfAnEndOfTheHostWithTheMostOfThem) {
  constexpr std::size_t kHosts = 3;
  for (std::uint8_t i = 1; i <= kHosts; ++i) add(1, Stage::lingering, host(i));
  for (std::uint8_t i = 1; i <= kHosts; ++i) add(1, Stage::asking, host(i));
  add(kShare, Stage::lingering, host(kHosts + 1));
  // Not before all of them have lasted long enough, and not the first ones alone.
  const auto all_have = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  ASSERT_TRUE(test::eventually([&] { return std::chrono::steady_clock::now() > all_have; }));
  for (std::size_t i = 0; i < kHosts; ++i) let_one_in();
  EXPECT_EQ(gone(), kHosts);
  // One of them may happen to have the same number as the other host, but hardly all.
  std::size_t of_others = 0;
  for (std::size_t i = 0; i < kHosts; ++i) of_others += everybody_[i]->gone() ? 1 : 0;
  EXPECT_LT(of_others, kHosts);
}

// Who has called most is not who lets ends pile up: what stands for its calls is no end, and costs none of its own.
TEST_F(StrangersOfAnAdapter, TakeThePlaceOfNoEndOfTheHostThatCallsMost) {
  constexpr std::size_t kEndsOfCaller = 3;
  const auto caller = host(1), other = host(2);
  add(kShare - kEndsOfCaller, Stage::lingering, other);
  add(kEndsOfCaller, Stage::lingering, caller);
  add(kShare - 1, Stage::asking, caller);
  let_one_in();
  EXPECT_EQ(gone(), 1u);
  EXPECT_TRUE(everybody_.front()->gone());
}

// What is left to the program and its connections does not depend on how many adapters it has open.
TEST_F(StrangersOfAnAdapter, ShareThePlacesOfEndsWithOtherAdapters) {
  add_to(of_another_, kShare / 2 - 1, Stage::lingering);
  add(kShare / 2, Stage::lingering);
  EXPECT_TRUE(strangers_.may_come(Strangers::By::tcp));
  add_to(of_another_, 1, Stage::lingering);
  EXPECT_FALSE(strangers_.may_come(Strangers::By::tcp));
  EXPECT_FALSE(of_another_.may_come(Strangers::By::tcp));
  let_one_in();
  EXPECT_EQ(gone(), 1u);
  for (std::size_t i = 0; i < kShare / 2 - 1; ++i) EXPECT_FALSE(everybody_[i]->gone()) << "of the other adapter";
}

// RFC 5042, section 6: who lets ends pile up cuts short his own, not the end of a peer that has long been taking what
// was sent to it.
TEST_F(StrangersOfAnAdapter, AreCutShortForEndsOfTheHostThatHasTheMost) {
  constexpr std::size_t kHonest = 3;
  for (std::uint8_t i = 1; i <= kHonest; ++i) add(1, Stage::lingering, host(i));
  add(budget::kLingeringPeers - kHonest, Stage::lingering, host(kHonest + 1));
  strangers_.one_lingers();
  EXPECT_EQ(gone(), 0u);
  constexpr std::size_t kMore = 5;
  for (std::size_t i = 0; i < kMore; ++i) {
    add(1, Stage::lingering, host(kHonest + 1));
    strangers_.one_lingers();
  }
  // The oldest of that host; one of the others may happen to have the same number as it, but hardly all.
  EXPECT_EQ(gone(), kMore);
  std::size_t of_others = 0;
  for (std::size_t i = 0; i < kHonest; ++i) of_others += everybody_[i]->gone() ? 1 : 0;
  EXPECT_LT(of_others, kHonest);
  EXPECT_TRUE(everybody_[kHonest]->gone());
  EXPECT_FALSE(everybody_.back()->gone());
}

// A server that the program calls again and again keeps the sockets of connections that are over for as long as it
// likes. The program's next call takes the place of one, as one who calls it would.
TEST_F(StrangersOfAnAdapter, TakeThePlaceOfOldEndsForCallsOfTheProgram) {
  const auto begun = std::chrono::steady_clock::now();
  add(kShare - 1, Stage::lingering);
  strangers_.one_calls();
  add(1, Stage::lingering);
  strangers_.one_calls();
  const bool soon = std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(900);
  EXPECT_TRUE(gone() == 0 || !soon) << "of those that have just begun";
  EXPECT_TRUE(test::eventually([&] {
    strangers_.one_calls();
    return everybody_.front()->gone();
  }));
  EXPECT_EQ(gone(), 1u);
  strangers_.one_calls();
  EXPECT_EQ(gone(), 1u) << "there is room now";
}

// Not of one that has just begun, unless they have twice their share: the program and its calls come first.
TEST_F(StrangersOfAnAdapter, TakeThePlaceOfNewEndsForCallsWhereTheyAreVeryMany) {
  add(2 * kShare - 1, Stage::lingering);
  strangers_.one_calls();
  EXPECT_EQ(gone(), 0u);
  add(1, Stage::lingering);
  strangers_.one_calls();
  EXPECT_EQ(gone(), 1u);
  EXPECT_TRUE(everybody_.front()->gone());
}

// Those of one adapter belong to its own engine, and may last: no other has its callers wait for them.
TEST_F(StrangersOfAnAdapter, OfWhichFewPartAreLetInHoweverManyPartElsewhere) {
  add_to(of_another_, kShare, Stage::lingering);
  add(kShare / 4 - 1, Stage::lingering);
  EXPECT_FALSE(of_another_.may_come(Strangers::By::tcp));
  EXPECT_TRUE(strangers_.may_come(Strangers::By::tcp));
  strangers_.one_has_come(Strangers::By::tcp);
  EXPECT_EQ(gone(), 0u);
  add(1, Stage::lingering);
  EXPECT_FALSE(strangers_.may_come(Strangers::By::tcp));
}

}  // namespace
}  // namespace anydat::nic::soft
