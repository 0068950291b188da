// SPDX-License-Identifier: BSD-3-Clause
// Which pages are in memory, and bringing them there.
#include "os/page_map.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "nic/soft/resident_pages.h"
#include "os/clock.h"

namespace anydat {
namespace {

constexpr std::size_t kPages = 600;  // more than are asked for at once
constexpr std::size_t kBytes = kPages * os::kPageBytes;

class Memory {
 public:
  Memory()
      : pages_(static_cast<std::byte*>(
            ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    ::madvise(pages_, kBytes, MADV_NOHUGEPAGE);
  }
  ~Memory() { ::munmap(pages_, kBytes); }
  std::byte* at(std::size_t page) const { return pages_ + page * os::kPageBytes; }
  std::uint64_t address(std::size_t page) const { return reinterpret_cast<std::uintptr_t>(at(page)); }

 private:
  std::byte* pages_;
};

enum class Way : std::uint8_t { scan, entries, residency };

class PageMapTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (map_.open(0) != 0) GTEST_SKIP() << "the kernel tells nothing";
    if (GetParam() == Way::entries) map_.look_by_entries();
    if (GetParam() == Way::residency) map_.look_by_residency();
  }
  // The pages from the one with that number on that are told to be there.
  std::optional<std::uint64_t> there(std::size_t page, std::uint64_t length, bool to_write = false,
                                     std::uint64_t before = 0) const {
    const auto until = map_.resident_until(memory_.address(page) - before, length, to_write);
    if (!until) return std::nullopt;
    return (*until - (memory_.address(page) - before) / os::kPageBytes * os::kPageBytes) / os::kPageBytes;
  }

  os::PageMap map_;
  Memory memory_;
};

// dat_evd_wait and dat_cno_wait alone are cancellation points, and posts look at pages.
TEST_P(PageMapTest, IsNoCancellationPoint) {
  bool came_back = false;
  std::thread asker([&] {
    ::pthread_cancel(::pthread_self());  // as soon as there is such a point
    EXPECT_TRUE(there(0, kBytes));
    came_back = true;
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  });
  asker.join();
  EXPECT_TRUE(came_back);
}

TEST_P(PageMapTest, TellsPagesThatHaveBeenTouched) {
  EXPECT_EQ(there(0, 1), 0);
  std::memset(memory_.at(10), 1, 500 * os::kPageBytes);
  EXPECT_EQ(there(10, 500 * os::kPageBytes, true), 500);
  EXPECT_EQ(there(10, 2, false, 1), 0);
  EXPECT_EQ(there(509, os::kPageBytes), 1);
  EXPECT_EQ(there(509, os::kPageBytes + 1), 1);
  EXPECT_EQ(there(20, 0), 0);
  ::madvise(memory_.at(300), os::kPageBytes, MADV_DONTNEED);
  EXPECT_EQ(there(10, 500 * os::kPageBytes), 290);
  EXPECT_EQ(there(301, kBytes), 209);
}

TEST_P(PageMapTest, TellsHoles) {
  std::memset(memory_.at(0), 1, 4 * os::kPageBytes);
  ::munmap(memory_.at(1), os::kPageBytes);
  EXPECT_EQ(there(0, os::kPageBytes), 1);
  EXPECT_EQ(there(1, os::kPageBytes), 0);
  EXPECT_EQ(there(0, 3 * os::kPageBytes), 1);
  EXPECT_EQ(there(1, 2 * os::kPageBytes, true), 0);
}

TEST(AccessMapTest, TellsWhatMayBeDone) {
  os::AccessMap map;
  map.open();
  const Memory memory;
  // How many bytes of these pages.
  const auto allowed = [&](int page, int count, bool to_write) {
    return map.allowed_until(memory.address(page), static_cast<std::uint64_t>(count) * os::kPageBytes, to_write) -
           memory.address(page);
  };
  EXPECT_EQ(allowed(0, 3, true), 3 * os::kPageBytes);
  Memory gone;
  ::munmap(gone.at(0), kBytes);
  if (map.allowed_until(gone.address(3), 1, false) != gone.address(3)) GTEST_SKIP() << "the kernel does not tell";
  ::mprotect(memory.at(1), os::kPageBytes, PROT_READ);
  EXPECT_EQ(allowed(1, 1, true), 0u);
  EXPECT_EQ(allowed(0, 3, false), 3 * os::kPageBytes);
  EXPECT_EQ(allowed(0, 3, true), os::kPageBytes);
  EXPECT_EQ(allowed(2, 1, true), os::kPageBytes);
  ::mprotect(memory.at(1), os::kPageBytes, PROT_NONE);
  EXPECT_EQ(map.allowed_until(memory.address(1) + 8, 8, false), memory.address(1) + 8);
}

TEST_P(PageMapTest, FaultingInMakesThemResident) {
  EXPECT_TRUE(os::fault_in(memory_.address(1) + 17, 2 * os::kPageBytes, true));
  EXPECT_EQ(there(1, 3 * os::kPageBytes, true), 3);
  EXPECT_EQ(there(4, 1), 0);
  EXPECT_TRUE(os::fault_in(memory_.address(5), 1, false));
  EXPECT_EQ(there(5, 1), 1);
}

TEST_P(PageMapTest, NothingCanBeBroughtWhereNothingMayBeRead) {
  ::mprotect(memory_.at(3), os::kPageBytes, PROT_NONE);
  EXPECT_FALSE(os::fault_in(memory_.address(2), 3 * os::kPageBytes, false));
  Memory gone;
  ::munmap(gone.at(0), os::kPageBytes);
  EXPECT_FALSE(os::fault_in(gone.address(0), 1, false));
}

// As on kernels that do not know the advice.
TEST_P(PageMapTest, AccessesBringPagesAndChangeNothing) {
  *memory_.at(1) = std::byte{17};
  ::madvise(memory_.at(2), os::kPageBytes, MADV_DONTNEED);
  EXPECT_TRUE(os::fault_in_by_access(memory_.address(1) + 5, 2 * os::kPageBytes, true));
  EXPECT_EQ(there(1, 3 * os::kPageBytes, true), 3);
  EXPECT_EQ(*memory_.at(1), std::byte{17});
  EXPECT_EQ(*memory_.at(2), std::byte{0});
  ::mprotect(memory_.at(2), os::kPageBytes, PROT_READ);
  EXPECT_TRUE(os::fault_in_by_access(memory_.address(2), 1, false));
  EXPECT_FALSE(os::fault_in_by_access(memory_.address(2), 1, true));
}

INSTANTIATE_TEST_SUITE_P(Ways, PageMapTest, testing::Values(Way::scan, Way::entries, Way::residency),
                         [](const auto& at) {
                           switch (at.param) {
                             case Way::scan:
                               return "ByScan";
                             case Way::entries:
                               return "ByEntries";
                             case Way::residency:
                               return "ByResidency";
                           }
                           return "";
                         });

class ResidentPagesTest : public testing::Test {
 protected:
  using CopiedBy = nic::soft::ResidentPages::CopiedBy;

