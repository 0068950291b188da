// SPDX-License-Identifier: BSD-3-Clause
// The habit of programs that connect a moment before their peer listens (src/face/habits.cc).
#include <gmock/gmock.h>

#include <chrono>
#include <cstring>

#include "ep_fixture.h"

namespace anydat::test {
namespace {

class HabitsConnect : public testing::TestWithParam<Wire> {
 protected:
  static Wire under(const char* compat) {
    Wire wire = GetParam();
    wire.env["DAT_COMPAT"] = compat;
    return wire;
  }
  // A request to a qualifier that no service point has.
  static DAT_CONN_QUAL call_early(const Side& server, const Ep& ep) {
    DAT_CONN_QUAL qualifier = 0;
    {
      const Psp psp(server.ia, server.requests);
      qualifier = psp.qualifier();
    }
    require(dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 3, const_cast<char*>("abc"),
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    return qualifier;
  }
};

TEST_P(HabitsConnect, ARequestMayComeBeforeItsServicePoint) {
  Side server(under("openfabrics")), client(under("openfabrics"));
  const Ep to(server), from(client);
  const DAT_CONN_QUAL qualifier = call_early(server, from);
  // It is refused meanwhile: engines look at their descriptors every 100 us. Not for long: 100 ms are all that the
  // habit gives.
  for (const auto looked = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
       std::chrono::steady_clock::now() < looked;)
    EXPECT_FALSE(poll_event(client.connect.get()));
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  require(dat_psp_create(server.ia.get(), qualifier, server.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp),
          "dat_psp_create");
  const DAT_EVENT request = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  const DAT_CR_HANDLE cr = request.event_data.cr_arrival_event_data.cr_handle;
  DAT_CR_PARAM param{};
  require(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
  ASSERT_EQ(param.private_data_size, 3);
  EXPECT_EQ(std::memcmp(param.private_data, "abc", 3), 0);
  require(dat_cr_accept(cr, to.get(), 0, nullptr), "dat_cr_accept");
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_THAT(dat_psp_free(psp), Succeeds());
}

TEST_P(HabitsConnect, ARequestThatNobodyTakesIsRefusedInTheEnd) {
  for (const char* compat : {"openfabrics", "default"}) {
    const Side server(under(compat)), client(under(compat));
    const Ep from(client);
    call_early(server, from);
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    EXPECT_EQ(from.state(), DAT_EP_STATE_DISCONNECTED);
  }
}

TEST_P(HabitsConnect, TheProgramMayGiveItUpMeanwhile) {
  const Side server(under("openfabrics")), client(under("openfabrics"));
  {
    const Ep from(client);
    call_early(server, from);
    ASSERT_THAT(dat_ep_disconnect(from.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  }
  const Ep from(client);
  call_early(server, from);  // and freed at once
}

ANYDAT_OVER_ALL_WIRES(HabitsConnect);

}  // namespace
}  // namespace anydat::test
