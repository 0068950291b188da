// SPDX-License-Identifier: BSD-3-Clause
// A process with very many mappings, whose list the kernel takes tens of milliseconds to tell: which file is behind a
// region that a peer uses again is asked without anybody's waiting for it.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <list>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr int kMappedRegions = 21;
constexpr int kUses = 3;
constexpr int kQuestions = kMappedRegions * kUses;
constexpr std::size_t kRegionBytes = 4096;

std::span<std::byte> sealed_region() {
  const int fd = ::memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ::ftruncate(fd, kRegionBytes) != 0 || ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    throw std::runtime_error("no file to map");
  }
  void* memory = ::mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory");
  return {static_cast<std::byte*>(memory), kRegionBytes};
}

// Argument: how many mappings there are besides. Says its qualifier, and where its regions are; answers each message.
void play_mapped(RoleContext& context) {
  // First, since the system gives addresses from above: they come last in its list.
  std::vector<std::span<std::byte>> memories;
  for (int i = 0; i < kMappedRegions; ++i) memories.push_back(sealed_region());
  for (int i = 0; i < std::stoi(context.arguments.at(0)); ++i) {
    // Neighbours that are alike are one mapping.
    const int rights = i % 2 == 0 ? PROT_READ : PROT_READ | PROT_WRITE;
    if (::mmap(nullptr, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
      context.parent.say("this system gives no such number of mappings");
      return;
    }
  }
  Side side(context.wire);
  context.parent.say(std::to_string(side.listen()));
  std::list<Lmr> regions;
  for (const std::span<std::byte> memory : memories) {
    const Lmr& lmr = regions.emplace_back(side.ia, side.pz, memory);
    context.parent.say(fmt::format("{} {}", lmr.rmr_context(), reinterpret_cast<std::uintptr_t>(memory.data())));
  }
  const Lmr words(side.ia, side.pz, 64);
  const Ep writing(side);
  const Ep asking(side);
  for (const Ep* ep : {&writing, &asking}) {
    const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep->get(), 0, nullptr), "dat_cr_accept");
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  DAT_LMR_TRIPLET word = words.triplet();
  for (int i = 0; i < kQuestions; ++i) {
    require(dat_ep_post_recv(asking.get(), 1, &word, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  }
  for (int i = 0; i < kQuestions; ++i) {
    if (!wait_event(side.recv.get(), 2 * patience())) throw std::runtime_error("no question comes");
    require(dat_ep_post_send(asking.get(), 1, &word, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    expect_completion(side.request.get());
  }
  context.parent.hear();
}
const Role kMapped("mapped", play_mapped);

// The longest time in which a question is answered that comes by another connection right behind a use of a region; the
// median of the regions. Negative if there cannot be so many mappings.
double us_of_an_answer(const Wire& wire, int mappings) {
  PeerProcess target("mapped", wire, {std::to_string(mappings)});
  const std::string first = target.channel().hear();
  if (first.find(' ') != std::string::npos) return -1;
  std::vector<DAT_RMR_TRIPLET> regions;
  for (int i = 0; i < kMappedRegions; ++i) {
    unsigned long long context = 0, address = 0;
    if (std::sscanf(target.channel().hear().c_str(), "%llu %llu", &context, &address) != 2) return -1;
    DAT_RMR_TRIPLET& region = regions.emplace_back();
    region.rmr_context = static_cast<DAT_RMR_CONTEXT>(context);
    region.target_address = address;
    region.segment_length = 64;
  }
  const Side side(wire);
  const Lmr memory(side.ia, side.pz, 64);
  DAT_LMR_TRIPLET word = memory.triplet();
  const Ep writing(side);
  const Ep asking(side);
  for (const Ep* ep : {&writing, &asking}) {
    require(dat_ep_connect(ep->get(), loopback(), std::stoull(first), DAT_TIMEOUT_INFINITE, 0, nullptr,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  std::vector<double> took;
  for (DAT_RMR_TRIPLET& region : regions) {
    double longest = 0;
    for (int use = 0; use < kUses; ++use) {
      require(dat_ep_post_recv(asking.get(), 1, &word, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
      require(dat_ep_post_rdma_write(writing.get(), 1, &word, {}, &region, DAT_COMPLETION_DEFAULT_FLAG),
              "dat_ep_post_rdma_write");
      expect_completion(side.request.get());
      const auto begun = std::chrono::steady_clock::now();
      require(dat_ep_post_send(asking.get(), 1, &word, {}, DAT_COMPLETION_SUPPRESS_FLAG), "dat_ep_post_send");
      expect_completion(side.recv.get());
      const auto end = std::chrono::steady_clock::now();
      longest = std::max(longest, std::chrono::duration<double, std::micro>(end - begun).count());
    }
    took.push_back(longest);
  }
  target.channel().say("enough");
  EXPECT_EQ(target.wait_exit(), 0);
  std::ranges::nth_element(took, took.begin() + kMappedRegions / 2);
  return took[kMappedRegions / 2];
}

class Mappings : public testing::TestWithParam<Wire> {};
INSTANTIATE_TEST_SUITE_P(Wires, Mappings, testing::ValuesIn(all_wires()), wire_name);

TEST_P(Mappings, OfWhichThereAreManyHoldNobodyUp) {
  double few = 0, many = 0;
  // What others do on this machine meanwhile is not looked for.
  for (int round = 0; round < 3 && many >= 3 * few; ++round) {
    few = us_of_an_answer(GetParam(), 0);
    const double once = us_of_an_answer(GetParam(), 30'000);
    many = round == 0 ? once : std::min(many, once);
  }
  if (many < 0) GTEST_SKIP() << "this system gives no such number of mappings";
  RecordProperty("us_with_few", static_cast<int>(few));
  RecordProperty("us_with_many", static_cast<int>(many));
  EXPECT_LT(many, 3 * few + 5000) << "us, where it takes " << few << " us with few";
}

}  // namespace
}  // namespace anydat::test
