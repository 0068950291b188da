// SPDX-License-Identifier: BSD-3-Clause
// RDMA to memory of another process whose pages go all the time: who writes finds them absent in the middle of a Write,
// asks for them, hands the rest to their owner, and finds them there again.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr std::size_t kDroppedBytes = std::size_t{1} << 20;
constexpr int kWritesOfEach = 40;

// Says where its memory is, drops its pages until it is told to stop, and then says what is in there when asked.
const Role kDropper("drops_its_pages", [](RoleContext& context) {
  void* const mapping = mmap(nullptr, kDroppedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  const std::span<std::byte> memory(static_cast<std::byte*>(mapping), kDroppedBytes);
  Side side(context.wire);
  const Lmr region(side.ia, side.pz, memory);
  const Ep ep(side);
  const DAT_RMR_TRIPLET place = region.remote(0, kDroppedBytes);
  context.parent.say(std::to_string(side.listen()));
  context.parent.say(std::to_string(place.rmr_context));
  context.parent.say(std::to_string(place.target_address));
  const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  std::jthread dropping([&](const std::stop_token& over) {
    while (!over.stop_requested()) madvise(memory.data(), memory.size(), MADV_DONTNEED);
  });
  context.parent.say("dropping");
  for (std::string order = context.parent.hear(20 * patience()); order != "end"; order = context.parent.hear()) {
    if (order == "keep") {
      dropping.request_stop();
      dropping.join();
      context.parent.say("kept");
    } else {
      const auto value = static_cast<std::byte>(std::stoi(order));
      const bool all = std::ranges::all_of(memory, [value](std::byte byte) { return byte == value; });
      context.parent.say(all ? "equal" : "different");
    }
  }
});

class DroppedPages : public testing::TestWithParam<Wire> {
 protected:
  void write(std::size_t bytes, int value) {
    std::ranges::fill(source_.bytes().first(bytes), static_cast<std::byte>(value));
    DAT_LMR_TRIPLET source = source_.triplet(0, bytes);
    DAT_RMR_TRIPLET target = target_;
    target.segment_length = bytes;
    require(dat_ep_post_rdma_write(ep_.get(), 1, &source, {}, &target, DAT_COMPLETION_DEFAULT_FLAG), "rdma_write");
    expect_completion(side_.request.get());
  }

  PeerProcess process_{"drops_its_pages", GetParam()};
  LineChannel& owner_ = process_.channel();
  Side side_{GetParam()};
  Ep ep_{side_};
  Lmr source_{side_.ia, side_.pz, kDroppedBytes};
  DAT_RMR_TRIPLET target_{};
};

TEST_P(DroppedPages, AreWrittenToByLongWrites) {
  const DAT_CONN_QUAL qualifier = std::stoull(owner_.hear());
  target_.rmr_context = static_cast<DAT_RMR_CONTEXT>(std::stoul(owner_.hear()));
  target_.target_address = std::stoull(owner_.hear());
  require(dat_ep_connect(ep_.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(owner_.hear(), "dropping");
  for (int i = 0; i < kWritesOfEach; ++i) {
    for (const std::size_t bytes : {std::size_t{2048}, std::size_t{100'000}, std::size_t{300'000}, kDroppedBytes}) {
      write(bytes, i);
    }
  }
  owner_.say("keep");
  EXPECT_EQ(owner_.hear(), "kept");
  write(kDroppedBytes, 77);
  owner_.say("77");
  EXPECT_EQ(owner_.hear(), "equal");
  owner_.say("end");
  EXPECT_EQ(process_.wait_exit(), 0);
}

INSTANTIATE_TEST_SUITE_P(Wires, DroppedPages, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
