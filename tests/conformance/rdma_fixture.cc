// SPDX-License-Identifier: BSD-3-Clause
#include "rdma_fixture.h"
#include "support/properties.h"

namespace anydat::test {

DAT_RETURN rdma_read(const Ep& ep, DAT_LMR_TRIPLET local, DAT_RMR_TRIPLET remote, DAT_UINT64 number,
                     DAT_COMPLETION_FLAGS flags) {
  return dat_ep_post_rdma_read(ep.get(), 1, &local, cookie(number), &remote, flags);
}

DAT_RETURN rdma_write(const Ep& ep, DAT_LMR_TRIPLET local, DAT_RMR_TRIPLET remote, DAT_UINT64 number,
                      DAT_COMPLETION_FLAGS flags) {
  return dat_ep_post_rdma_write(ep.get(), 1, &local, cookie(number), &remote, flags);
}

const char* rdma_name(Rdma kind) {
  return kind == Rdma::kRead ? "read" : "write";
}

DAT_RETURN rdma(Rdma kind, const Ep& ep, DAT_LMR_TRIPLET local, DAT_RMR_TRIPLET remote, DAT_UINT64 number,
                DAT_COMPLETION_FLAGS flags) {
  return kind == Rdma::kRead ? rdma_read(ep, local, remote, number, flags)
                             : rdma_write(ep, local, remote, number, flags);
}

DAT_RMR_TRIPLET remote_triplet(DAT_RMR_CONTEXT context, const void* address, std::size_t length) {
  DAT_RMR_TRIPLET triplet{};
  triplet.rmr_context = context;
  triplet.target_address = reinterpret_cast<DAT_VADDR>(address);
  triplet.segment_length = length;
  return triplet;
}

void RdmaTest::expect_remote_refusal(const Pair& pair, Rdma kind, DAT_RETURN rc, Caller caller) {
  const testing::ScopedTrace trace(caller.file, caller.line, rdma_name(kind));
  if (rc != DAT_SUCCESS) {
    EXPECT_TRUE(is_type(rc, DAT_PROTECTION_VIOLATION) || is_type(rc, DAT_PRIVILEGES_VIOLATION)) << describe(rc);
    EXPECT_EQ(pair.client.state(), DAT_EP_STATE_CONNECTED);
    return;
  }
  const auto dto = expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT, caller)
                       .event_data.dto_completion_event_data;
  if (kind == Rdma::kWrite && dto.status == DAT_DTO_SUCCESS) {
    expect_terminal_event(pair.client_evds.connect.get(), pair.client.get(), caller);
  } else if (!remote_errors_told(client.ia)) {
    EXPECT_TRUE(dto.status == DAT_DTO_ERR_REMOTE_ACCESS || dto.status == DAT_DTO_ERR_FLUSHED ||
                dto.status == DAT_DTO_ERR_TRANSPORT)
        << dto.status;
    expect_terminal_event(pair.client_evds.connect.get(), pair.client.get(), caller);
  } else {
    EXPECT_EQ(dto.status, DAT_DTO_ERR_REMOTE_ACCESS);
    expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_BROKEN, pair.client.get(), caller);
  }
  EXPECT_EQ(pair.client.state(), DAT_EP_STATE_DISCONNECTED);
  expect_terminal_event(pair.server_evds.connect.get(), pair.server.get(), caller);
  EXPECT_EQ(pair.server.state(), DAT_EP_STATE_DISCONNECTED);
}

void RdmaTest::pass_message(const Pair& pair, Caller caller) {
  DAT_LMR_TRIPLET nothing{};
  require(dat_ep_post_recv(pair.server.get(), 0, &nothing, cookie(1000), DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_recv");
  require(dat_ep_post_send(pair.client.get(), 0, &nothing, cookie(1000), DAT_COMPLETION_SUPPRESS_FLAG),
          "dat_ep_post_send");
  expect_completion(pair.server_evds.recv.get(), DAT_DTO_SUCCESS, caller);
}

}  // namespace anydat::test
