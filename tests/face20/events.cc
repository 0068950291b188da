// SPDX-License-Identifier: BSD-3-Clause
// Events of 2.0: what a completion tells of its operation, and what an event's memory is.
#include <vector>

#include "face20/fixture.h"

namespace anydat::test {
namespace {

using Dat2Events = Dat2;
INSTANTIATE_TEST_SUITE_P(Wires, Dat2Events, testing::ValuesIn(all_wires()), wire_name);

// D2-EVT-4, D2-EVT-5, D2-EVT-6, D2-EVT-8.
TEST_P(Dat2Events, CompletionsNameTheirOperation) {
  const Connection connection = connect_pair(server, client);
  const Lmr to(server.ia, server.pz, 4096);
  const Lmr from(client.ia, client.pz, 4096);
  DAT_LMR_TRIPLET segment = to.triplet(0, 64);
  require(dat_ep_post_recv(connection.server.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "recv");
  segment = from.triplet(0, 48);
  require(dat_ep_post_send(connection.client.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "send");
  EXPECT_EQ(expect_completion(client.request.get()).operation, DAT_DTO_SEND);
  const DAT_DTO_COMPLETION_EVENT_DATA received = expect_completion(server.recv.get());
  EXPECT_EQ(received.operation, DAT_DTO_RECEIVE);
  EXPECT_EQ(received.transfered_length, 48U);
  EXPECT_EQ(received.rmr_context, 0U);
  const DAT_RMR_TRIPLET remote = to.remote(0, 4096);
  segment = from.triplet();
  require(dat_ep_post_rdma_write(connection.client.get(), 1, &segment, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG), "write");
  EXPECT_EQ(expect_completion(client.request.get()).operation, DAT_DTO_RDMA_WRITE);
  require(dat_ep_post_rdma_read(connection.client.get(), 1, &segment, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG), "read");
  const DAT_DTO_COMPLETION_EVENT_DATA read = expect_completion(client.request.get());
  EXPECT_EQ(read.operation, DAT_DTO_RDMA_READ);
  EXPECT_EQ(read.transfered_length, 4096U);
  EXPECT_EQ(read.rmr_context, 0U);
}

// D2-EVT-5: flushed ones, too.
TEST_P(Dat2Events, FlushedOperationsAreNamed) {
  const Connection connection = connect_pair(server, client);
  const Lmr memory(server.ia, server.pz, 64);
  DAT_LMR_TRIPLET segment = memory.triplet();
  require(dat_ep_post_recv(connection.server.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "recv");
  require(dat_ep_disconnect(connection.server.get(), DAT_CLOSE_ABRUPT_FLAG), "disconnect");
  EXPECT_EQ(expect_completion(server.recv.get(), DAT_DTO_ERR_FLUSHED).operation, DAT_DTO_RECEIVE);
  (void)expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  require(dat_ep_post_send(connection.server.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "send");
  EXPECT_EQ(expect_completion(server.request.get(), DAT_DTO_ERR_FLUSHED).operation, DAT_DTO_SEND);
  (void)expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

// D2-TYPE-2, D2-EVT-1, D2-EVT-2: an event is written to its own 120 bytes, its extension data not at all.
TEST_P(Dat2Events, OtherEventsLeaveTheirExtensionDataAlone) {
  static_assert(sizeof(DAT_EVENT) == 120);
  const Evd evd(client.ia, DAT_EVD_SOFTWARE_FLAG, 8);
  int anything = 0;
  DAT_EVENT posted{};
  posted.event_number = DAT_SOFTWARE_EVENT;
  posted.event_data.software_event_data.pointer = &anything;
  posted.event_extension_data[0] = 7;
  require(dat_evd_post_se(evd.get(), &posted), "post_se");
  std::vector<unsigned char> memory(sizeof(DAT_EVENT) + 64, 0xa5);
  require(dat_evd_dequeue(evd.get(), reinterpret_cast<DAT_EVENT*>(memory.data())), "dequeue");
  DAT_EVENT taken;
  std::memcpy(&taken, memory.data(), sizeof taken);
  EXPECT_EQ(taken.event_number, DAT_SOFTWARE_EVENT);
  EXPECT_EQ(taken.event_data.software_event_data.pointer, &anything);
  for (std::size_t i = offsetof(DAT_EVENT, event_extension_data); i < memory.size(); ++i) {
    EXPECT_EQ(memory[i], 0xa5) << i;
  }
}

// D2-EVT-10: the flag of an extension goes where the extension goes.
TEST_P(Dat2Events, TheFlagOfTheExtensionIsAcceptedWhereTheExtensionIs) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  const DAT_RETURN rc = dat_evd_create(client.ia.get(), 8, DAT_HANDLE_NULL,
                                       static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_EXTENSION_BASE), &evd);
  if (client.ia.attributes().extension_supported == DAT_EXTENSION_NONE) {
    EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
  } else {
    ASSERT_THAT(rc, Succeeds());
    EXPECT_THAT(dat_evd_free(evd), Succeeds());
  }
}

// D2-LMR-9: a flag of kernel programs.
TEST_P(Dat2Events, TheInvalidateFenceIsRefused) {
  const Connection connection = connect_pair(server, client);
  const Lmr memory(client.ia, client.pz, 64);
  const Lmr target(server.ia, server.pz, 64);
  DAT_LMR_TRIPLET segment = memory.triplet();
  const DAT_RMR_TRIPLET remote = target.remote(0, 64);
  const auto flags = DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG;
  const DAT_EP_HANDLE ep = connection.client.get();
  EXPECT_THAT(dat_ep_post_send(ep, 1, &segment, {}, flags), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ep_post_recv(ep, 1, &segment, {}, flags), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ep_post_rdma_read(ep, 1, &segment, {}, &remote, flags), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ep_post_rdma_write(ep, 1, &segment, {}, &remote, flags), HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(drain(client.request.get()), 0);
  EXPECT_EQ(connection.client.state(), DAT_EP_STATE_CONNECTED);
}

}  // namespace
}  // namespace anydat::test
