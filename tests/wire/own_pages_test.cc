// SPDX-License-Identifier: BSD-3-Clause
// What a connection wishes of its own memory: how often the kernel is asked while it is awaited.
#include "nic/soft/own_pages.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <optional>
#include <span>

#include "process/absent_memory.h"
#include "wire/seam.h"

namespace anydat::test {
namespace {

using nic::soft::OwnPages;

constexpr std::uint64_t kLater = 1 << 21;  // of Engine::ticks(): more than a moment

class Wish final : public OwnPages::User {
 public:
  void wants_pages() override { ++wanted; }
  void pages_brought(const OwnPages&, const OwnPages::Brought& news) override {
    there = news.there;
    brought = true;
  }
  int wanted = 0;
  std::atomic<bool> brought = false;
  std::atomic<bool> there = false;
};

TEST(OwnPagesTest, TheKernelIsAskedOnceInAMomentWhileAPageIsAwaited) {
  if (!AbsentMemory::possible()) GTEST_SKIP() << "this system makes no memory absent for the kernel (userfaultfd)";
  SeamNic nic(seam_wires().front());
  void* const pages = ::mmap(nullptr, 2 * os::kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  const std::span<std::byte> memory(static_cast<std::byte*>(pages), 2 * os::kPageBytes);
  memory[0] = std::byte{1};  // this page stays
  const std::array segments{nic::Segment{0, 0, reinterpret_cast<std::uintptr_t>(pages), 2 * os::kPageBytes}};
  std::optional<AbsentMemory> absent(memory.subspan(os::kPageBytes));
  {
    Wish wish;
    std::optional<OwnPages> own;
    nic.held([&] { own.emplace(*nic, wish); });
    const std::uint64_t now = nic->engine().ticks();
    EXPECT_FALSE(own->there(segments, {0, 2 * os::kPageBytes}, 2 * os::kPageBytes, true, now));
    EXPECT_EQ(wish.wanted, 1);
    // It has come, but that was found out a moment ago.
    absent->fill(std::array<std::byte, os::kPageBytes>{});
    EXPECT_FALSE(own->there(segments, {0, 2 * os::kPageBytes}, 2 * os::kPageBytes, true, now));
    EXPECT_FALSE(own->there(segments, {os::kPageBytes, 8}, 8, true, now));
    EXPECT_TRUE(own->there(segments, {0, os::kPageBytes}, os::kPageBytes, true, now));  // which is not the one
    EXPECT_TRUE(own->there(segments, {0, 2 * os::kPageBytes}, 2 * os::kPageBytes, true, now + kLater));
    // And when it has been brought, what was found out before does not count any more.
    nic.held([&] { own->bring(); });
    ASSERT_TRUE(eventually([&] { return nic.held([&] { return wish.brought.load(); }); }));
    EXPECT_TRUE(wish.there);
    EXPECT_TRUE(own->there(segments, {0, 2 * os::kPageBytes}, 2 * os::kPageBytes, true, now));
    EXPECT_EQ(wish.wanted, 1);
    nic.held([&] { own.reset(); });
  }
  absent.reset();
  ::munmap(pages, 2 * os::kPageBytes);
}

}  // namespace
}  // namespace anydat::test
