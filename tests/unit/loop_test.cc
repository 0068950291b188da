// SPDX-License-Identifier: BSD-3-Clause
#include "nic/loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <vector>

namespace anydat::nic {
namespace {

constexpr os::Nanoseconds kPast = 1;
constexpr os::Nanoseconds kHour = 3'600 * os::kNsPerSecond;

os::UniqueFd make_eventfd() {
  return os::UniqueFd::of([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
}
void ring(const os::UniqueFd& fd) {
  ASSERT_EQ(eventfd_write(fd.get(), 1), 0);
}
bool readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}
// The number of what is in the set alone.
int only_watched(int set) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(set));
  for (std::string word; info >> word;) {
    if (int number = -1; word == "tfd:" && info >> number) return number;
  }
  return -1;
}

struct Source final : PollSource {
  explicit Source(std::function<bool()> what) : action(std::move(what)) {}
  bool poll() override { return action(); }
  void arm() override { armed = true; }
  void disarm() override { armed = false; }
  std::function<bool()> action;
  bool armed = false;
};

struct Handler final : FdHandler {
  explicit Handler(std::function<void(std::uint32_t)> what) : action(std::move(what)) {}
  void ready(std::uint32_t events) override { action(events); }
  std::function<void(std::uint32_t)> action;
};

class LoopTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(poller.open());
    loop.start(poller);
  }
  std::unique_ptr<Timer> timer(int number) {
    return std::make_unique<Timer>([this, number] { ran.push_back(number); });
  }
  os::Poller poller;
  Loop loop;
  std::vector<int> ran;
};

// ---- sources

TEST_F(LoopTest, SourcesAreLookedAtUntilOneHasSomething) {
  int left = 3;
  Source slow([&] { return --left == 0; });
  int looks = 0;
  Source idle([&] { return ++looks, false; });
  loop.add_source(slow);
  loop.add_source(idle);
  EXPECT_FALSE(loop.poll_sources(2));
  EXPECT_EQ(looks, 2);
  EXPECT_TRUE(loop.poll_sources(5));
  EXPECT_EQ(looks, 3);  // the round is ended
  EXPECT_EQ(loop.polls().get(), 3u);
}

TEST_F(LoopTest, ASourceMayRemoveItselfAndAddAnother) {
  Source other([&] { return ran.push_back(2), true; });
  Source once([&] {
    ran.push_back(1);
    loop.remove_source(once);
    loop.add_source(other);
    return true;
  });
  loop.add_source(once);
  EXPECT_TRUE(loop.poll_sources(1));
  EXPECT_TRUE(loop.poll_sources(1));
  EXPECT_EQ(ran.front(), 1);
  EXPECT_EQ(ran.back(), 2);
  EXPECT_EQ(std::ranges::count(ran, 1), 1);
}

TEST_F(LoopTest, ASourceWithoutMemoryDoesNotKeepTheOthersFromTheirs) {
  Source poor([]() -> bool { throw std::bad_alloc(); });
  Source good([&] { return ran.push_back(1), true; });
  loop.add_source(poor);
  loop.add_source(good);
  EXPECT_TRUE(loop.poll_sources(1));
  EXPECT_EQ(ran, std::vector{1});
}

TEST_F(LoopTest, WhoComesWhileAllAreArmedIsArmedToo) {
  Source first([] { return false; }), second([] { return false; });
  loop.add_source(first);
  loop.arm();
  loop.add_source(second);
  EXPECT_TRUE(first.armed);
  EXPECT_TRUE(second.armed);
  EXPECT_TRUE(loop.armed());
  loop.disarm();
  EXPECT_FALSE(first.armed);
  EXPECT_FALSE(second.armed);
  EXPECT_FALSE(loop.armed());
}

TEST_F(LoopTest, ASourceThatIsRemovedWhileAllAreArmedIsNotLeftSo) {
  Source first([] { return false; }), never([] { return false; });
  loop.add_source(first);
  loop.arm();
  loop.remove_source(first);
  EXPECT_FALSE(first.armed);
  never.armed = true;
  loop.remove_source(never);  // which is none of its sources
  EXPECT_TRUE(never.armed);
}

// ---- timers

