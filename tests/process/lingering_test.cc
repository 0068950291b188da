// SPDX-License-Identifier: BSD-3-Clause
// Descriptors that a process of the same user passes along, and that take long to close: a thread that does nothing
// else waits for that, and no other.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hostile_target.h"
#include "lingering.h"
#include "raw_peer.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

using shm::GreetingKind;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kCount = 3;
constexpr int kPeers = 4;
constexpr int kMoreThanOneMayHave = 80;

struct Way {
  std::string name;
  // What comes before, and how they are passed.
  std::function<void(RawPeer& peer)> begin;
  std::function<void(RawPeer& peer, const std::vector<int>& descriptors)> pass;
};
std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << way.name;
}

void link(RawPeer& peer) {
  if (!peer.shake_hands()) throw std::runtime_error("there is no link");
}

const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      {"InPlaceOfSegments",
       [](RawPeer& peer) {
         peer.greet(GreetingKind::hello);
         peer.hear();
       },
       [](RawPeer& peer, const std::vector<int>& descriptors) { peer.greet(GreetingKind::attach, descriptors); }},
      {"WithAGreetingThatNeedsNone", [](RawPeer&) {},
       [](RawPeer& peer, const std::vector<int>& descriptors) {
         std::vector<int> many;
         while (many.size() < 250) many.insert(many.end(), descriptors.begin(), descriptors.end());
         peer.greet(GreetingKind::hello, many);
       }},
      {"WithABell", link,
       [](RawPeer& peer, const std::vector<int>& descriptors) {
         const std::byte bell{};
         peer.send_bytes({&bell, 1}, descriptors);
       }},
      {"AsARegion", link,
       [](RawPeer& peer, const std::vector<int>& descriptors) {
         for (const int descriptor : descriptors) peer.send_bytes(bytes_of(shm::MappingBody{}), {descriptor});
       }},
      {"BehindNonsense", [](RawPeer&) {},
       [](RawPeer& peer, const std::vector<int>& descriptors) {
         peer.greet(static_cast<GreetingKind>(77));
         peer.send_bytes({}, {});
         for (const int descriptor : descriptors) peer.greet(GreetingKind::hello, {descriptor});
       }},
      {"ByCallersThatHangUp", [](RawPeer&) {},
       [](RawPeer& peer, const std::vector<int>& descriptors) {
         peer.greet(GreetingKind::hello, descriptors);
         peer.hang_up();
       }},
  };
  return all;
}

class LingeringDescriptors : public testing::TestWithParam<Way> {};

TEST_P(LingeringDescriptors, HoldUpNobody) {
  const Wire& wire = wire_by_name("shm");
  HostileTarget target(wire);
  Friend well_behaved(wire, target.qualifier(), 1);
  well_behaved.pass_message(100);
  const HostileTarget::State before = target.state();
  {
    std::vector<Lingering> passed(kCount);
    std::vector<int> descriptors;
    for (const Lingering& one : passed) descriptors.push_back(one.get());
    std::vector<RawPeer> peers;
    for (int i = 0; i < kPeers; ++i) GetParam().begin(peers.emplace_back(target.service()));
    // It finds all of it when it goes on, and is the only one to have it then.
    target.stop();
    for (RawPeer& peer : peers) GetParam().pass(peer, descriptors);
    for (Lingering& one : passed) one.give_away();
    target.resume();
    const auto begun = Clock::now();
    for (int i = 0; i < 20; ++i) well_behaved.pass_message(100);
    EXPECT_LT(Clock::now() - begun, Lingering::kTime / 4);
    // Nor is anybody else kept out.
    Friend another(wire, target.qualifier(), 2);
    another.pass_message(100);
    another.leave();
    EXPECT_LT(Clock::now() - begun, Lingering::kTime / 2);
  }
  target.expect_back_to(before);
  well_behaved.leave();
  target.finish();
}

// A process that shows what is closed at once: one end of a pair of sockets, as often as it is told to.
void play_passer(RoleContext& context) {
  RawPeer peer(context.arguments.at(0));
  link(peer);
  context.parent.say("linked");
  while (context.parent.hear(std::chrono::hours(1)) == "pass") {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) throw std::runtime_error("socketpair");
    const Fd kept(pair[0]);
    {
      const Fd passed(pair[1]);
      peer.send_bytes(bytes_of(shm::MappingBody{}), {passed.get()});
    }
    pollfd closed{kept.get(), POLLIN, 0};
    if (::poll(&closed, 1, static_cast<int>(patience().count())) != 1) {
      context.parent.say("it is not closed");
    } else {
      context.parent.say(peer.cut(quiet_time()) ? "the link is cut" : "well");
    }
  }
}
const Role kPasser("passer", play_passer);

// RFC 5042, section 6: who uses up what there is of something uses up his own. The link of the process that passes too
// many is cut; others' descriptors are closed meanwhile, and they may pass as many as ever.
TEST(LingeringDescriptorsOfOneProcess, CostOthersNothing) {
  const Wire& wire = wire_by_name("shm");
  HostileTarget target(wire);
  PeerProcess other("passer", wire, {target.service()});
  ASSERT_EQ(other.channel().hear(), "linked");
  const HostileTarget::State before = target.state();
  const auto pass_all = [&](RawPeer& peer, std::deque<Lingering>& kept) {
    for (int i = 0; i < kMoreThanOneMayHave; ++i) {
      Lingering& one = kept.emplace_back();
      if (!peer.send_bytes(bytes_of(shm::MappingBody{}), {one.get()})) return;
      one.give_away();
    }
  };
  {
    std::deque<Lingering> lingering;
    RawPeer peer(target.service());
    link(peer);
    pass_all(peer, lingering);
    EXPECT_TRUE(peer.cut()) << "it may leave as many as it likes";
    const auto begun = Clock::now();
    for (int i = 0; i < 10; ++i) {
      other.channel().say("pass");
      EXPECT_EQ(other.channel().hear(2 * patience()), "well") << "after " << i;
    }
    EXPECT_LT(Clock::now() - begun, Lingering::kTime / 2);
  }
  target.expect_back_to(before);
  other.channel().say("enough");
  EXPECT_EQ(other.wait_exit(), 0);
  target.finish();
}

INSTANTIATE_TEST_SUITE_P(Ways, LingeringDescriptors, testing::ValuesIn(ways()),
                         [](const testing::TestParamInfo<Way>& each) { return each.param.name; });

}  // namespace
}  // namespace anydat::test