  void SetUp() override {
    os::PageMap map;
    if (map.open(0) != 0) GTEST_SKIP() << "the kernel tells nothing";
  }

  const std::uint64_t now_ = static_cast<std::uint64_t>(os::now_ns());
  Memory memory_;
  nic::soft::ResidentPages pages_;
};

TEST_F(ResidentPagesTest, RemembersForAMoment) {
  const nic::soft::ResidentPages::Range range{memory_.address(0), 3 * os::kPageBytes};
  EXPECT_FALSE(pages_.are_resident(0, range, true, now_));
  std::memset(memory_.at(0), 1, 3 * os::kPageBytes);
  EXPECT_TRUE(pages_.are_resident(0, range, false, now_));  // though what lies behind is not there
  ::madvise(memory_.at(1), os::kPageBytes, MADV_DONTNEED);
  EXPECT_TRUE(pages_.are_resident(0, range, false, now_));
  EXPECT_FALSE(pages_.are_resident(0, range, true, now_));  // seen for reading only
  const std::uint64_t later = now_ + 3'000'000;
  EXPECT_TRUE(pages_.are_resident(0, range, false, later, CopiedBy::kernel));
  EXPECT_FALSE(pages_.are_resident(0, range, false, later));
  EXPECT_FALSE(pages_.are_resident(0, range, false, now_ + 18'000'000, CopiedBy::kernel));
}

// One look is enough for all that it has found, also if there is a hole behind.
TEST_F(ResidentPagesTest, RememberWhatLiesBehindAsFarAsItIsThere) {
  std::memset(memory_.at(0), 1, 100 * os::kPageBytes);
  EXPECT_TRUE(pages_.are_resident(0, {memory_.address(0), 1}, true, now_));
  ::madvise(memory_.at(0), kBytes, MADV_DONTNEED);
  EXPECT_TRUE(pages_.are_resident(0, {memory_.address(1), 99 * os::kPageBytes}, true, now_));
  EXPECT_FALSE(pages_.are_resident(0, {memory_.address(99), os::kPageBytes + 1}, true, now_));
}

// Pages are remembered by runs of 16, but for those of a run that has not been seen as a whole.
TEST_F(ResidentPagesTest, RememberNoPageThatHasNotBeenSeen) {
  std::size_t run = 16;
  while (memory_.address(run) / os::kPageBytes % 16 != 0) ++run;
  const std::size_t first = run + 8, count = 40;  // half a run, two runs, half a run
  std::memset(memory_.at(first), 1, count * os::kPageBytes);
  EXPECT_TRUE(pages_.are_resident(0, {memory_.address(first), count * os::kPageBytes}, true, now_));
  ::madvise(memory_.at(0), kBytes, MADV_DONTNEED);
  EXPECT_TRUE(pages_.are_resident(0, {memory_.address(first), count * os::kPageBytes}, true, now_));
  EXPECT_FALSE(pages_.are_resident(0, {memory_.address(first - 1), 1}, true, now_));
  EXPECT_FALSE(pages_.are_resident(0, {memory_.address(first + count), 1}, true, now_));
}

// What is in memory and may not be written is not held for writing, nor taken for what may be once it has been.
TEST_F(ResidentPagesTest, CallNoPageResidentThatMayNotBeWritten) {
  os::AccessMap access;
  access.open();
  std::memset(memory_.at(0), 1, 8 * os::kPageBytes);
  ::mprotect(memory_.at(2), os::kPageBytes, PROT_READ);
  if (access.allowed_until(memory_.address(2), 1, true) != memory_.address(2))
    GTEST_SKIP() << "the kernel does not tell";
  EXPECT_FALSE(pages_.are_resident(0, {memory_.address(0), 3 * os::kPageBytes}, true, now_));
  EXPECT_TRUE(pages_.are_resident(0, {memory_.address(0), 2 * os::kPageBytes}, true, now_));
  EXPECT_FALSE(pages_.are_resident(0, {memory_.address(2), 1}, true, now_));
  EXPECT_TRUE(pages_.are_resident(0, {memory_.address(0), 8 * os::kPageBytes}, false, now_));
}

// At a glance: what a look has found, and only for as long as it holds.
TEST_F(ResidentPagesTest, AreSeenWhereTheyHaveBeenLookedAt) {
  const std::uint64_t moment = nic::moment_of(now_);
  nic::soft::ResidentPages::Stretch stretch;
  const nic::soft::ResidentPages::Range range{memory_.address(0) + 100, os::kPageBytes};  // of two pages
  EXPECT_FALSE(pages_.seen(range, true, moment, stretch));
  std::memset(memory_.at(0), 1, 100 * os::kPageBytes);
  EXPECT_FALSE(pages_.seen(range, true, moment, stretch));
  ASSERT_TRUE(pages_.are_resident(0, range, true, now_));
  EXPECT_TRUE(pages_.seen(range, true, moment, stretch));
  EXPECT_TRUE(stretch.holds({memory_.address(0), 32 * os::kPageBytes}, moment));
  EXPECT_FALSE(stretch.holds({memory_.address(0), 32 * os::kPageBytes + 1}, moment));
  EXPECT_FALSE(stretch.holds({memory_.address(0) - 1, 2}, moment));
  EXPECT_FALSE(stretch.holds({memory_.address(0), 1}, moment + 1));
  EXPECT_TRUE(pages_.seen({memory_.address(98), 2 * os::kPageBytes}, true, moment, stretch));
  for (const std::uint64_t near : {moment - 1, moment + 15}) EXPECT_TRUE(pages_.seen(range, true, near, stretch));
  for (const std::uint64_t far : {moment - 2, moment + 16, nic::kNoMoment}) {
    EXPECT_FALSE(pages_.seen(range, true, far, stretch));
  }
  EXPECT_FALSE(pages_.seen({memory_.address(99), os::kPageBytes + 1}, true, moment, stretch));
}

// Reading says nothing of writing, but writing of reading.
TEST_F(ResidentPagesTest, AreSeenForReadingAndForWriting) {
  const std::uint64_t moment = nic::moment_of(now_);
  const nic::soft::ResidentPages::Range range{memory_.address(0), 8};
  nic::soft::ResidentPages::Stretch reads, writes;
  std::memset(memory_.at(0), 1, os::kPageBytes);
  ASSERT_TRUE(pages_.are_resident(0, range, false, now_));
  EXPECT_TRUE(pages_.seen(range, false, moment, reads));
  EXPECT_FALSE(pages_.seen(range, true, moment, writes));
  ASSERT_TRUE(pages_.are_resident(0, range, true, now_));
  EXPECT_TRUE(pages_.seen(range, true, moment, writes));
  EXPECT_TRUE(pages_.seen(range, false, moment, reads));
}

// Such as that of a device, which the kernel never calls present.
TEST_F(ResidentPagesTest, AreThereWhereTheyHaveBeenBroughtIn) {
  const nic::soft::ResidentPages::Range range{memory_.address(3) + 8, os::kPageBytes};
  EXPECT_FALSE(pages_.are_resident(0, range, true, now_));
  pages_.note(range, true, nic::moment_of(now_));
  EXPECT_TRUE(pages_.are_resident(0, range, true, now_));
  EXPECT_TRUE(pages_.are_resident(0, range, false, now_));
  EXPECT_FALSE(pages_.are_resident(0, {memory_.address(2), 1}, true, now_));
  EXPECT_FALSE(pages_.are_resident(0, {memory_.address(5), 1}, true, now_));
}

// Two buffers of one run, used in turn, are not looked at each time: what is known of the one stays.
TEST_F(ResidentPagesTest, OfARunStayWhenAnotherIsSeenLater) {
  std::size_t run = 16;
  while (memory_.address(run) / os::kPageBytes % 16 != 0) ++run;
  const nic::soft::ResidentPages::Range one{memory_.address(run + 8), 8}, other{memory_.address(run + 2), 8};
  std::memset(memory_.at(run + 8), 1, os::kPageBytes);
  std::memset(memory_.at(run + 2), 1, os::kPageBytes);
  ASSERT_TRUE(pages_.are_resident(0, one, true, now_, CopiedBy::us_in_short));
  const std::uint64_t later = now_ + 2'200'000;
  ASSERT_TRUE(pages_.are_resident(0, other, true, later, CopiedBy::us_in_short));
  ::madvise(memory_.at(0), kBytes, MADV_DONTNEED);
  EXPECT_TRUE(pages_.are_resident(0, one, true, later, CopiedBy::us_in_short));
  EXPECT_TRUE(pages_.are_resident(0, other, true, later, CopiedBy::us_in_short));
  // All of it is as old as the oldest.
  EXPECT_FALSE(pages_.are_resident(0, other, true, now_ + 17'000'000, CopiedBy::us_in_short));
}

// One look is enough for what lies before, if there is no gap: who uses buffers from the last to the first pays once.
TEST_F(ResidentPagesTest, RememberWhatLiesBefore) {
  std::size_t first = 0;
  while (memory_.address(first) % (1 << 20) != 0) ++first;
  std::memset(memory_.at(first), 1, 100 * os::kPageBytes);
  EXPECT_TRUE(pages_.are_resident(0, {memory_.address(first + 99), 1}, true, now_));
  ::madvise(memory_.at(0), kBytes, MADV_DONTNEED);
  EXPECT_TRUE(pages_.are_resident(0, {memory_.address(first), 100 * os::kPageBytes}, true, now_));
}

// A process is then no longer found by its number.
TEST(FaultInTest, AccessesBringPagesAfterTheFirstThreadHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    std::thread([] {
      std::uint64_t from = 0, to = 0;
      iovec there{&from, sizeof from}, here{&to, sizeof to};
      while (::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) >= 0) std::this_thread::yield();
      Memory memory;
      ::_exit(os::fault_in_by_access(memory.address(0), kBytes, false) ? 0 : 1);
    }).detach();
    ::syscall(SYS_exit, 0);  // this thread alone
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
}

// Descriptors may be short for a moment only.
TEST_F(ResidentPagesTest, AreLookedForAgainOnceThereIsRoomForADescriptor) {
  const nic::soft::ResidentPages::Range range{memory_.address(0), 1};
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(pages_.are_resident(0, range, false, now_));  // nothing is known
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(pages_.are_resident(0, range, false, now_ + os::kNsPerSecond));
}

}  // namespace
}  // namespace anydat
