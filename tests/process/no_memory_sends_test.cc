// SPDX-License-Identifier: BSD-3-Clause
// A program that runs out of memory when its connection stands: what it sends arrives all the same (DTO-19).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "footprint.h"
#include "no_memory.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr int kSends = 40;

struct Completed {
  int all = 0;
  int well = 0;
};
// Of so many. Allocates nothing.
Completed completed(DAT_EVD_HANDLE evd, int wanted) {
  Completed count;
  for (; count.all < wanted; ++count.all) {
    DAT_EVENT event;
    DAT_COUNT more = 0;
    if (dat_evd_wait(evd, 5'000'000, 1, &event, &more) != DAT_SUCCESS) break;
    count.well += event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS;
  }
  return count;
}

// Connects to the qualifier, and sends so many bytes again and again without memory.
void play_sender(RoleContext& context) {
  const auto bytes = static_cast<std::size_t>(std::stoul(context.arguments.at(1)));
  const Side side(context.wire);
  const Lmr source(side.ia, side.pz, bytes);
  const Ep ep(side);
  require(dat_ep_connect(ep.get(), loopback(), std::stoull(context.arguments.at(0)), DAT_TIMEOUT_INFINITE, 0, nullptr,
                         DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  context.parent.hear();
  int posted = 0;
  Completed sent;
  const auto before = processor_time();
  {
    const NoMemory from_now_on(0, NoMemory::Failing::all);
    DAT_LMR_TRIPLET segment = source.triplet(0, bytes);
    while (posted < kSends && dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS)
      ++posted;
    sent = completed(side.request.get(), posted);
  }
  const bool spins = processor_time() - before > std::chrono::seconds(4);
  context.parent.say(
      fmt::format("{} posted, {} completed{}", posted, sent.all, spins ? ", by asking again and again" : ""));
  context.parent.say(std::to_string(sent.well));
  context.parent.hear();
}
const Role kSender("sender-without-memory", play_sender);

class NoMemoryForSends : public testing::TestWithParam<Wire> {
 protected:
  // How many of the Sends of so many bytes have been.
  static int send(std::size_t bytes) {
    Side side(GetParam());
    const Lmr memory(side.ia, side.pz, kSends * bytes);
    const Ep ep(side);
    for (int i = 0; i < kSends; ++i) {
      DAT_LMR_TRIPLET buffer = memory.triplet(static_cast<std::size_t>(i) * bytes, bytes);
      require(dat_ep_post_recv(ep.get(), 1, &buffer, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    }
    PeerProcess sender("sender-without-memory", GetParam(), {std::to_string(side.listen()), std::to_string(bytes)});
    const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    sender.channel().say("go");
    EXPECT_EQ(sender.channel().hear(), fmt::format("{0} posted, {0} completed", kSends));
    const int sent = std::stoi(sender.channel().hear());
    EXPECT_GE(completed(side.recv.get(), kSends).well, sent);
    sender.channel().say("end");
    EXPECT_EQ(sender.wait_exit(), 0);
    return sent;
  }
};

TEST_P(NoMemoryForSends, OfAFewBytes) {
  EXPECT_EQ(send(64), kSends);
}
TEST_P(NoMemoryForSends, OfSomePages) {
  EXPECT_EQ(send(9000), kSends);
}
// Over TCP the rest of a frame that the socket takes in part is kept. Without memory for it the connection ends.
TEST_P(NoMemoryForSends, OfManyPages) {
  const int sent = send(300'000);
  if (GetParam().name != "tcp") {
    EXPECT_EQ(sent, kSends);
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, NoMemoryForSends, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
