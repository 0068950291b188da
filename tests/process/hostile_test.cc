// SPDX-License-Identifier: BSD-3-Clause
// Processes of the same user that do not keep to the local wire's format. The target survives, its other connections
// keep working, it warns at most once for each hostile peer, and when they are gone nothing of them is left.
//
// ANYDAT_HOSTILE_ROUNDS: how often each attack is made (default 20). ANYDAT_TEST_SEED: repeats a run.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>

#include "hostile_attacks.h"
#include "hostile_target.h"
#include "support/peer_process.h"
#include "support/watchdog.h"

namespace anydat::test {
namespace {

int rounds() {
  return number_from_environment("ANYDAT_HOSTILE_ROUNDS", 20);
}

const Wire& wire() {
  return wire_by_name("shm");
}

class HostilePeer : public testing::TestWithParam<Attack> {
 protected:
  // Makes an attack `count` times, beside a well-behaved client.
  template <typename Choose>
  void attack(int count, Choose&& choose) {
    give_more_time(std::chrono::seconds(count));
    Random random(announced_seed());
    HostileTarget target(wire());
    Friend well_behaved(wire(), target.qualifier(), 1);
    well_behaved.pass_message(100);
    const HostileTarget::State before = target.state();
    {
      std::vector<RawPeer> kept;
      for (int i = 0; i < count && !HasFailure(); ++i) {
        const Attack& next = choose(random);
        SCOPED_TRACE("round " + std::to_string(i) + ", " + next.name);
        next.run(target, random, kept);
        well_behaved.pass_message(random.below(HostileTarget::kBytes));
      }
    }
    target.expect_back_to(before);
    well_behaved.pass_message(100);
    EXPECT_LE(target.warnings(), count);
    well_behaved.leave();
    target.finish();
  }
};

TEST_P(HostilePeer, HarmsNobody) {
  if (!GetParam().possible) GTEST_SKIP() << "this system does not have what the attack needs";
  attack(rounds(), [&](Random&) -> const Attack& { return GetParam(); });
}

// A peer that is killed in the middle of a copy, by a process that does not collect its remains: it is dead all the
// same.
void play_dying_writer(RoleContext& context) {
  std::uint32_t name = 0;
  const auto peer = begin_writing_into(context.arguments.at(0), std::stoull(context.arguments.at(1)), name);
  context.parent.say(peer ? "writing" : "no grant");
  context.parent.hear(std::chrono::hours(1));
}

const Role kDyingWriter("dying_writer", play_dying_writer);

TEST(DyingWriter, HarmsNobodyWhileNobodyBuriesIt) {
  HostileTarget target(wire());
  Friend well_behaved(wire(), target.qualifier(), 1);
  well_behaved.pass_message(100);
  const HostileTarget::State before = target.state();
  PeerProcess writer("dying_writer", wire(), {target.service(), std::to_string(target.qualifier())});
  if (writer.channel().hear() != "writing") {
    GTEST_SKIP() << "this wire has no peers that write into memory";
  }
  ::kill(writer.pid(), SIGKILL);
  target.expect_back_to(before);
  well_behaved.pass_message(100);
  well_behaved.leave();
  target.finish();
}

std::string attack_name(const testing::TestParamInfo<Attack>& info) {
  return info.param.name;
}

// Of those who have a link.
const std::vector<Attack>& attacks_behind_a_handshake() {
  static const std::vector<Attack> all = [] {
    std::vector<Attack> both = attacks_on_links();
    both.insert(both.end(), attacks_on_memory().begin(), attacks_on_memory().end());
    return both;
  }();
  return all;
}

INSTANTIATE_TEST_SUITE_P(Greetings, HostilePeer, testing::ValuesIn(attacks_on_greetings()), attack_name);
INSTANTIATE_TEST_SUITE_P(Descriptors, HostilePeer, testing::ValuesIn(attacks_on_descriptors()), attack_name);
INSTANTIATE_TEST_SUITE_P(Links, HostilePeer, testing::ValuesIn(attacks_behind_a_handshake()), attack_name);

using HostilePeers = HostilePeer;

TEST_F(HostilePeers, OfAllKindsHarmNobody) {
  attack(5 * rounds(), [](Random& random) -> const Attack& {
    const auto& all = random.chance(3) ? (random.chance(2) ? attacks_on_greetings() : attacks_on_descriptors())
                                       : attacks_behind_a_handshake();
    return all[random.below(all.size())];
  });
}

}  // namespace
}  // namespace anydat::test
