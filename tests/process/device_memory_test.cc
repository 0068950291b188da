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
#include <cstdint>
#include <optional>
#include <span>

#include "base/unique_fd.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

class DeviceMemory : public testing::TestWithParam<Wire> {
 protected:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kBytes = std::size_t{32} << 20;  // of several times what is brought in within a moment
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
    ring_ = ::mmap(nullptr, kPage + kBytes, PROT_READ, MAP_SHARED, event_.get(), 0);
    if (ring_ == MAP_FAILED) GTEST_SKIP() << "no ring of events";
    memory_ = {static_cast<std::byte*>(ring_) + kPage, kBytes};  // behind a page that is the kernel's
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
    if (ring_ != MAP_FAILED) ::munmap(ring_, kPage + kBytes);
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

INSTANTIATE_TEST_SUITE_P(Wires, DeviceMemory, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
