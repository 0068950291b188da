// SPDX-License-Identifier: BSD-3-Clause
// Messages of several connections wait at an SRQ, and the buffers that come are not to be written at once, or not at
// all.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "support/counter.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

constexpr std::size_t kPageOfBuffer = 4096;
constexpr std::size_t kWaitingConnections = 3;

class VanishedBuffers : public testing::TestWithParam<Wire> {
 protected:
  static constexpr std::size_t kBuffersMax = 16;

  VanishedBuffers() {
    void* const pages =
        mmap(nullptr, kBuffersMax * kPageOfBuffer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    memory_ = std::span(static_cast<std::byte*>(pages), kBuffersMax * kPageOfBuffer);
    region_.emplace(server_.ia, server_.pz, memory_);
    for (std::size_t i = 0; i < kWaitingConnections; ++i) connections_.push_back(connect_pair(server_, srq_, client_));
  }
  ~VanishedBuffers() override {
    region_.reset();
    munmap(memory_.data(), memory_.size());
  }

  // Each sends so many, which find no buffer; over TCP, too, they have been read, since a Write behind them has.
  void send_and_wait(int messages) {
    const Lmr target(server_.ia, server_.pz, 64);
    const std::atomic_ref<std::byte> written(target.bytes()[0]);
    std::byte value{0};
    for (const Connection& connection : connections_) {
      DAT_LMR_TRIPLET segment = source_.triplet(0, 32);
      for (int n = 0; n < messages; ++n) {
        require(dat_ep_post_send(connection.client.get(), 1, &segment, {}, DAT_COMPLETION_SUPPRESS_FLAG), "send");
      }
      value = static_cast<std::byte>(static_cast<int>(value) + 1);
      source_.bytes()[63] = value;
      DAT_LMR_TRIPLET byte = source_.triplet(63, 1);
      const DAT_RMR_TRIPLET remote = target.remote(0, 1);
      require(dat_ep_post_rdma_write(connection.client.get(), 1, &byte, {}, &remote, DAT_COMPLETION_SUPPRESS_FLAG),
              "rdma_write");
      EXPECT_TRUE(eventually([&] { return written == value && counter(connection.server.get(), "buffer_waits") > 0; }));
    }
  }
  void post(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      DAT_LMR_TRIPLET segment = region_->triplet(i * kPageOfBuffer, kPageOfBuffer);
      DAT_DTO_COOKIE cookie;
      cookie.as_64 = i;
      require(dat_srq_post_recv(srq_.get(), 1, &segment, cookie), "dat_srq_post_recv");
    }
  }

  Side server_{GetParam()};
  Side client_{GetParam()};
  Srq srq_{server_.ia, server_.pz, kBuffersMax};
  std::span<std::byte> memory_;
  std::optional<Lmr> region_;
  Lmr source_{client_.ia, client_.pz, 64};
  std::vector<Connection> connections_;
};

// DTO-12: the receive fails that had it, and its connection; the others have buffers of their own.
TEST_P(VanishedBuffers, EndOneConnectionEach) {
  send_and_wait(1);
  ASSERT_NE(mmap(memory_.data(), kPageOfBuffer, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), MAP_FAILED);
  // A look at the memory holds for about a millisecond (docs/process-life.md).
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  post(kWaitingConnections);
  std::set<DAT_EP_HANDLE> delivered;
  DAT_EP_HANDLE failed = DAT_HANDLE_NULL;
  for (std::size_t i = 0; i < kWaitingConnections; ++i) {
    const DAT_EVENT event = expect_event(server_.recv.get(), DAT_DTO_COMPLETION_EVENT);
    const DAT_DTO_COMPLETION_EVENT_DATA& dto = event.event_data.dto_completion_event_data;
    if (dto.user_cookie.as_64 == 0) {
      EXPECT_EQ(dto.status, DAT_DTO_ERR_LOCAL_PROTECTION);
      failed = dto.ep_handle;
    } else {
      EXPECT_EQ(dto.status, DAT_DTO_SUCCESS);
      delivered.insert(dto.ep_handle);
    }
  }
  EXPECT_EQ(delivered.size(), kWaitingConnections - 1);
  EXPECT_FALSE(delivered.contains(failed));
  const DAT_EVENT end = expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(end.event_data.connect_event_data.ep_handle, failed);
  expect_no_event(server_.connect.get());
}

// SRQ-ORD-5: a connection that waits for a page has taken its buffer, and lets the others have theirs.
TEST_P(VanishedBuffers, GoToEachConnectionInTurnWhenTheirPagesHaveToCome) {
  constexpr int kEach = 4;
  send_and_wait(kEach);
  ASSERT_EQ(madvise(memory_.data(), memory_.size(), MADV_DONTNEED), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // as above
  post(kWaitingConnections);
  std::set<DAT_EP_HANDLE> delivered;
  for (std::size_t i = 0; i < kWaitingConnections; ++i) {
    delivered.insert(expect_completion(server_.recv.get()).ep_handle);
  }
  EXPECT_EQ(delivered.size(), kWaitingConnections) << "connections, of three messages";
  post(kWaitingConnections * (kEach - 1));
  expect_completions(server_.recv.get(), static_cast<int>(kWaitingConnections) * (kEach - 1));
}

INSTANTIATE_TEST_SUITE_P(Wires, VanishedBuffers, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