TEST_F(LoopTest, TimersRunInTheirOrderWhenTheirTimeHasCome) {
  const auto one = timer(1), two = timer(2), later = timer(3);
  loop.timers().set(*later, os::now_ns() + kHour);
  loop.timers().set(*two, kPast + 1);
  loop.timers().set(*one, kPast);
  EXPECT_EQ(loop.timers().next(), kPast);
  EXPECT_TRUE(loop.poll_by_time());
  EXPECT_EQ(ran, (std::vector{1, 2}));
  EXPECT_FALSE(one->pending());
  EXPECT_TRUE(later->pending());
  EXPECT_FALSE(loop.poll_by_time());
  loop.timers().cancel(*later);
  EXPECT_EQ(loop.timers().next(), os::kForever);
}

TEST_F(LoopTest, SettingATimerTellsWhetherItIsTheNext) {
  const os::Nanoseconds now = os::now_ns();
  const auto one = timer(1), two = timer(2);
  EXPECT_TRUE(loop.timers().set(*one, now + 2 * kHour));
  EXPECT_TRUE(loop.timers().set(*two, now + kHour));
  EXPECT_FALSE(loop.timers().set(*one, now + 3 * kHour));
  EXPECT_EQ(loop.timers().next(), now + kHour);
  loop.timers().cancel(*two);
  EXPECT_EQ(loop.timers().next(), now + 3 * kHour);
  loop.timers().cancel(*one);
}

TEST_F(LoopTest, ATimerMaySetItselfAgainAndCancelAnother) {
  const auto never = timer(9);
  Timer again([&] {
    ran.push_back(1);
    loop.timers().cancel(*never);
    loop.timers().set(again, os::now_ns() + kHour);
  });
  loop.timers().set(again, kPast);
  loop.timers().set(*never, kPast + 1);
  EXPECT_TRUE(loop.poll_by_time());
  EXPECT_EQ(ran, std::vector{1});
  EXPECT_TRUE(again.pending());
  EXPECT_FALSE(never->pending());
  loop.timers().cancel(again);
}

// ---- descriptors

TEST_F(LoopTest, ADescriptorCallsItsHandlerAsLongAsItIsReadable) {
  const os::UniqueFd fd = make_eventfd();
  Handler handler([&](std::uint32_t events) { ran.push_back(static_cast<int>(events)); });
  ASSERT_TRUE(loop.watch(fd.get(), EPOLLIN, handler));
  EXPECT_FALSE(loop.poll_by_time());
  ring(fd);
  EXPECT_TRUE(readable(poller.descriptor()));
  EXPECT_TRUE(loop.poll_by_time());
  EXPECT_TRUE(loop.poll_by_time());
  EXPECT_EQ(ran, (std::vector<int>{EPOLLIN, EPOLLIN}));
  loop.change_watch(fd.get(), 0, handler);
  EXPECT_FALSE(loop.poll_by_time());
  loop.unwatch(fd.get(), handler);
}

TEST_F(LoopTest, AHandlerThatIsUnwatchedByAnotherIsNotCalled) {
  const os::UniqueFd first = make_eventfd(), second = make_eventfd();
  std::unique_ptr<Handler> one, two;
  const auto end_the_other = [&](std::unique_ptr<Handler>& other, const os::UniqueFd& fd) {
    ran.push_back(1);
    loop.unwatch(fd.get(), *other);
    other.reset();
  };
  one = std::make_unique<Handler>([&](std::uint32_t) { end_the_other(two, second); });
  two = std::make_unique<Handler>([&](std::uint32_t) { end_the_other(one, first); });
  ASSERT_TRUE(loop.watch(first.get(), EPOLLIN, *one));
  ASSERT_TRUE(loop.watch(second.get(), EPOLLIN, *two));
  ring(first);
  ring(second);
  EXPECT_TRUE(loop.poll_by_time());
  EXPECT_EQ(ran.size(), 1u);
  if (one) loop.unwatch(first.get(), *one);
  if (two) loop.unwatch(second.get(), *two);
}

TEST_F(LoopTest, WhatEndsSleepsIsLeftToWhoeverSleeps) {
  EXPECT_TRUE(poller.ring());
  EXPECT_TRUE(readable(poller.descriptor()));
  EXPECT_FALSE(loop.poll_by_time());
  EXPECT_TRUE(readable(poller.descriptor()));
  EXPECT_TRUE(poller.silence());
  EXPECT_FALSE(readable(poller.descriptor()));
}

