// SPDX-License-Identifier: BSD-3-Clause
// The state of an EVD and what follows from it: section 5.4 of part 1.
#include <memory>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

class EventState : public MessageTest {
 protected:
  DAT_EP_ATTR attributes(DAT_COMPLETION_FLAGS recv_model,
                         DAT_COMPLETION_FLAGS request_model = DAT_COMPLETION_DEFAULT_FLAG) {
    DAT_EP_ATTR attr = default_ep_attr();
    attr.recv_completion_flags = recv_model;
    attr.request_completion_flags = request_model;
    return attr;
  }
  unsigned configuration(const Evd& evd) { return query_evd(evd.get()).evd_state & kConfigurationPart; }
  Ep make(const Evd& on, const Evd& requests_on, const DAT_EP_ATTR& attr) {
    return Ep(server.ia, server.pz, {on.get(), requests_on.get(), server.connect.get()}, attr);
  }
  // The attaching call refuses; the endpoint's flags are not its business alone.
  void expect_refused(const Evd& on, const Evd& requests_on, const DAT_EP_ATTR& attr, DAT_EVD_HANDLE connection) {
    DAT_EP_HANDLE made = DAT_HANDLE_NULL;
    EXPECT_THAT(dat_ep_create(server.ia.get(), server.pz.get(), on.get(), requests_on.get(), connection, &attr, &made),
                HasType(DAT_INVALID_PARAMETER));
  }

  Evd recv{server.ia, DAT_EVD_DTO_FLAG};
  Evd request{server.ia, DAT_EVD_DTO_FLAG};
};

// The six rows of the state table, as far as they can be.
struct Row {
  bool enabled;
  bool waitable;
  bool waiter;
};

// EVM-22, EVM-25, EVM-26, EVM-39, EVM-41, EVD-DEQ-5, EVD-WAIT-15: each cell of the table.
TEST_P(EventState, EachRowOfTheTableHolds) {
  for (const Row row : {Row{true, true, false}, Row{true, true, true}, Row{false, true, false}, Row{false, true, true},
                        Row{true, false, false}, Row{false, false, false}}) {
    SCOPED_TRACE(testing::Message() << "enabled " << row.enabled << ", waitable " << row.waitable << ", waiter "
                                    << row.waiter);
    const Cno cno(server.ia);
    const Evd evd(server.ia, DAT_EVD_SOFTWARE_FLAG, 8, cno.get());
    if (!row.enabled) require(dat_evd_disable(evd.get()), "dat_evd_disable");
    if (!row.waitable) require(dat_evd_set_unwaitable(evd.get()), "dat_evd_set_unwaitable");
    const auto state = static_cast<unsigned>(query_evd(evd.get()).evd_state);
    EXPECT_EQ(state & kDeliveryPart, row.enabled ? unsigned{DAT_EVD_STATE_ENABLED} : unsigned{DAT_EVD_STATE_DISABLED});
    EXPECT_EQ(state & kWaitingPart,
              row.waitable ? unsigned{DAT_EVD_STATE_WAITABLE} : unsigned{DAT_EVD_STATE_UNWAITABLE});
    std::unique_ptr<BlockedWait> waiter;
    if (row.waiter) waiter = std::make_unique<BlockedWait>(evd.get(), 2);

    // "Notification event arrives": queued in every row.
    post(evd.get(), 1);
    EXPECT_EQ(take_trigger(cno.get()), row.enabled && !row.waiter);
    // "dat_evd_wait called", "dat_evd_dequeue called"
    DAT_EVENT event{};
    if (row.waiter) {
      EXPECT_THAT(wait_evd(evd.get(), 0).rc, HasType(DAT_INVALID_STATE));
      EXPECT_THAT(dat_evd_dequeue(evd.get(), &event), HasType(DAT_INVALID_STATE));
      post(evd.get(), 2);
      EXPECT_EQ(value_of(waiter->result().event), 1u);
      EXPECT_FALSE(take_trigger(cno.get()));
      EXPECT_EQ(take(evd.get()), 2u);
    } else if (row.waitable) {
      EXPECT_EQ(value_of(wait_evd(evd.get(), 0).event), 1u);
      EXPECT_THAT(wait_evd(evd.get(), 0).rc, HasType(DAT_TIMEOUT_EXPIRED));
      post(evd.get(), 3);
      EXPECT_EQ(take(evd.get()), 3u);
    } else {
      EXPECT_THAT(wait_evd(evd.get(), 0).rc, HasType(DAT_INVALID_STATE));
      EXPECT_EQ(take(evd.get()), 1u);
    }
  }
}

