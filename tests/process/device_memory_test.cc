// SPDX-License-Identifier: BSD-3-Clause
// Memory of which the kernel never tells that it is there, as it does not of that of a device. The ring of an event of
// perf_event_open(2) is such memory on newer kernels.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "absent_memory.h"
#include "base/unique_fd.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

class DeviceMemory : public testing::TestWithParam<Wire> {
 protected:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kBytes = std::size_t{32} << 20;  // of several times what is brought in within a moment
  static constexpr std::size_t kBehind = 256 * kPage;
  static constexpr auto kReadable =
      static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG);

  void SetUp() override {
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_DUMMY;
    wanted.disabled = 1;
    event_.reset(static_cast<int>(::syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event_) GTEST_SKIP() << "no events";
    // With memory of the usual kind behind it.
    ring_ = ::mmap(nullptr, kPage + kBytes + kBehind, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(ring_, MAP_FAILED);
    if (::mmap(ring_, kPage + kBytes, PROT_READ, MAP_SHARED | MAP_FIXED, event_.get(), 0) == MAP_FAILED)
      GTEST_SKIP() << "no ring of events";
    memory_ = {static_cast<std::byte*>(ring_) + kPage, kBytes};  // behind a page that is the kernel's
    behind_ = {memory_.data() + kBytes, kBehind};
    ::madvise(behind_.data(), kBehind, MADV_NOHUGEPAGE);
    std::fill(behind_.begin(), behind_.end(), std::byte{7});
    if (is_told_of()) GTEST_SKIP() << "this kernel tells that it is there";
    here_.emplace(GetParam());
    there_.emplace(GetParam());
    device_.emplace(here_->ia, here_->pz, memory_, kReadable);
    sink_.emplace(there_->ia, there_->pz, kBytes);
    std::fill(sink_->bytes().begin(), sink_->bytes().end(), std::byte{0xff});
    DAT_EP_ATTR attr = default_ep_attr();
    attr.max_message_size = attr.max_rdma_size = kBytes;
    connection_.emplace(Connection{Ep(*here_, attr), Ep(*there_, attr)});
    connect_pair(*here_, connection_->server.get(), connection_->client.get());
  }
  void TearDown() override {
    connection_.reset();
    device_.reset();
    if (ring_ != MAP_FAILED) ::munmap(ring_, kPage + kBytes + kBehind);
  }
  // Of its first page, which is there.
  bool is_told_of() const {
    const std::byte first = *const_cast<const volatile std::byte*>(memory_.data());
    EXPECT_EQ(first, std::byte{0});
    const base::UniqueFd map(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    std::uint64_t entry = 0;
    const auto page = reinterpret_cast<std::uintptr_t>(memory_.data()) / kPage;
    if (::pread(map.get(), &entry, sizeof entry, static_cast<off_t>(page * sizeof entry)) != sizeof entry) return true;
    return (entry & std::uint64_t{1} << 63) != 0;
  }
  bool has_arrived() const {
    return std::ranges::all_of(sink_->bytes(), [](std::byte byte) { return byte == std::byte{0}; });
  }

  base::UniqueFd event_;
  void* ring_ = MAP_FAILED;
  std::span<std::byte> memory_;
  std::span<std::byte> behind_;
  std::optional<Side> here_;
  std::optional<Side> there_;
  std::optional<Lmr> device_;
  std::optional<Lmr> sink_;
  std::optional<Connection> connection_;
};

// In the order of the segments, of which the first is not there any more, as far as anybody is told, when the second
// has been brought in.
TEST_P(DeviceMemory, IsSentInSeveralSegments) {
  DAT_LMR_TRIPLET target = sink_->triplet();
  require(dat_ep_post_recv(connection_->client.get(), 1, &target, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  std::array<DAT_LMR_TRIPLET, 2> parts{device_->triplet(kBytes / 2, kBytes / 2), device_->triplet(0, kBytes / 2)};
  require(dat_ep_post_send(connection_->server.get(), 2, parts.data(), {}, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_send");
  expect_completion(there_->recv.get());
  expect_completion(here_->request.get());
  EXPECT_TRUE(has_arrived());
}

TEST_P(DeviceMemory, IsReadByThePeer) {
  DAT_LMR_TRIPLET target = sink_->triplet();
  const DAT_RMR_TRIPLET source = device_->remote(0, kBytes);
  require(dat_ep_post_rdma_read(connection_->client.get(), 1, &target, {}, &source, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_rdma_read");
  expect_completion(there_->request.get());
  EXPECT_TRUE(has_arrived());
}

// What has been brought in with it is no such memory.
TEST_P(DeviceMemory, WhatLiesBehindItIsWaitedFor) {
  if (!AbsentMemory::possible()) GTEST_SKIP() << "this system makes no memory absent for the kernel (userfaultfd)";
  constexpr std::size_t kOfRing = 4 * kPage;
  const Lmr both(here_->ia, here_->pz, std::span(behind_.data() - kOfRing, kOfRing + kBehind), kReadable);
  const auto send = [&](std::size_t offset, std::size_t bytes) {
    DAT_LMR_TRIPLET target = sink_->triplet(0, bytes);
    require(dat_ep_post_recv(connection_->client.get(), 1, &target, {}, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_recv");
    DAT_LMR_TRIPLET source = both.triplet(offset, bytes);
    require(dat_ep_post_send(connection_->server.get(), 1, &source, {}, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_send");
  };
  send(0, kOfRing + 60 * kPage);
  expect_completion(there_->recv.get());
  expect_completion(here_->request.get());
  AbsentMemory absent(behind_.subspan(20 * kPage, kPage));
  // What has been seen in memory is taken to be there for some milliseconds.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  send(kOfRing + 20 * kPage, 64);
  expect_no_event(here_->request.get());
  absent.fill(std::vector<std::byte>(kPage, std::byte{7}));
  expect_completion(there_->recv.get());
  expect_completion(here_->request.get());
}

INSTANTIATE_TEST_SUITE_P(Wires, DeviceMemory, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
