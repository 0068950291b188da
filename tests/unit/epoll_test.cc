// SPDX-License-Identifier: BSD-3-Clause
#include "os/epoll.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "os/unique_fd.h"

namespace anydat::os {
namespace {

os::UniqueFd make_ready() {
  return os::UniqueFd::of([] { return ::eventfd(1, EFD_CLOEXEC); });
}

TEST(Epoll, BringsTheAddressOfWhatIsReady) {
  Epoll set;
  ASSERT_TRUE(set.open());
  const os::UniqueFd fd = make_ready();
  int word = 0;
  ASSERT_TRUE(set.watch(fd.get(), EPOLLIN, &word));
  std::array<epoll_event, 4> events;
  ASSERT_EQ(set.ready(events), 1);
  EXPECT_EQ(events[0].data.ptr, &word);
  ASSERT_TRUE(set.change(fd.get(), EPOLLIN, nullptr));
  ASSERT_EQ(set.ready(events), 1);
  EXPECT_EQ(events[0].data.ptr, nullptr);
  set.forget(fd.get());
  EXPECT_EQ(set.ready(events), 0);
}

// An address that the allocator has tagged comes back as it is, and none of the set is taken for another's.
TEST(Epoll, AnAddressMayHaveBitsOfItsOwnAboveItsFortyEight) {
  Epoll set;
  ASSERT_TRUE(set.open());
  EXPECT_TRUE(set.tells_sets_apart());
  const os::UniqueFd fd = make_ready();
  const std::uintptr_t tagged = std::uintptr_t{0xA5} << 56 | 0x1000;
  ASSERT_TRUE(set.watch(fd.get(), EPOLLIN, reinterpret_cast<void*>(tagged)));
  EXPECT_FALSE(set.tells_sets_apart());
  std::array<epoll_event, 4> events;
  ASSERT_EQ(set.ready(events), 1);
  EXPECT_EQ(events[0].data.u64, tagged);
}

// As it is for a program that closes all descriptors and has a set of its own by the same number: whatever it has put
// in, an address or a number, nothing takes it for one of ours.
TEST(Epoll, WhatASetOfTheProgramsBringsIsToldApart) {
  Epoll set;
  ASSERT_TRUE(set.open());
  const os::UniqueFd fd = make_ready();
  int word = 0;
  ASSERT_TRUE(set.watch(fd.get(), EPOLLIN, &word));
  const int another = ::epoll_create1(EPOLL_CLOEXEC);
  ASSERT_EQ(::dup3(another, set.descriptor(), O_CLOEXEC), set.descriptor());
  std::array<epoll_event, 4> events;
  EXPECT_EQ(set.ready(events), 0) << "nothing is ready in it";
  for (const std::uint64_t data :
       {std::uint64_t{0}, std::uint64_t{8}, static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&word))}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = data;
    ASSERT_EQ(::epoll_ctl(another, EPOLL_CTL_ADD, fd.get(), &event), 0);
    EXPECT_EQ(set.ready(events), Epoll::kSetOfAnother) << data;
    ASSERT_EQ(::epoll_ctl(another, EPOLL_CTL_DEL, fd.get(), nullptr), 0);
  }
  ::close(another);
  ::close(set.descriptor());
}

}  // namespace
}  // namespace anydat::os
