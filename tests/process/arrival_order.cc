// SPDX-License-Identifier: BSD-3-Clause
#include "process/arrival_order.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

constexpr std::chrono::milliseconds kQuietWhile(30);

// Arguments: peers, messages in all, bytes of each.
const Role kStandingReceiver("receiver_that_stands_still", [](RoleContext& context) {
  const int peers = std::stoi(context.arguments.at(0));
  const int all = std::stoi(context.arguments.at(1));
  Side side(context.wire);
  require(dat_evd_resize(side.recv.get(), all), "dat_evd_resize");
  const Lmr memory(side.ia, side.pz, std::stoul(context.arguments.at(2)));
  const Srq srq(side.ia, side.pz, all);
  context.parent.say(std::to_string(side.listen()));
  std::vector<Ep> eps;
  std::map<DAT_EP_HANDLE, char> names;
  for (int i = 0; i < peers; ++i) {
    const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    eps.emplace_back(side, srq);
    names[eps.back().get()] = static_cast<char>('a' + i);
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, eps.back().get(), 0, nullptr),
            "dat_cr_accept");
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    context.parent.say("next");
  }
  while (context.parent.hear() == "stop") {
    for (int i = 0; i < all; ++i) {
      DAT_LMR_TRIPLET segment = memory.triplet();
      require(dat_srq_post_recv(srq.get(), 1, &segment, {}), "dat_srq_post_recv");
    }
    // So that it no longer expects anything of those that have been quiet for that long, but of one.
    const auto until = std::chrono::steady_clock::now() + kQuietWhile;
    while (std::chrono::steady_clock::now() < until) EXPECT_FALSE(poll_event(side.recv.get()));
    raise(SIGSTOP);
    std::string order;
    for (int i = 0; i < all; ++i) {
      const DAT_DTO_COMPLETION_EVENT_DATA dto = expect_completion(side.recv.get());
      order += names[dto.ep_handle];
    }
    context.parent.say(order);
  }
  for (const Ep& ep : eps) dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG);
});

}  // namespace

StandingReceiver::StandingReceiver(const Wire& wire, int peers, int messages, std::size_t bytes)
    : process_("receiver_that_stands_still", wire,
               {std::to_string(peers), std::to_string(messages), std::to_string(bytes)}),
      qualifier_(std::stoul(process_.channel().hear())) {}

void StandingReceiver::expect_peer() {
  EXPECT_EQ(process_.channel().hear(), "next");
}

void StandingReceiver::stop() {
  process_.channel().say("stop");
  process_.wait_until_stopped();
}

std::string StandingReceiver::resume_and_tell() {
  process_.resume();
  return process_.channel().hear();
}

void StandingReceiver::end() {
  process_.channel().say("end");
  EXPECT_EQ(process_.wait_exit(), 0);
}

void StandingReceiver::expect_fair(const std::string& order, int peers, int most_ahead) {
  std::vector<int> delivered(static_cast<std::size_t>(peers));
  for (std::size_t i = 0; i < order.size(); ++i) {
    ++delivered.at(static_cast<std::size_t>(order[i] - 'a'));
    const auto [least, most] = std::ranges::minmax(delivered);
    const int ahead = least == 0 ? 1 : most_ahead;
    ASSERT_LE(most - least, ahead) << "after " << i << " messages: " << order.substr(0, i + 1);
  }
}

}  // namespace anydat::test
