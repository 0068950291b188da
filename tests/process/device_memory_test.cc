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
#include <string>
#include <thread>
#include <vector>

#include "absent_memory.h"
#include "os/unique_fd.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

// A page that is the kernel's; what events would be told in, all 0; and behind it memory of the usual kind.
class EventRing {
 public:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kBytes = std::size_t{32} << 20;  // of several times what is brought in within a moment
  static constexpr std::size_t kBehind = 256 * kPage;

  explicit EventRing(int protection) {
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_DUMMY;
    wanted.disabled = 1;
    event_.reset(static_cast<int>(::syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event_) throw Skip{"no events"};
    at_ = ::mmap(nullptr, kPage + kBytes + kBehind, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at_ == MAP_FAILED) throw Skip{"no memory"};
    ::madvise(behind().data(), kBehind, MADV_NOHUGEPAGE);
    std::fill(behind().begin(), behind().end(), std::byte{7});
    if (::mmap(at_, kPage + kBytes, protection, MAP_SHARED | MAP_FIXED, event_.get(), 0) == MAP_FAILED) {
      ::munmap(at_, kPage + kBytes + kBehind);
      throw Skip{"no ring of events"};
    }
  }
  ~EventRing() { ::munmap(at_, kPage + kBytes + kBehind); }
  EventRing(const EventRing&) = delete;
  EventRing& operator=(const EventRing&) = delete;
  struct Skip {
    const char* why;
  };

  // Of the kernel's page, what it leaves to others. Can be written, if it is mapped so.
  std::span<std::byte> unused() const { return {static_cast<std::byte*>(at_) + kPage / 2, kPage / 2}; }
  std::span<std::byte> data() const { return {static_cast<std::byte*>(at_) + kPage, kBytes}; }
  std::span<std::byte> behind() const { return {data().data() + kBytes, kBehind}; }

  // Of its first page, which is there.
  bool is_told_of() const {
    const std::byte first = *const_cast<const volatile std::byte*>(data().data());
    EXPECT_EQ(first, std::byte{0});
    const os::UniqueFd map(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    std::uint64_t entry = 0;
    const auto page = reinterpret_cast<std::uintptr_t>(data().data()) / kPage;
    if (::pread(map.get(), &entry, sizeof entry, static_cast<off_t>(page * sizeof entry)) != sizeof entry) return true;
    return (entry & std::uint64_t{1} << 63) != 0;
  }

 private:
  os::UniqueFd event_;
  void* at_ = MAP_FAILED;
};

constexpr auto kRingPrivileges =
    static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG);

class DeviceMemory : public testing::TestWithParam<Wire> {
 protected:
  static constexpr std::size_t kPage = EventRing::kPage;
  static constexpr std::size_t kBytes = EventRing::kBytes;
  static constexpr std::size_t kBehind = EventRing::kBehind;

  void SetUp() override {
    try {
      ring_.emplace(PROT_READ);
    } catch (const EventRing::Skip& skip) {
      GTEST_SKIP() << skip.why;
    }
    memory_ = ring_->data();
    behind_ = ring_->behind();
    if (ring_->is_told_of()) GTEST_SKIP() << "this kernel tells that it is there";
    here_.emplace(GetParam());
    there_.emplace(GetParam());
    device_.emplace(here_->ia, here_->pz, memory_, kRingPrivileges);
    sink_.emplace(there_->ia, there_->pz, kBytes);
    std::fill(sink_->bytes().begin(), sink_->bytes().end(), std::byte{0xff});
    DAT_EP_ATTR attr = default_ep_attr();
    attr.max_message_size = attr.max_rdma_size = kBytes;
    connection_.emplace(Connection{Ep(*here_, attr), Ep(*there_, attr)});
    connect_pair(*here_, connection_->server.get(), connection_->client.get());
  }
  bool has_arrived() const {
    return std::ranges::all_of(sink_->bytes(), [](std::byte byte) { return byte == std::byte{0}; });
  }

