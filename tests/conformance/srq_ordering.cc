// SPDX-License-Identifier: BSD-3-Clause
// The order of completions: chapter 1.13 of the rules.
#include <algorithm>
#include <thread>

#include "srq_traffic.h"
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

}  // namespace
}  // namespace anydat::test
