// SPDX-License-Identifier: BSD-3-Clause
// Hosts that call a reserved service point together, each before the other has said what it wants.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <optional>

#include "support/progress.h"
#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

class RspAt : public Owner<dat_rsp_free> {
 public:
  RspAt(const Side& side, DAT_CONN_QUAL qualifier, DAT_EP_HANDLE ep) {
    require(dat_rsp_create(side.ia.get(), qualifier, ep, side.requests.get(), out()), "dat_rsp_create");
  }
};

DAT_CONN_QUAL free_port(const Side& side) {
  return Psp(side.ia, side.requests).qualifier();
}

// RSP-CREATE-1, RSP-CREATE-4, RSP-CREATE-6: both are callers by the time that the first request stops the listening.
TEST(TcpReserved, IsForOneOfTwoThatHaveCalledBeforeEitherAsks) {
  TcpTarget target;
  Side& side = target.side();
  const Ep ep(side);
  const DAT_CONN_QUAL port = free_port(side);
  const RspAt rsp(side, port, ep.get());
  std::array<MpaPeer, 2> peers{MpaPeer(port), MpaPeer(port)};
  settle();
  target.expect_no_request();
  for (std::size_t i = 0; i < peers.size(); ++i) peers[i].greet({.private_data = Bytes(1, static_cast<std::byte>(i))});

  const DAT_EVENT event = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  const auto& arrived = event.event_data.cr_arrival_event_data;
  EXPECT_EQ(arrived.sp_handle.rsp_handle, rsp.get());
  DAT_CR_PARAM request{};
  require(dat_cr_query(arrived.cr_handle, DAT_CR_FIELD_ALL, &request), "dat_cr_query");
  EXPECT_EQ(request.local_ep_handle, ep.get());
  EXPECT_EQ(ep.state(), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
  ASSERT_EQ(request.private_data_size, 1);
  const std::size_t served = *static_cast<const unsigned char*>(request.private_data);
  ASSERT_LT(served, peers.size());

  MpaPeer& other = peers[1 - served];
  const auto refusal = other.hear_answer();
  EXPECT_TRUE(refusal && refusal->frame.rejected);
  EXPECT_TRUE(other.hung_up());
  target.expect_no_request();
  EXPECT_EQ(ep.state(), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);

  require(dat_cr_accept(arrived.cr_handle, DAT_HANDLE_NULL, 0, nullptr), "dat_cr_accept");
  const auto answer = peers[served].hear_answer();
  EXPECT_TRUE(answer && !answer->frame.rejected);
  target.expect_established(ep);
  target.expect_unharmed();
}

}  // namespace
}  // namespace anydat::test