  std::optional<EventRing> ring_;
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
  const Lmr both(here_->ia, here_->pz, std::span(behind_.data() - kOfRing, kOfRing + kBehind), kRingPrivileges);
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

// ---- of another process

void tell_place(LineChannel& channel, const DAT_RMR_TRIPLET& remote) {
  channel.say(std::to_string(remote.rmr_context));
  channel.say(std::to_string(remote.target_address));
}

// Says its service point and where its memory is, and then what has been written there.
void play_device_owner(RoleContext& context) {
  LineChannel& parent = context.parent;
  try {
    const EventRing ring(PROT_READ | PROT_WRITE);
    if (ring.is_told_of()) throw EventRing::Skip{"this kernel tells that it is there"};
    parent.say("here");
    Side side(context.wire);
    const Lmr source(side.ia, side.pz, ring.data(), kRingPrivileges);
    const Lmr target(side.ia, side.pz, ring.unused());
    DAT_EP_ATTR attr = default_ep_attr();
    attr.max_rdma_size = EventRing::kBytes;
    const Ep ep(side, attr);
    parent.say(std::to_string(side.listen()));
    tell_place(parent, source.remote(0, EventRing::kBytes));
    tell_place(parent, target.remote(0, EventRing::kPage / 2));
    const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    for (std::string order = parent.hear(); order == "compare"; order = parent.hear()) {
      const std::byte wanted{static_cast<unsigned char>(std::stoi(parent.hear()))};
      const bool all = std::ranges::all_of(ring.unused(), [wanted](std::byte byte) { return byte == wanted; });
      parent.say(all ? "equal" : "different");
    }
  } catch (const EventRing::Skip& skip) {
    parent.say(skip.why);
  }
}

const Role kDeviceOwner("device_owner", play_device_owner);

DAT_RMR_TRIPLET hear_place(LineChannel& channel, std::size_t length) {
  DAT_RMR_TRIPLET place{};
  place.rmr_context = static_cast<DAT_RMR_CONTEXT>(std::stoul(channel.hear()));
  place.target_address = std::stoull(channel.hear());
  place.segment_length = length;
  return place;
}

class DeviceMemoryOfAnother : public testing::TestWithParam<Wire> {
 protected:
  static constexpr std::size_t kPage = EventRing::kPage;
  static constexpr std::size_t kBytes = EventRing::kBytes;

  void SetUp() override {
    if (const std::string answer = owner_.hear(); answer != "here") GTEST_SKIP() << answer;
    const DAT_CONN_QUAL qualifier = std::stoull(owner_.hear());
    source_ = hear_place(owner_, kBytes);
    target_ = hear_place(owner_, kPage / 2);
    require(dat_ep_connect(ep_.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  static DAT_EP_ATTR attr() {
    DAT_EP_ATTR attr = default_ep_attr();
    attr.max_rdma_size = kBytes;
    return attr;
  }

  PeerProcess process_{"device_owner", GetParam()};
  LineChannel& owner_ = process_.channel();
  Side side_{GetParam()};
  Ep ep_{side_, attr()};
  Lmr memory_{side_.ia, side_.pz, kBytes};
  DAT_RMR_TRIPLET source_{};
  DAT_RMR_TRIPLET target_{};
};

// The kernel copies none of it for another process, and calls it absent, which its owner does not.
TEST_P(DeviceMemoryOfAnother, IsRead) {
  for (const std::size_t bytes : {std::size_t{64}, kPage, kBytes}) {
    std::fill(memory_.bytes().begin(), memory_.bytes().end(), std::byte{0xff});
    DAT_LMR_TRIPLET sink = memory_.triplet(0, bytes);
    DAT_RMR_TRIPLET source = source_;
    source.segment_length = bytes;
    require(dat_ep_post_rdma_read(ep_.get(), 1, &sink, {}, &source, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_read");
    expect_completion(side_.request.get());
    EXPECT_TRUE(std::all_of(memory_.bytes().begin(), memory_.bytes().begin() + static_cast<std::ptrdiff_t>(bytes),
                            [](std::byte byte) { return byte == std::byte{0}; }))
        << bytes;
  }
}

TEST_P(DeviceMemoryOfAnother, IsWritten) {
  for (const int value : {1, 2, 3}) {
    std::fill(memory_.bytes().begin(), memory_.bytes().end(), static_cast<std::byte>(value));
    DAT_LMR_TRIPLET source = memory_.triplet(0, kPage / 2);
    require(dat_ep_post_rdma_write(ep_.get(), 1, &source, {}, &target_, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_write");
    expect_completion(side_.request.get());
    owner_.say("compare");
    owner_.say(std::to_string(value));
    EXPECT_EQ(owner_.hear(), "equal") << value;
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, DeviceMemory, testing::ValuesIn(all_wires()), wire_name);
INSTANTIATE_TEST_SUITE_P(Wires, DeviceMemoryOfAnother, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
