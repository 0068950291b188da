// SPDX-License-Identifier: BSD-3-Clause
// What freeing a region costs does not depend on how many endpoints there are, as long as they do nothing.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "support/dat_fixture.h"
#include "support/wire.h"

namespace anydat::test {
namespace {

constexpr int kRegions = 64;
constexpr int kCostRounds = 40;

double processor_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// The best round's mean.
double ns_of_a_free(const Side& side) {
  double best = std::numeric_limits<double>::max();
  for (int round = 0; round < kCostRounds; ++round) {
    std::vector<Lmr> regions;
    for (int i = 0; i < kRegions; ++i) regions.emplace_back(side.ia, side.pz, 64);
    const double start = processor_ns();
    for (Lmr& region : regions) region.reset();
    best = std::min(best, (processor_ns() - start) / kRegions);
  }
  return best;
}

class RegionCost : public testing::TestWithParam<Wire> {};
INSTANTIATE_TEST_SUITE_P(Wires, RegionCost, testing::ValuesIn(all_wires()), wire_name);

TEST_P(RegionCost, OfAFreeIsTheSameWithManyEndpoints) {
  constexpr int kEndpoints = 3000;
  const Side alone(GetParam());
  Side crowded(GetParam());
  std::vector<Ep> endpoints;
  for (int i = 0; i < kEndpoints; ++i) endpoints.emplace_back(crowded);
  const double with = ns_of_a_free(crowded);
  const double without = ns_of_a_free(alone);
  EXPECT_LT(with, 3 * without + 300) << "ns, where it takes " << without << " ns without endpoints";
}

// Connected ones, too, over which messages have gone.
TEST_P(RegionCost, OfAFreeIsTheSameWithManyConnections) {
  constexpr int kConnections = 500;
  const Side alone(GetParam());
  Side server(GetParam());
  Side client(GetParam());
  const Lmr from(client.ia, client.pz, 64);
  const Lmr to(server.ia, server.pz, 64);
  std::vector<Connection> connections;
  for (int i = 0; i < kConnections; ++i) {
    const Connection& pair = connections.emplace_back(connect_pair(server, client));
    DAT_LMR_TRIPLET there = to.triplet();
    DAT_LMR_TRIPLET here = from.triplet();
    require(dat_ep_post_recv(pair.server.get(), 1, &there, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    require(dat_ep_post_send(pair.client.get(), 1, &here, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    expect_completion(client.request.get());
    expect_completion(server.recv.get());
  }
  const double without = ns_of_a_free(alone);
  for (const Side* side : {&client, &server}) {
    const double with = ns_of_a_free(*side);
    EXPECT_LT(with, 3 * without + 300) << "ns, where it takes " << without << " ns without connections";
  }
}

}  // namespace
}  // namespace anydat::test
