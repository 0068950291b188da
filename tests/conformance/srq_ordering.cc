// SPDX-License-Identifier: BSD-3-Clause
// The order of completions: chapter 1.13 of the rules.
#include <anydat/anydat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "srq_traffic.h"
#include "support/counter.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

class SrqOrdering : public SrqTest {};
class SrqOrderingHolding : public SrqHoldingTest {};

TEST_P(SrqOrdering, ReceivesOfAConnectionComeInTheOrderOfItsSends) {
  // SRQ-ORD-1
  const Srq srq(server.ia, server.pz, 32);
  // Small messages that travel at once, and large ones that need a handshake, mixed: neither may overtake.
  SrqTraffic traffic(server, client, srq, {.connections = 4, .buffers = 16, .max_bytes = 20000, .seed = 7});
  traffic.run(60);
}

TEST_P(SrqOrderingHolding, BuffersNeedNotCompleteInTheOrderTheyWerePosted) {
  // SRQ-ORD-2, SRQ-ORD-3
  const Srq srq(server.ia, server.pz, 10);
  const Ep slow(server, srq);
  const Connection quick = connect_pair(server, srq, client);
  StoppedSender sender(server, slow, GetParam(), 0, 1);
  large.post(srq, 0, 1);
  ASSERT_TRUE(eventually_held(slow, 1));
  large.post(srq, 1, 1);
  send(quick.client, 1);
  const auto first = expect_completion(server.recv.get());
  EXPECT_EQ(first.ep_handle, quick.server.get()) << "no order between connections, not even on one EVD";
  EXPECT_EQ(first.user_cookie.as_64, 1u);
  sender.resume();
  const auto second = expect_completion(server.recv.get());
  EXPECT_EQ(second.ep_handle, slow.get());
  EXPECT_EQ(second.user_cookie.as_64, 0u) << "posted first, completed last";
}

TEST_P(SrqOrdering, EachSendUsesOneBufferAndRdmaUsesNone) {
  // SRQ-ORD-4
  const Srq srq(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 4);
  const Lmr target(server.ia, server.pz, 4096);
  const DAT_RMR_TRIPLET remote = target.remote(0, 64);
  DAT_LMR_TRIPLET local = source.triplet(0, 64);
  ASSERT_THAT(
      dat_ep_post_rdma_write(connection.client.get(), 1, &local, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG),
      Succeeds());
  expect_completion(client.request.get());
  ASSERT_THAT(
      dat_ep_post_rdma_read(connection.client.get(), 1, &local, cookie(2), &remote, DAT_COMPLETION_DEFAULT_FLAG),
      Succeeds());
  expect_completion(client.request.get());
  EXPECT_EQ(counts(srq), (Counts{.available = 4, .outstanding = 4})) << "RDMA";
  // A message larger than one buffer does not spill into the next, and a small one does not share one.
  pass_message(connection, 1, 1);
  pass_message(connection, 2, kBytes);
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 2})) << "two Sends";
  expect_no_event(server.recv.get());
}

TEST_P(SrqOrdering, NoEndpointStarvesWhileAnotherFloods) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // SRQ-ORD-5: a recommendation; we take it.
  const Srq srq(server.ia, server.pz, 1);
  const Connection flood = connect_pair(server, srq, client);
  const Connection modest = connect_pair(server, srq, client);
  constexpr int kFlood = 40;
  for (DAT_UINT64 i = 0; i < kFlood; ++i) {
    send(flood.client, i);
  }
  buffers.post(srq, 0, 1);
  expect_completion(server.recv.get());
  send(modest.client, 100);
  expect_no_event(server.recv.get());  // all wait for the one buffer there is
  int flooded = 1;
  bool served = false;
  while (!served && flooded < kFlood) {
    buffers.post(srq, 0, 1);
    served = expect_completion(server.recv.get()).ep_handle == modest.server.get();
    flooded += served ? 0 : 1;
  }
  EXPECT_TRUE(served) << "the modest endpoint got a buffer only after the other had " << flooded;
}