// As it is for a program that closes all descriptors and has others by the same numbers.
TEST_F(LoopTest, ASetOfDescriptorsThatIsAnothersIsNotLookedAt) {
  const os::UniqueFd fd = make_eventfd();
  ring(fd);
  Handler ours([](std::uint32_t) { ADD_FAILURE() << "called for a descriptor of another's"; });
  ASSERT_TRUE(loop.watch(fd.get(), EPOLLIN, ours));
  const int another = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 8;  // no address of anything
  ASSERT_EQ(::epoll_ctl(another, EPOLL_CTL_ADD, fd.get(), &event), 0);
  ASSERT_EQ(::dup3(another, poller.descriptor(), O_CLOEXEC), poller.descriptor());
  EXPECT_FALSE(loop.poll_by_time());
  EXPECT_TRUE(loop.lost());
  EXPECT_FALSE(poller.is_ours());
  EXPECT_FALSE(poller.ring());
  // Nor is it changed by what is given up now, whose numbers may be in it for the program's own files.
  loop.change_watch(fd.get(), 0, ours);
  loop.unwatch(fd.get(), ours);
  EXPECT_EQ(::epoll_wait(another, &event, 1, 0), 1) << "the other set has been changed";
  ::close(another);
  ::close(poller.descriptor());
}

// A second copy of the library takes the number of our set, and another one for its bell.
TEST_F(LoopTest, ASetThatIsAnothersIsNotRung) {
  const os::UniqueFd set = os::UniqueFd::of([] { return ::epoll_create1(EPOLL_CLOEXEC); });
  const os::UniqueFd bell_of_set = make_eventfd();
  ASSERT_EQ(::dup3(set.get(), poller.descriptor(), O_CLOEXEC), poller.descriptor());
  epoll_event event{};
  ASSERT_EQ(::epoll_ctl(set.get(), EPOLL_CTL_ADD, bell_of_set.get(), &event), 0);
  EXPECT_FALSE(poller.ring());
  EXPECT_FALSE(readable(set.get())) << "the other's bell rings";
  EXPECT_FALSE(poller.silence());
  ::close(poller.descriptor());
}

TEST_F(LoopTest, BellsHaveNumbersByChance) {
  std::set<int> numbers;
  for (int i = 0; i < 8; ++i) {
    os::Poller another;
    ASSERT_TRUE(another.open());
    numbers.insert(only_watched(another.descriptor()));
  }
  EXPECT_GT(numbers.size(), 1u);
}

// The numbers of both, and the one has the other in it.
TEST_F(LoopTest, ASetAndABellThatAreAnothersAreNotChanged) {
  const os::UniqueFd fd = make_eventfd();
  Handler ours([](std::uint32_t) {});
  const int bell = only_watched(poller.descriptor());
  ASSERT_TRUE(loop.watch(fd.get(), EPOLLIN, ours));
  const os::UniqueFd set = os::UniqueFd::of([] { return ::epoll_create1(EPOLL_CLOEXEC); });
  const os::UniqueFd bell_of_set = make_eventfd();
  ASSERT_EQ(::dup3(set.get(), poller.descriptor(), O_CLOEXEC), poller.descriptor());
  ASSERT_EQ(::dup3(bell_of_set.get(), bell, O_CLOEXEC), bell);
  epoll_event event{};
  ASSERT_EQ(::epoll_ctl(set.get(), EPOLL_CTL_ADD, bell, &event), 0);
  event.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(set.get(), EPOLL_CTL_ADD, fd.get(), &event), 0);
  EXPECT_FALSE(poller.is_ours());
  loop.change_watch(fd.get(), 0, ours);
  loop.unwatch(fd.get(), ours);
  ring(fd);
  EXPECT_TRUE(readable(set.get())) << "the other set has been changed";
  EXPECT_FALSE(loop.watch(fd.get(), EPOLLIN, ours));
  ::close(poller.descriptor());
  ::close(bell);
}

TEST_F(LoopTest, ADescriptorThatCannotBeWatchedIsRefused) {
  Handler handler([](std::uint32_t) {});
  EXPECT_FALSE(loop.watch(-1, EPOLLIN, handler));
}

}  // namespace
}  // namespace anydat::nic
