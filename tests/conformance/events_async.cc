// SPDX-License-Identifier: BSD-3-Clause
// Asynchronous events: section 9.7 of part 1. What an adapter of software never suffers (a catastrophe, an internal
// time-out) cannot be shown here.
#include "evd_fixture.h"

namespace anydat::test {
namespace {

class EventAsync : public MessageTest {
 protected:
  DAT_EVENT next(DAT_EVENT_NUMBER number) {
    const DAT_EVENT event = expect_event(server.ia.async_evd(), number);
    EXPECT_EQ(event.evd_handle, server.ia.async_evd());
    return event;
  }
  static DAT_HANDLE_TYPE type_of(DAT_HANDLE handle) {
    DAT_HANDLE_TYPE type{};
    require(dat_get_handle_type(handle, &type), "dat_get_handle_type");
    return type;
  }
};

// EVT-31, EVT-32, EVT-33, EVT-34, HTYPE-5, ruling A79: the SRQ's low watermark.
TEST_P(EventAsync, LowWatermarkNamesTheSrq) {
  const Srq srq(server.ia, server.pz, 4);
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 2), Succeeds());
  const auto data = next(DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR).event_data.asynch_error_event_data;
  EXPECT_EQ(data.dat_handle, srq.get());
  EXPECT_EQ(type_of(data.dat_handle), DAT_HANDLE_TYPE_SRQ);
  EXPECT_EQ(static_cast<int>(data.reason), DAT_SRQ_LOW_WATERMARK_EVENT);
  EXPECT_EQ(srq.query().srq_state, DAT_SRQ_STATE_OPERATIONAL) << "nothing is broken";
  EXPECT_FALSE(poll_event(server.ia.async_evd())) << "once per arming";
}

// EVT-31, EVT-32, EVT-33, EVT-34, ruling A79: the endpoint's soft watermark.
TEST_P(EventAsync, SoftWatermarkNamesTheEndpoint) {
  const Ep ep(server);
  post_recv(ep, 0);
  ASSERT_THAT(dat_ep_set_watermark(ep.get(), 0, DAT_WATERMARK_INFINITE), Succeeds());
  const auto data = next(DAT_ASYNC_ERROR_EP_BROKEN).event_data.asynch_error_event_data;
  EXPECT_EQ(data.dat_handle, ep.get());
  EXPECT_EQ(type_of(data.dat_handle), DAT_HANDLE_TYPE_EP);
  EXPECT_EQ(static_cast<int>(data.reason), DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED) << "nothing is broken";
  post_recv(ep, 1);
  EXPECT_FALSE(poll_event(server.ia.async_evd())) << "once per arming";
}

// EVT-33, EP-WM-5: the hard watermark breaks the connection and gives no async event.
TEST_P(EventAsync, HardWatermarkGivesAConnectionEventOnly) {
  const Connection pair = connect_pair(server, client);
  ASSERT_THAT(dat_ep_set_watermark(pair.server.get(), DAT_WATERMARK_INFINITE, 0), Succeeds());
  post_recv(pair.server, 0);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(pair.server.state(), DAT_EP_STATE_DISCONNECTED);
  EXPECT_FALSE(poll_event(server.ia.async_evd()));
}

// EVT-31, EVT-32, EVT-34: an overflow names the EVD.
TEST_P(EventAsync, OverflowNamesTheEvd) {
  const Evd connection(server.ia, DAT_EVD_CONNECTION_FLAG, 1);
  const DAT_CONN_QUAL nobody = dead_qualifier(server.ia);
  std::vector<Ep> eps;
  for (DAT_COUNT i = 0; i <= connection.qlen(); ++i) {
    eps.emplace_back(server.ia, server.pz, EpEvds{server.recv.get(), server.request.get(), connection.get()},
                     default_ep_attr());
    connect(eps.back().get(), nobody);
  }
  const auto data = next(DAT_ASYNC_ERROR_EVD_OVERFLOW).event_data.asynch_error_event_data;
  EXPECT_EQ(data.dat_handle, connection.get());
  EXPECT_EQ(type_of(data.dat_handle), DAT_HANDLE_TYPE_EVD);
  EXPECT_EQ(static_cast<int>(data.reason), DAT_EVD_OVERFLOW_ERROR);
}

// EVT-36, IA-OPEN-19
TEST_P(EventAsync, EventsGoToTheInstanceOfTheirObject) {
  const AsyncSource here(server.ia);
  const AsyncSource there(client.ia);
  here.fire();
  there.fire();
  EXPECT_EQ(expect_event(server.ia.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR)
                .event_data.asynch_error_event_data.dat_handle,
            here.handle());
  EXPECT_EQ(expect_event(client.ia.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR)
                .event_data.asynch_error_event_data.dat_handle,
            there.handle());
  EXPECT_FALSE(poll_event(server.ia.async_evd()));
  EXPECT_FALSE(poll_event(client.ia.async_evd()));
}

// EVT-31, HND-2: an object that is gone when its event is read is told apart from a live one.
TEST_P(EventAsync, HandleOfAFreedObjectIsStale) {
  Srq srq(server.ia, server.pz, 4);
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 1), Succeeds());
  const DAT_SRQ_HANDLE freed = srq.get();
  ASSERT_THAT(srq.free(), Succeeds());
  const auto event = poll_event(server.ia.async_evd());
  if (event) {
    EXPECT_EQ(event->event_data.asynch_error_event_data.dat_handle, freed);
  }
  DAT_HANDLE_TYPE type{};
  EXPECT_THAT(dat_get_handle_type(freed, &type), HasType(DAT_INVALID_HANDLE));
}

ANYDAT_OVER_ALL_WIRES(EventAsync);

}  // namespace
}  // namespace anydat::test