TEST_P(SrqOrdering, BuffersThatComeGoToEachThatWaitsInTurn) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // SRQ-ORD-5: a recommendation; we take it, for several buffers at once as well.
  if (!GetParam().ia_name.starts_with("soft")) GTEST_SKIP() << "a device sees to this by itself";
  constexpr std::size_t kConnections = 4;
  constexpr int kEach = 8;
  const Srq srq(server.ia, server.pz, kConnections * kEach);
  std::vector<Connection> connections;
  for (std::size_t i = 0; i < kConnections; ++i) connections.push_back(connect_pair(server, srq, client));
  // The last has a single message.
  const auto share = [&](std::size_t i) { return i + 1 < kConnections ? kEach : 1; };
  for (std::size_t i = 0; i < kConnections; ++i) {
    for (int n = 0; n < share(i); ++n) send(connections[i].client, static_cast<DAT_UINT64>(n));
    expect_completions(client.request.get(), share(i));  // all are on their way
    ASSERT_TRUE(eventually([&] { return counter(connections[i].server.get(), "buffer_waits") > 0; }));
  }
  std::map<DAT_EP_HANDLE, char> names;
  for (std::size_t i = 0; i < kConnections; ++i) names[connections[i].server.get()] = static_cast<char>('0' + i);
  constexpr int kAll = (kConnections - 1) * kEach + 1;
  std::vector<DAT_LMR_TRIPLET> segments;
  std::vector<ANYDAT_SRQ_POST> posts;
  for (int i = 0; i < kAll; ++i) segments.push_back(buffers.triplet(i));
  for (DAT_LMR_TRIPLET& segment : segments) posts.push_back({1, &segment, cookie(0)});
  DAT_COUNT posted = 0;
  ASSERT_THAT(anydat_srq_post_recvs(srq.get(), kAll, posts.data(), &posted), Succeeds());
  std::string order;
  for (int i = 0; i < kAll; ++i) order += names[expect_completion(server.recv.get()).ep_handle];
  std::array<int, kConnections> delivered{};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int before = delivered.at(static_cast<std::size_t>(order[i] - '0'))++;
    for (std::size_t other = 0; other < kConnections; ++other) {
      // Over TCP a connection's later messages may still be in the socket, and ask for buffers when they are read.
      const bool waits = GetParam().name != "tcp" || delivered[other] == 0;
      ASSERT_TRUE(!waits || delivered[other] >= before || delivered[other] == share(other)) << order << " at " << i;
    }
  }
}

TEST_P(SrqOrdering, BuffersThatComeGoToEachThatWaitsWithALongMessage) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // SRQ-ORD-5, of messages that do not travel at once. How soon each is whole is another matter.
  if (!GetParam().ia_name.starts_with("soft")) GTEST_SKIP() << "a device sees to this by itself";
  constexpr int kConnections = 3;
  constexpr std::size_t kLong = 12'000;
  const Srq srq(server.ia, server.pz, kConnections);
  const Buffers large(server.ia, server.pz, kConnections, kLong);
  std::vector<Connection> connections;
  for (int i = 0; i < kConnections; ++i) connections.push_back(connect_pair(server, srq, client));
  for (const Connection& connection : connections) {
    for (DAT_UINT64 n = 0; n < kConnections; ++n) send(connection.client, n, kLong);
    ASSERT_TRUE(eventually([&] { return counter(connection.server.get(), "buffer_waits") > 0; }));
  }
  std::vector<DAT_LMR_TRIPLET> segments;
  std::vector<ANYDAT_SRQ_POST> posts;
  for (int i = 0; i < kConnections; ++i) segments.push_back(large.triplet(i));
  for (DAT_LMR_TRIPLET& segment : segments) posts.push_back({1, &segment, cookie(0)});
  DAT_COUNT posted = 0;
  ASSERT_THAT(anydat_srq_post_recvs(srq.get(), kConnections, posts.data(), &posted), Succeeds());
  std::set<DAT_EP_HANDLE> delivered;
  for (int i = 0; i < kConnections; ++i) delivered.insert(expect_completion(server.recv.get()).ep_handle);
  EXPECT_EQ(delivered.size(), std::size_t{kConnections}) << "connections that were given a buffer";
}

// SRQ-ORD-1: buffers come one by one while messages go on arriving behind those that wait.
class SrqOrderingOfWaiting : public SrqTest {
 protected:
  static constexpr DAT_UINT64 kAhead = 16;
  static constexpr DAT_UINT64 kSends = 6000;