// EVM-25: queuing goes on in every state, up to the same length.
TEST_P(EventState, EventsAreQueuedInEveryState) {
  const Evd evd(server.ia, DAT_EVD_SOFTWARE_FLAG, 4);
  const Cno cno(server.ia);
  ASSERT_THAT(dat_evd_disable(evd.get()), Succeeds());
  ASSERT_THAT(dat_evd_set_unwaitable(evd.get()), Succeeds());
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), cno.get()), Succeeds());
  post_range(evd.get(), 1, evd.qlen());
  EXPECT_THAT(try_post(evd.get()), HasType(DAT_QUEUE_FULL));
  EXPECT_EQ(take_all(evd.get()).size(), static_cast<std::size_t>(evd.qlen()));
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), DAT_HANDLE_NULL), Succeeds());
}

// EVM-23: the configuration follows the flags of the endpoints that feed the EVD, while they do.
TEST_P(EventState, ConfigurationFollowsTheAttachedEndpoints) {
  EXPECT_EQ(configuration(recv), unsigned{DAT_EVD_STATE_CONFIG_THRESHOLD});
  for (const DAT_COMPLETION_FLAGS plain : {DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG}) {
    const Ep ep = make(recv, request, attributes(plain, plain));
    EXPECT_EQ(configuration(recv), unsigned{DAT_EVD_STATE_CONFIG_THRESHOLD});
    EXPECT_EQ(configuration(request), unsigned{DAT_EVD_STATE_CONFIG_THRESHOLD});
  }
  {
    const Ep ep = make(recv, request, attributes(DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG));
    EXPECT_EQ(configuration(recv), unsigned{DAT_EVD_STATE_CONFIG_NOTIFY});
    EXPECT_EQ(configuration(request), unsigned{DAT_EVD_STATE_CONFIG_NOTIFY});
  }
  EXPECT_EQ(configuration(recv), unsigned{DAT_EVD_STATE_CONFIG_THRESHOLD}) << "no stream, no model";
  {
    const Ep ep = make(recv, request, attributes(DAT_COMPLETION_SOLICITED_WAIT_FLAG));
    EXPECT_EQ(configuration(recv), unsigned{DAT_EVD_STATE_CONFIG_SOLICITED});
    EXPECT_EQ(configuration(request), unsigned{DAT_EVD_STATE_CONFIG_THRESHOLD});
    const Evd other(server.ia, DAT_EVD_DTO_FLAG);
    DAT_EP_PARAM param{};
    param.recv_evd_handle = other.get();
    ASSERT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_RECV_EVD_HANDLE, &param), Succeeds());
    EXPECT_EQ(configuration(recv), unsigned{DAT_EVD_STATE_CONFIG_THRESHOLD}) << "it has moved away";
    EXPECT_EQ(configuration(other), unsigned{DAT_EVD_STATE_CONFIG_SOLICITED});
    param.recv_evd_handle = recv.get();
    ASSERT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_RECV_EVD_HANDLE, &param), Succeeds());
  }
  const Srq srq(server.ia, server.pz, 4);
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
  const Ep ep(server.ia, server.pz, {recv.get(), request.get(), server.connect.get()}, srq, attr);
  EXPECT_EQ(configuration(recv), unsigned{DAT_EVD_STATE_CONFIG_SOLICITED});
}

