// SPDX-License-Identifier: BSD-3-Clause
// Long messages that a program pushes into the buffers of a peer that is played by hand: several in one copy.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

#include "fake_service.h"
#include "support/dat_events.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

using shm::CellKind;

constexpr std::size_t kMessages = 3;
constexpr std::size_t kMessageBytes = 20'000;  // all of them go in one copy

class PushedRow : public testing::Test {
 protected:
  void SetUp() override {
    require(dat_ep_connect(ep_.get(), loopback(), service_.qualifier(), DAT_TIMEOUT_INFINITE, 0, nullptr,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    peer_.emplace(service_.accept());
    peer_->offer_memory();
    require(welcome(*peer_, make_region_table()) ? DAT_SUCCESS : DAT_INTERNAL_ERROR, "a link");
    const RawPeer::Message request = next(CellKind::connect);
    shm::ConnectBody body{};
    std::memcpy(&body, request.body.data(), sizeof body);
    name_ = body.connection;
    peer_->put(acceptance(name_));
    peer_->ring();
    expect_event(client_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    for (std::size_t i = 0; i < kMessages; ++i) send(i);
  }

  void send(std::size_t i) {
    std::fill_n(source_.bytes().data() + i * kMessageBytes, kMessageBytes, mark(i));
    DAT_LMR_TRIPLET segment = source_.triplet(i * kMessageBytes, kMessageBytes);
    require(dat_ep_post_send(ep_.get(), 1, &segment, DAT_DTO_COOKIE{.as_64 = i}, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_send");
  }
  static std::byte mark(std::size_t i) { return static_cast<std::byte>(0x11 * (i + 1)); }

  RawPeer::Message next(CellKind kind) {
    while (const auto message = peer_->take()) {
      if (message->kind == kind) return *message;
    }
    throw std::runtime_error("the program does not say what it should");
  }

  // All answers are there when the program looks: it is asleep until the bell rings.
  void let_push(const std::array<void*, kMessages>& places) {
    std::array<std::uint32_t, kMessages> sequences;
    for (std::uint32_t& sequence : sequences) sequence = next(CellKind::announce).aux;
    for (std::size_t i = 0; i < kMessages; ++i) {
      shm::MemoryBody target{};
      target.grant_slot = static_cast<std::uint32_t>(i);
      target.grant = 2 * (i + 1);
      target.span_count = 1;
      target.spans[0] = {reinterpret_cast<std::uint64_t>(places[i]), kMessageBytes};
      peer_->inbound().header().grants[i].store(target.grant);
      const auto* const bytes = reinterpret_cast<const std::byte*>(&target);
      peer_->put({.kind = CellKind::push,
                  .connection = name_,
                  .aux = sequences[i],
                  .body = std::vector<std::byte>(bytes, bytes + sizeof target)});
    }
    peer_->ring();
  }

  bool has_come(std::size_t i) const {
    return std::all_of(target_.begin() + static_cast<std::ptrdiff_t>(i * kMessageBytes),
                       target_.begin() + static_cast<std::ptrdiff_t>((i + 1) * kMessageBytes),
                       [&](std::byte byte) { return byte == mark(i); });
  }
  void* place(std::size_t i) { return target_.data() + i * kMessageBytes; }

  Random random_{announced_seed()};
  FakeService service_{random_};
  const Side client_{wire_by_name("shm")};
  const Ep ep_{client_};
  std::vector<std::byte> target_ = std::vector<std::byte>(kMessages * kMessageBytes);
  const Lmr source_{client_.ia, client_.pz, kMessages* kMessageBytes};
  std::optional<RawPeer> peer_;
  std::uint32_t name_ = 0;  // of the connection, as the program has it
};

TEST_F(PushedRow, ArrivesMessageByMessage) {
  let_push({place(0), place(1), place(2)});
  for (std::size_t i = 0; i < kMessages; ++i) {
    const DAT_DTO_COMPLETION_EVENT_DATA done = expect_completion(client_.request.get());
    EXPECT_EQ(done.user_cookie.as_64, i);
    EXPECT_TRUE(has_come(i)) << i;
    next(CellKind::pushed);
    EXPECT_EQ(peer_->inbound().header().grants[i].load(), 2 * (i + 1)) << "the mark of a writer is left";
  }
}

// The kernel does not say which of several cannot be written. What is before it arrives.
TEST_F(PushedRow, OneThatMayNotBeWrittenEndsTheConnectionBehindThoseBeforeIt) {
  void* const kept = ::mmap(nullptr, kMessageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(kept, MAP_FAILED);
  std::memset(kept, 1, kMessageBytes);
  ASSERT_EQ(::mprotect(kept, kMessageBytes, PROT_READ), 0);
  let_push({place(0), kept, place(2)});
  EXPECT_EQ(expect_completion(client_.request.get()).user_cookie.as_64, 0u);
  EXPECT_TRUE(has_come(0));
  expect_event(client_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  for (std::size_t i = 1; i < kMessages; ++i) {
    const auto event = wait_event(client_.request.get());
    ASSERT_TRUE(event);
    EXPECT_NE(event->event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
  }
  ::munmap(kept, kMessageBytes);
}

// The peer is to bring that buffer in by itself; those around it go meanwhile.
TEST_F(PushedRow, OneWhosePlaceIsNotThereIsGivenBack) {
  if (::access("/proc/self/pagemap", R_OK) != 0) GTEST_SKIP() << "pages cannot be looked at here";
  let_push({place(0), nullptr, place(2)});
  EXPECT_EQ(expect_completion(client_.request.get()).user_cookie.as_64, 0u);
  next(CellKind::cannot_push);
  next(CellKind::pushed);
  EXPECT_TRUE(has_come(0));
  EXPECT_TRUE(has_come(2));
  EXPECT_FALSE(poll_event(client_.request.get()));  // DTO-40
}

}  // namespace
}  // namespace anydat::test
