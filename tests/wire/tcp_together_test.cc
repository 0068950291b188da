// SPDX-License-Identifier: BSD-3-Clause
// What many hosts together may make us keep of messages without buffers: there is a bound to it, and who was held back
// for it reads on when others have gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>

#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

// What a message without a buffer is taken to cost, and what all of them may, and some of one in any case
// (buffer_wait.cc, receive_backlog.h).
constexpr std::size_t kTogetherBytes = 16'000;
constexpr std::size_t kTogetherCost = kTogetherBytes + 64;
constexpr std::size_t kTogetherMax = 64 << 20;
constexpr int kInAnyCase = (64 << 10) / kTogetherCost + 1;
constexpr int kOfAHost = 60;  // less than one connection may have kept by itself

class TcpTogether : public testing::Test {
 protected:
  TcpTogether() : side(tcp_wire()), marks(side.ia, side.pz, 256), srq(side.ia, side.pz, 4) {}

  // So many messages that find no buffer, and behind them a Write that sets a mark.
  std::size_t send(int messages) {
    peers.emplace_back(side.listen());
    MpaPeer& peer = peers.back();
    peer.greet({});
    const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    eps.emplace_back(side, srq);
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, eps.back().get(), 0, nullptr),
            "dat_cr_accept");
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_TRUE(peer.hear_answer());
    for (int i = 0; i < messages; ++i) peer.send_message(payload);
    SegmentHeader header;
    header.opcode = Opcode::write;
    header.last = true;
    header.stag = marks.rmr_context();
    header.tagged_offset = address_of(marks) + eps.size() - 1;
    peer.send_segment(header, repeat(1, 0xee));
    return eps.size() - 1;
  }
  bool marked(std::size_t host) const { return marks.bytes()[host] == std::byte{0xee}; }
  bool marked_soon(std::size_t host) {
    return eventually([&] { return marked(host); });
  }

  Side side;
  const Lmr marks;
  const Srq srq;
  const Bytes payload = repeat(kTogetherBytes);
  std::deque<Ep> eps;
  std::deque<MpaPeer> peers;  // which go first
};

TEST_F(TcpTogether, WhoIsHeldBackForTheOthersReadsOnWhenOneOfThemHasGone) {
  std::ranges::fill(marks.bytes(), std::byte{0});
  // All but five messages of what there is room for.
  int left = static_cast<int>(kTogetherMax / kTogetherCost) - 5;
  while (left > 0) {
    const int some = std::min(left, kOfAHost);
    ASSERT_TRUE(marked_soon(send(some)));
    left -= some;
  }
  // The first of these uses up what is left, and all of them have more to say. It is so little that the kernel has all
  // of it: no more comes that would have their sockets looked at.
  std::array<std::size_t, 3> held{};
  for (std::size_t& host : held) host = send(kInAnyCase + 2);
  expect_no_event(side.recv.get());
  for (const std::size_t host : held) ASSERT_FALSE(marked(host)) << "it is not held back";
  require(dat_ep_disconnect(eps.front().get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  for (const std::size_t host : held) EXPECT_TRUE(marked_soon(host)) << "it has been forgotten";
}

}  // namespace
}  // namespace anydat::test
