// SPDX-License-Identifier: BSD-3-Clause
// A process of the same user that listens where a client expects a service point, and does not keep to the format. The
// client's attempts end (by themselves or by their time-out), it survives, and nothing is left of them.
//
// ANYDAT_HOSTILE_ROUNDS: how often each is done (default 20). ANYDAT_TEST_SEED: repeats a run.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "fake_service.h"
#include "hostile_attacks.h"
#include "hostile_target.h"
#include "support/dat_events.h"
#include "support/dat_fixture.h"
#include "support/watchdog.h"

namespace anydat::test {
namespace {

using shm::CellKind;
using shm::GreetingKind;

RawCell redirection(std::uint32_t connection, std::uint64_t qualifier, const std::string& scope) {
  shm::ServicePointBody body{};
  body.qual = qualifier;
  scope.copy(body.scope, sizeof body.scope);
  return {.kind = CellKind::redirect, .connection = connection, .body = bytes_of(body)};
}

struct Trick {
  std::string name;
  std::function<void(RawPeer& peer, Random& random, std::vector<RawPeer>& kept)> play;
};
std::ostream& operator<<(std::ostream& out, const Trick& trick) {
  return out << trick.name;
}

using Kept = std::vector<RawPeer>;

const std::vector<Trick>& tricks() {
  static const std::vector<Trick> all{
      {"HangsUp", [](RawPeer&, Random&, Kept&) {}},
      {"IsSilent", [](RawPeer& peer, Random&, Kept& kept) { kept.push_back(std::move(peer)); }},
      {"AnswersNoise",
       [](RawPeer& peer, Random& random, Kept&) {
         peer.hear();
         peer.send_bytes(random_bytes(random, random.below(200)));
         EXPECT_TRUE(peer.cut());
       }},
      {"AnswersTheWrongThing",
       [](RawPeer& peer, Random& random, Kept&) {
         peer.hear();
         peer.greet(static_cast<GreetingKind>(random.chance(2) ? 0 : 2 + random.below(5)));
         EXPECT_TRUE(peer.cut());
       }},
      {"IsSilentAfterTheWelcome",
       [](RawPeer& peer, Random&, Kept& kept) {
         peer.hear();
         peer.greet(GreetingKind::welcome);
         kept.push_back(std::move(peer));
       }},
      {"HangsUpAfterTheWelcome",
       [](RawPeer& peer, Random&, Kept&) {
         peer.hear();
         peer.greet(GreetingKind::welcome);
         peer.hear();
       }},
      {"AttachesABadDescriptor",
       [](RawPeer& peer, Random& random, Kept&) {
         peer.hear();
         peer.greet(GreetingKind::welcome);
         peer.hear();
         const auto way = static_cast<int>(random.below(kBadDescriptors + 1));
         const Fd bad = way < kBadDescriptors ? bad_descriptor(way) : Fd();
         const Fd good = random.chance(2) ? make_segment({}) : make_region_table();
         std::vector<int> descriptors;
         if (bad && random.chance(2)) descriptors.push_back(bad.get());
         descriptors.push_back(good.get());
         if (bad) descriptors.push_back(bad.get());
         peer.greet(GreetingKind::attached, descriptors);
         EXPECT_TRUE(peer.cut()) << "descriptor " << way;
       }},
      {"NeverAnswersTheRequest",
       [](RawPeer& peer, Random&, Kept& kept) {
         asked(peer);
         kept.push_back(std::move(peer));
       }},
      {"RejectsOddly",
       [](RawPeer& peer, Random& random, Kept& kept) {
         const std::uint32_t attempt = asked(peer);
         peer.put({.kind = CellKind::reject,
                   .connection = attempt,
                   .aux = static_cast<std::uint32_t>(random.chance(2) ? random.below(5) : random.number())});
         peer.put({.kind = CellKind::reject, .connection = attempt});
         peer.ring();
         kept.push_back(std::move(peer));
       }},
      {"AcceptsWithTooMuchPrivateData",
       [](RawPeer& peer, Random& random, Kept&) {
         const std::uint32_t attempt = asked(peer);
         peer.put(acceptance(attempt, static_cast<std::uint32_t>(nic::kPrivateDataMax + 1 + random.below(1u << 31))));
         peer.ring();
         EXPECT_TRUE(peer.cut());
       }},
      {"AcceptsWithoutABody",
       [](RawPeer& peer, Random&, Kept&) {
         const std::uint32_t attempt = asked(peer);
         peer.put({.kind = CellKind::accept, .connection = attempt});
         peer.ring();
         EXPECT_TRUE(peer.cut());
       }},
      {"RedirectsWithoutABody",
       [](RawPeer& peer, Random&, Kept&) {
         const std::uint32_t attempt = asked(peer);
         peer.put({.kind = CellKind::redirect, .connection = attempt});
         peer.ring();
         EXPECT_TRUE(peer.cut());
       }},
      {"RedirectsToANameWithoutAnEnd",
       [](RawPeer& peer, Random& random, Kept&) {
         const std::uint32_t attempt = asked(peer);
         peer.put(redirection(attempt, random.number(), std::string(shm::kScopeBytes, 'x')));
         peer.ring();
         EXPECT_TRUE(peer.cut());
       }},
      {"RedirectsToANameOfItsChoice",
       [](RawPeer& peer, Random& random, Kept& kept) {
         const std::uint32_t attempt = asked(peer);
         static constexpr const char* kScopes[] = {"", "..", "*/1", "eth77", "lo/"};
         peer.put(redirection(attempt, random.number(), kScopes[random.below(std::size(kScopes))]));
         peer.ring();
         kept.push_back(std::move(peer));
       }},
      {"RedirectsToNobody",
       [](RawPeer& peer, Random& random, Kept& kept) {
         const std::uint32_t attempt = asked(peer);
         peer.put(redirection(attempt, random.chance(2) ? 1 : random.number(), random.chance(2) ? "*" : "lo"));
         peer.ring();
         kept.push_back(std::move(peer));
       }},
      {"RedirectsAfterTheAnswer",
       [](RawPeer& peer, Random& random, Kept&) {
         const std::uint32_t attempt = asked(peer);
         peer.put(acceptance(attempt));
         peer.put(redirection(attempt, random.number(), "lo"));
         peer.ring();
         peer.take();
         EXPECT_TRUE(peer.cut());
       }},
      {"AcceptsSomebodyElse",
       [](RawPeer& peer, Random& random, Kept& kept) {
         const std::uint32_t attempt = asked(peer);
         peer.put(acceptance(attempt + 1 + static_cast<std::uint32_t>(random.below(100))));
         peer.ring();
         kept.push_back(std::move(peer));
       }},
      {"AcceptsTwice",
       [](RawPeer& peer, Random&, Kept&) {
         const std::uint32_t attempt = asked(peer);
         peer.put(acceptance(attempt));
         peer.put(acceptance(attempt));
         peer.ring();
         peer.take();
       }},
      {"AcceptsAndCloses",
       [](RawPeer& peer, Random& random, Kept&) {
         const std::uint32_t attempt = asked(peer);
         peer.put(acceptance(attempt));
         peer.put({.kind = CellKind::close,
                   .connection = attempt,
                   .aux = static_cast<std::uint32_t>(random.chance(2) ? random.below(5) : random.number())});
         peer.ring();
         peer.take();
       }},
      {"AcceptsAndTalksNonsense",
       [](RawPeer& peer, Random& random, Kept&) {
         const std::uint32_t attempt = asked(peer);
         peer.put(acceptance(attempt));
         for (int i = 0; i < 100; ++i) {
           peer.put(random_cell(random, {attempt, 0, 5}));
           peer.ring();
         }
       }},
      {"TalksNonsenseInsteadOfAnAnswer",
       [](RawPeer& peer, Random& random, Kept&) {
         const std::uint32_t attempt = asked(peer);
         for (int i = 0; i < 100; ++i) {
           peer.put(random_cell(random, {attempt, 0, 5}));
           peer.ring();
         }
       }},
  };
  return all;
}

class HostileListener : public testing::TestWithParam<Trick> {};

TEST_P(HostileListener, HarmsNobody) {
  Random random(announced_seed());
  const int rounds = number_from_environment("ANYDAT_HOSTILE_ROUNDS", 20);
  give_more_time(std::chrono::seconds(rounds));
  const Wire& wire = wire_by_name("shm");
  FakeService service(random);
  HostileTarget target(wire);
  Friend well_behaved(wire, target.qualifier(), 1);
  well_behaved.pass_message(100);
  const HostileTarget::State before = target.state();
  {
    std::vector<RawPeer> kept;
    for (int i = 0; i < rounds && !HasFailure(); ++i) {
      SCOPED_TRACE("round " + std::to_string(i));
      target.connect_to(service.qualifier());
      RawPeer peer = service.accept();
      GetParam().play(peer, random, kept);
      well_behaved.pass_message(random.below(HostileTarget::kBytes));
    }
    // No attempt outlives its time-out, however long the other side keeps its socket.
    EXPECT_TRUE(eventually([&] { return target.state().pending_attempts == 0; }));
  }
  target.expect_back_to(before);
  well_behaved.pass_message(100);
  EXPECT_LE(target.warnings(), rounds);
  well_behaved.leave();
  target.finish();
}

std::string trick_name(const testing::TestParamInfo<Trick>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Tricks, HostileListener, testing::ValuesIn(tricks()), trick_name);

// A service point that says it is of another process's node, which everybody may ask for its name.
class HostilePeerWithAName : public testing::Test {
 protected:
  RawPeer called_by(const Ep& ep) {
    require(dat_ep_connect(ep.get(), loopback(), service_.qualifier(), DAT_TIMEOUT_INFINITE, 0, nullptr,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    RawPeer peer = service_.accept();
    peer.claim_to_be(target_name());
    return peer;
  }
  void expect_to_reach_the_target() {
    const Ep ep(client_);
    require(dat_ep_connect(ep.get(), loopback(), target_.qualifier(), DAT_TIMEOUT_INFINITE, 0, nullptr,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    expect_event(client_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }

  Random random_{announced_seed()};
  FakeService service_{random_};
  HostileTarget target_{wire_by_name("shm")};
  Side client_{wire_by_name("shm")};
  Ep misled_{client_};

 private:
  shm::Greeting target_name() {
    RawPeer asking(target_.service());
    asking.greet(GreetingKind::hello);
    const auto welcome = asking.hear();
    if (!welcome) throw std::runtime_error("the target does not say its name");
    return welcome->greeting;
  }
};

TEST_F(HostilePeerWithAName, IsNotTakenForTheOneThatHasIt) {
  RawPeer peer = called_by(misled_);
  peer.put(acceptance(asked(peer)));
  peer.ring();
  expect_event(client_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_to_reach_the_target();
}

TEST_F(HostilePeerWithAName, HoldsUpNobodyWhileItIsSilent) {
  RawPeer peer = called_by(misled_);
  ASSERT_TRUE(peer.hear() && peer.greet(GreetingKind::welcome));
  ASSERT_TRUE(peer.hear());
  expect_to_reach_the_target();
}

}  // namespace
}  // namespace anydat::test
