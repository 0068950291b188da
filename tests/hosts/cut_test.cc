// SPDX-License-Identifier: BSD-3-Clause
// A connection over TCP that is cut at any byte, or whose bytes come in pieces, in heaps or late: both ends learn of
// its end once, every posted DTO completes once, and nothing is left.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <random>

#include "process/footprint.h"
#include "process/seed.h"
#include "proxy.h"
#include "trial.h"

namespace anydat::test {
namespace {

constexpr DAT_TIMEOUT kConnectTimeout = 60'000'000;

const char* name_of(Cut cut) {
  return cut == Cut::reset ? "reset" : cut == Cut::close ? "close" : cut == Cut::freeze ? "freeze" : "none";
}

class CutTest : public testing::Test {
 protected:
  struct Outcome {
    bool established;  // at the client
    bool all_done;
  };

  Outcome connect_through(const ProxyPlan& plan, const Trial::Traffic& traffic, DAT_TIMEOUT timeout = kConnectTimeout) {
    SCOPED_TRACE(fmt::format("{} after {} bytes to the {}, seed {}", name_of(plan.cut), plan.after_bytes,
                             plan.direction == Direction::to_server ? "server" : "client", plan.seed));
    proxy.set_plan(plan);
    Trial trial(stage, proxy.port(), traffic, timeout);
    // A request may still be on its way when the client knows that it came to nothing: until the last socket is closed
    // there may be one.
    const auto gone = [&] {
      // Busily, since a look now and then keeps the library's own thread from its work, and is none itself.
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
      while (!trial.over() && std::chrono::steady_clock::now() < until) {
        if (!trial.step()) std::this_thread::yield();
      }
      trial.step();
      // Who froze it must let the server know some time; the client has its time-out.
      if (trial.client_end().over()) proxy.drop_frozen();
      return trial.over() && proxy.open() == 0 && Footprint::here() == calm;
    };
    EXPECT_TRUE(eventually(gone)) << trial.state() << "; there are " << Footprint::here() << ", " << proxy.open()
                                  << " connections through the proxy; before it was " << calm;
    EXPECT_FALSE(trial.step()) << "something comes after the end";
    EXPECT_EQ(stage.srq.outstanding(), Stage::kShared);
    return {trial.client_end().established(), trial.all_done()};
  }

  // How many bytes pass each way until both ends are connected, and how many in all.
  struct Measured {
    std::uint64_t to_server;
    std::uint64_t to_client;
  };
  Measured measure(const Trial::Traffic& traffic) {
    const Outcome outcome = connect_through({}, traffic);
    EXPECT_TRUE(outcome.all_done);
    return {proxy.passed(Direction::to_server), proxy.passed(Direction::to_client)};
  }

  static constexpr Trial::Traffic kNothing{.operations = 0};
  static constexpr Trial::Traffic kLittle{};

  Stage stage{wire_by_name("tcp")};
  Proxy proxy{static_cast<std::uint16_t>(stage.server.listen())};
  const Footprint calm = Footprint::here();
};

TEST_F(CutTest, WhatComesInSinglePiecesInHeapsOrLateIsAllThere) {
  const Trial::Traffic traffic{.operations = 60, .bytes_max = 3000};
  const ProxyPlan plans[] = {{.piece_max = 1},
                             {.piece_max = 7},
                             {.piece_max = 2000},
                             {.join_bytes = 10'000},
                             {.piece_max = 500, .delay_max = std::chrono::microseconds(300)}};
  for (const ProxyPlan& plan : plans) {
    SCOPED_TRACE(fmt::format("pieces of {}, heaps of {}", plan.piece_max, plan.join_bytes));
    EXPECT_TRUE(connect_through(plan, traffic).all_done);
  }
}

TEST_F(CutTest, AtEveryByteOfTheSetUpAndOfTheFirstMessages) {
  const Measured all = measure(kLittle);
  for (const Cut cut : {Cut::reset, Cut::close}) {
    for (const Direction direction : {Direction::to_server, Direction::to_client}) {
      const std::uint64_t bytes =
          std::min<std::uint64_t>(direction == Direction::to_server ? all.to_server : all.to_client, 400);
      for (std::uint64_t after = 0; after < bytes && !HasFailure(); ++after)
        connect_through({.cut = cut, .direction = direction, .after_bytes = after}, kLittle);
    }
  }
}

TEST_F(CutTest, SilenceInTheSetUpEndsWithTheTimeOut) {
  const Measured set_up = measure(kNothing);
  for (const Direction direction : {Direction::to_server, Direction::to_client}) {
    const std::uint64_t bytes = direction == Direction::to_server ? set_up.to_server : set_up.to_client;
    for (std::uint64_t after = 0; after < std::min<std::uint64_t>(bytes, 40) && !HasFailure(); after += 9)
      connect_through({.cut = Cut::freeze, .direction = direction, .after_bytes = after}, kNothing, 200'000);
  }
}

TEST_F(CutTest, AtSeededPlacesLater) {
  const std::uint64_t seed = announced_seed();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 60 && !HasFailure(); ++i) {
    const ProxyPlan plan{.cut = random() % 2 == 0 ? Cut::reset : Cut::close,
                         .direction = random() % 2 == 0 ? Direction::to_server : Direction::to_client,
                         .after_bytes = 100 + random() % 500'000,
                         .piece_max = random() % 2 == 0 ? 0 : 1 + random() % 5000,
                         .seed = random()};
    const Outcome outcome =
        connect_through(plan, {.operations = 200, .bytes_max = Stage::kMessageBytes, .seed = random()});
    EXPECT_TRUE(outcome.established);
  }
}

TEST_F(CutTest, LeavesNoMemoryBehind) {
  const auto cut_many = [&](std::uint64_t from) {
    for (std::uint64_t i = 0; i < 150 && !HasFailure(); ++i)
      connect_through({.cut = i % 2 == 0 ? Cut::reset : Cut::close,
                       .direction = i % 3 == 0 ? Direction::to_client : Direction::to_server,
                       .after_bytes = from + i * 5},
                      kLittle);
  };
  // Freed objects rest for a while, so it takes some until as many go as come.
  cut_many(0);
  const std::size_t before = mallinfo2().uordblks;
  cut_many(0);
  const std::size_t after = mallinfo2().uordblks;
  EXPECT_LT(after, before + 32 * 1024) << "bytes more than before 150 connections";
}

}  // namespace
}  // namespace anydat::test