  // What is behind messages without buffers is read when they have waited for a while: a Write among it is seen then.
  void await_reading_past(const Connection& connection) {
    const Lmr target(server.ia, server.pz, 64);
    const DAT_RMR_TRIPLET remote = target.remote(0, 1);
    const Lmr origin(client.ia, client.pz, 64);
    origin.bytes()[0] = std::byte{1};
    DAT_LMR_TRIPLET local = origin.triplet(0, 1);
    ASSERT_THAT(
        dat_ep_post_rdma_write(connection.client.get(), 1, &local, cookie(0), &remote, DAT_COMPLETION_SUPPRESS_FLAG),
        Succeeds());
    const std::atomic_ref<std::byte> written(target.bytes()[0]);
    ASSERT_TRUE(eventually([&] { return written == std::byte{1}; }));
  }

  // At least `waiting` messages wait as long as others come.
  void pass_all(const Srq& srq, const Connection& connection, DAT_UINT64 waiting) {
    std::atomic<DAT_UINT64> sent = kAhead;
    auto sender = std::async(std::launch::async, [&] {
      for (DAT_UINT64 i = kAhead; i < kSends; ++i) {
        expect_completion(client.request.get());
        send(connection.client, i);
        sent = i + 1;
      }
    });
    for (DAT_UINT64 i = 0; i < kSends && !HasFailure(); ++i) {
      const DAT_UINT64 due = std::min(i + waiting, kSends);
      EXPECT_TRUE(sent >= due || eventually([&] { return sent >= due; }));
      buffers.post(srq, 0, 1);
      expect_completion(server.recv.get());
      EXPECT_TRUE(has_pattern(buffers[0].first(32), i)) << "message " << i;
    }
    if (HasFailure()) dat_ep_disconnect(connection.client.get(), DAT_CLOSE_ABRUPT_FLAG);
    sender.get();
    for (DAT_UINT64 i = 0; i < kAhead && !HasFailure(); ++i) expect_completion(client.request.get());
  }
};

TEST_P(SrqOrderingOfWaiting, IsNotOvertakenByWhatArrivesAsBuffersCome) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  const Srq srq(server.ia, server.pz, kBuffers);
  const bool reads_past = GetParam().name == "tcp";
  const int rounds = reads_past ? 8 : 1;  // what could be wrong is so for a moment in each
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    const Connection connection = connect_pair(server, srq, client);
    for (DAT_UINT64 i = 0; i < kAhead; ++i) send(connection.client, i);
    if (reads_past) await_reading_past(connection);
    pass_all(srq, connection, reads_past ? 500 : 0);
  }
}

TEST_P(SrqOrdering, BuffersAreUsedInPostingOrderByOneEndpoint) {
  // SRQ-ORD-5: a recommendation; we take it.
  const Srq srq(server.ia, server.pz, 8);
  const Connection connection = connect_pair(server, srq, client);
  const std::vector<int> order{5, 2, 7, 0};
  for (const int index : order) {
    buffers.post(srq, index, 1);
  }
  for (const int index : order) {
    EXPECT_EQ(pass_message(connection).user_cookie.as_64, static_cast<DAT_UINT64>(index));
  }
}

TEST_P(SrqOrdering, WriteBeforeASendIsVisibleWithIt) {
  // SRQ-ORD-6, DTO-43
  const Srq srq(server.ia, server.pz, 4);
  const Connection connection = connect_pair(server, srq, client);
  constexpr std::size_t kTarget = 64 * 1024;
  const Lmr target(server.ia, server.pz, kTarget);
  const Lmr origin(client.ia, client.pz, kTarget);
  for (DAT_UINT64 round = 0; round < 40; ++round) {
    const std::size_t length = round % 4 == 0 ? kTarget : 1 + static_cast<std::size_t>(round * 977 % kTarget);
    fill_pattern(origin.bytes().first(length), round);
    buffers.post(srq, 0, 1);
    DAT_LMR_TRIPLET local = origin.triplet(0, length);
    const DAT_RMR_TRIPLET remote = target.remote(0, length);
    ASSERT_THAT(dat_ep_post_rdma_write(connection.client.get(), 1, &local, cookie(round), &remote,
                                       DAT_COMPLETION_SUPPRESS_FLAG),
                Succeeds());
    pass_message(connection, round);
    ASSERT_TRUE(has_pattern(target.bytes().first(length), round)) << "round " << round << ", " << length << " bytes";
  }
}

ANYDAT_OVER_ALL_WIRES(SrqOrdering);
ANYDAT_OVER_ALL_WIRES(SrqOrderingHolding);
ANYDAT_OVER_ALL_WIRES(SrqOrderingOfWaiting);

}  // namespace
}  // namespace anydat::test