// EVM-24, EVM-26: what the configuration is does not change the other parts of the state.
TEST_P(EventState, ConfigurationIsIndependentOfTheOtherParts) {
  ASSERT_THAT(dat_evd_disable(recv.get()), Succeeds());
  ASSERT_THAT(dat_evd_set_unwaitable(recv.get()), Succeeds());
  const Ep ep = make(recv, request, attributes(DAT_COMPLETION_SOLICITED_WAIT_FLAG));
  const auto state = static_cast<unsigned>(query_evd(recv.get()).evd_state);
  EXPECT_EQ(state, unsigned{DAT_EVD_STATE_DISABLED} | unsigned{DAT_EVD_STATE_UNWAITABLE} |
                       unsigned{DAT_EVD_STATE_CONFIG_SOLICITED});
}

// EVM-24, EP-CREATE-20 to 24
TEST_P(EventState, ModelsDoNotMixOnOneEvd) {
  const Evd spare_recv(server.ia, DAT_EVD_DTO_FLAG);
  const Evd spare_request(server.ia, DAT_EVD_DTO_FLAG);
  const Evd with_connections(server.ia, flags(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG));
  const Evd with_software(server.ia, flags(DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG));
  const DAT_EVD_HANDLE connection = server.connect.get();
  const DAT_COMPLETION_FLAGS models[] = {DAT_COMPLETION_EVD_THRESHOLD_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG,
                                         DAT_COMPLETION_SOLICITED_WAIT_FLAG};
  for (const DAT_COMPLETION_FLAGS first : models) {
    const Ep attached = make(recv, request, attributes(first));
    for (const DAT_COMPLETION_FLAGS second : models) {
      if (first == second) {
        const Ep another = make(recv, spare_request, attributes(second));
      } else {
        expect_refused(recv, spare_request, attributes(second), connection);
      }
    }
  }
  // Completions that may be silent go with no stream that never is.
  expect_refused(with_connections, spare_request, attributes(DAT_COMPLETION_UNSIGNALLED_FLAG), with_connections.get());
  expect_refused(with_connections, spare_request, attributes(DAT_COMPLETION_SOLICITED_WAIT_FLAG),
                 with_connections.get());
  expect_refused(with_software, spare_request, attributes(DAT_COMPLETION_UNSIGNALLED_FLAG), connection);
  expect_refused(with_software, spare_request, attributes(DAT_COMPLETION_SOLICITED_WAIT_FLAG), connection);
  // A solicited EVD takes receives only.
  expect_refused(spare_recv, spare_recv, attributes(DAT_COMPLETION_SOLICITED_WAIT_FLAG), connection);
  // All of one model, and threshold beside everything.
  const Ep unsignalled =
      make(spare_recv, spare_recv, attributes(DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG));
  const Ep beside(server.ia, server.pz, {with_connections.get(), with_software.get(), with_connections.get()},
                  attributes(DAT_COMPLETION_EVD_THRESHOLD_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG));
}

// EVD-WAIT-11, EVM-35
TEST_P(EventState, ThresholdAboveOneNeedsTheThresholdModel) {
  for (const DAT_COMPLETION_FLAGS model : {DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG}) {
    const Ep ep = make(recv, request, attributes(model));
    EXPECT_THAT(wait_evd(recv.get(), 0, 2).rc, HasType(DAT_INVALID_STATE));
    EXPECT_THAT(wait_evd(recv.get(), DAT_TIMEOUT_INFINITE, recv.qlen()).rc, HasType(DAT_INVALID_STATE));
    EXPECT_THAT(wait_evd(recv.get(), 0, 1).rc, HasType(DAT_TIMEOUT_EXPIRED));
    EXPECT_THAT(wait_evd(request.get(), 0, 2).rc, HasType(DAT_TIMEOUT_EXPIRED)) << "the other EVD is of its own model";
  }
  const Ep ep = make(recv, request, attributes(DAT_COMPLETION_DEFAULT_FLAG));
  EXPECT_THAT(wait_evd(recv.get(), 0, 2).rc, HasType(DAT_TIMEOUT_EXPIRED));
}

ANYDAT_OVER_ALL_WIRES(EventState);

}  // namespace
}  // namespace anydat::test
