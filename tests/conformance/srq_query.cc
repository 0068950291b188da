// SPDX-License-Identifier: BSD-3-Clause
// dat_srq_query and the state of an SRQ: chapters 1.1, 1.3 and 1.7 of the rules.
#include <atomic>
#include <cstddef>
#include <cstring>

#include "srq_states.h"
#include "srq_traffic.h"

namespace anydat::test {
namespace {

class SrqType : public SrqTest {};
class SrqQuery : public SrqTest {};
class SrqState : public SrqTest {};

TEST_P(SrqType, AttributesHaveTheLayoutOfTheStandard) {
  // SRQ-TYPE-1
  EXPECT_EQ(sizeof(DAT_SRQ_ATTR), 12u);
  EXPECT_EQ(offsetof(DAT_SRQ_ATTR, max_recv_dtos), 0u);
  EXPECT_EQ(offsetof(DAT_SRQ_ATTR, max_recv_iov), 4u);
  EXPECT_EQ(offsetof(DAT_SRQ_ATTR, low_watermark), 8u);
}

TEST_P(SrqType, ParametersHaveTheLayoutOfTheStandard) {
  // SRQ-TYPE-2
  EXPECT_EQ(sizeof(DAT_SRQ_PARAM), 48u);
  EXPECT_EQ(offsetof(DAT_SRQ_PARAM, ia_handle), 0u);
  EXPECT_EQ(offsetof(DAT_SRQ_PARAM, srq_state), 8u);
  EXPECT_EQ(offsetof(DAT_SRQ_PARAM, pz_handle), 16u);
  EXPECT_EQ(offsetof(DAT_SRQ_PARAM, max_recv_dtos), 24u);
  EXPECT_EQ(offsetof(DAT_SRQ_PARAM, max_recv_iov), 28u);
  EXPECT_EQ(offsetof(DAT_SRQ_PARAM, low_watermark), 32u);
  EXPECT_EQ(offsetof(DAT_SRQ_PARAM, available_dto_count), 36u);
  EXPECT_EQ(offsetof(DAT_SRQ_PARAM, outstanding_dto_count), 40u);
}

TEST_P(SrqType, MaskHasTheValuesOfTheStandard) {
  // SRQ-TYPE-3
  EXPECT_EQ(DAT_SRQ_FIELD_IA_HANDLE, 0x01);
  EXPECT_EQ(DAT_SRQ_FIELD_SRQ_STATE, 0x02);
  EXPECT_EQ(DAT_SRQ_FIELD_PZ_HANDLE, 0x04);
  EXPECT_EQ(DAT_SRQ_FIELD_MAX_RECV_DTO, 0x08);
  EXPECT_EQ(DAT_SRQ_FIELD_MAX_RECV_IOV, 0x10);
  EXPECT_EQ(DAT_SRQ_FIELD_LOW_WATERMARK, 0x20);
  EXPECT_EQ(DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT, 0x40);
  EXPECT_EQ(DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT, 0x80);
  EXPECT_EQ(DAT_SRQ_FIELD_ALL, 0xFF);
}

TEST_P(SrqType, HandleKnowsItsType) {
  // SRQ-TYPE-4
  const Srq srq(server.ia, server.pz, 1);
  DAT_HANDLE_TYPE type{};
  EXPECT_THAT(dat_get_handle_type(srq.get(), &type), Succeeds());
  EXPECT_EQ(type, DAT_HANDLE_TYPE_SRQ);
  EXPECT_EQ(type, 10);
}

TEST_P(SrqQuery, EveryMaskFillsTheFieldsItNames) {
  // SRQ-QUERY-1, GEN-7
  const Srq srq(server.ia, server.pz, 10, 3);
  buffers.post(srq, 0, 4);
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 2), Succeeds());
  for (int mask = 0; mask <= DAT_SRQ_FIELD_ALL; ++mask) {
    DAT_SRQ_PARAM param;
    std::memset(&param, 0x5A, sizeof(param));
    ASSERT_THAT(dat_srq_query(srq.get(), static_cast<DAT_SRQ_PARAM_MASK>(mask), &param), Succeeds()) << mask;
    EXPECT_TRUE((mask & DAT_SRQ_FIELD_IA_HANDLE) == 0 || param.ia_handle == server.ia.get());
    EXPECT_TRUE((mask & DAT_SRQ_FIELD_SRQ_STATE) == 0 || param.srq_state == DAT_SRQ_STATE_OPERATIONAL);
    EXPECT_TRUE((mask & DAT_SRQ_FIELD_PZ_HANDLE) == 0 || param.pz_handle == server.pz.get());
    EXPECT_TRUE((mask & DAT_SRQ_FIELD_MAX_RECV_DTO) == 0 || param.max_recv_dtos == 10);
    EXPECT_TRUE((mask & DAT_SRQ_FIELD_MAX_RECV_IOV) == 0 || param.max_recv_iov == 3);
    EXPECT_TRUE((mask & DAT_SRQ_FIELD_LOW_WATERMARK) == 0 || param.low_watermark == 2);
    EXPECT_TRUE((mask & DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT) == 0 || param.available_dto_count == 4);
    EXPECT_TRUE((mask & DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT) == 0 || param.outstanding_dto_count == 4);
  }
}

TEST_P(SrqQuery, HandlesAreThoseOfTheCreation) {
  // SRQ-QUERY-2
  const Pz other(server.ia);
  const Srq srq(server.ia, other, 1);
  EXPECT_EQ(srq.query().ia_handle, server.ia.get());
  EXPECT_EQ(srq.query().pz_handle, other.get());
}

TEST_P(SrqQuery, LimitsAreTheActualOnesAlsoAfterAResize) {
  // SRQ-QUERY-3
  const Srq srq(server.ia, server.pz, 7, 2);
  EXPECT_GE(srq.query().max_recv_dtos, 7);
  EXPECT_GE(srq.query().max_recv_iov, 2);
  ASSERT_THAT(dat_srq_resize(srq.get(), 23), Succeeds());
  EXPECT_GE(srq.query().max_recv_dtos, 23);
  const DAT_COUNT actual = srq.size();
  buffers.post(srq, 0, actual);
  EXPECT_THAT(buffers.try_post(srq, 0), HasType(DAT_INSUFFICIENT_RESOURCES)) << "the reported limit is the real one";
}

TEST_P(SrqQuery, WatermarkIsTheValueLastSetArmedOrFired) {
  // SRQ-QUERY-4
  const Srq created(server.ia, server.pz, 10, 1, 4);
  expect_low_watermark(server, created);
  EXPECT_EQ(created.query().low_watermark, 4) << "fired at creation";
  const Srq srq(server.ia, server.pz, 10);
  EXPECT_EQ(srq.query().low_watermark, DAT_SRQ_LW_DEFAULT);
  buffers.post(srq, 0, 5);
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 3), Succeeds());
  EXPECT_EQ(srq.query().low_watermark, 3) << "armed";
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 9), Succeeds());
  expect_low_watermark(server, srq);
  EXPECT_EQ(srq.query().low_watermark, 9) << "fired";
}

TEST_P(SrqQuery, CountsAreReal) {
  // SRQ-QUERY-6, SRQ-QUERY-7
  const Srq srq(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 3);
  EXPECT_EQ(counts(srq), (Counts{.available = 3, .outstanding = 3}));
  send(connection.client, 1);
  expect_completed(srq, connection.server, 2);
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 3}));
  expect_completion(server.recv.get());
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 2}));
}

TEST_P(SrqQuery, UnknownMaskBitsAreRefused) {
  // SRQ-QUERY-8, GEN-7
  const Srq srq(server.ia, server.pz, 1);
  DAT_SRQ_PARAM param{};
  for (const unsigned mask : {0x100u, 0x1FFu, 0x80000000u, ~0u}) {
    EXPECT_THAT(dat_srq_query(srq.get(), static_cast<DAT_SRQ_PARAM_MASK>(mask), &param),
                HasType(DAT_INVALID_PARAMETER));
  }
}

TEST_P(SrqQuery, NullResultIsRefused) {
  // SRQ-QUERY-9
  const Srq srq(server.ia, server.pz, 1);
  const DAT_RETURN rc = dat_srq_query(srq.get(), DAT_SRQ_FIELD_ALL, nullptr);
  EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG3));
}

TEST_P(SrqQuery, BadHandlesAreRefused) {
  // SRQ-QUERY-10, GEN-2
  DAT_SRQ_PARAM param{};
  std::uint64_t foreign[8]{};
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.ia.get(), server.recv.get(),
                               server.pz.get(), static_cast<DAT_HANDLE>(foreign)}) {
    const DAT_RETURN rc = dat_srq_query(bad, DAT_SRQ_FIELD_ALL, &param);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_SRQ));
  }
}

TEST_P(SrqQuery, WorksBesideTraffic) {
  // SRQ-QUERY-11, SRQ-ACC-4, SRQ-ACC-13, MT-3
  const Srq srq(server.ia, server.pz, 32);
  SrqTraffic traffic(server, client, srq, {.connections = 8, .buffers = 32});
  std::atomic<int> wrong = 0;
  traffic.run(200, [&] {
    const DAT_SRQ_PARAM param = srq.query();
    const bool good = 0 <= param.available_dto_count && param.available_dto_count <= param.outstanding_dto_count &&
                      param.outstanding_dto_count <= param.max_recv_dtos;
    wrong += good ? 0 : 1;
  });
  EXPECT_EQ(wrong, 0) << "queries whose values did not fit together";
}

TEST_P(SrqQuery, ChangesNothing) {
  // SRQ-QUERY-12
  const Srq srq(server.ia, server.pz, 10);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 4);
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 3), Succeeds());
  send_and_wait(connection.client, 1);
  expect_completed(srq, connection.server, 3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(counts(srq), (Counts{.available = 3, .outstanding = 4}));
  }
  expect_no_event(server.ia.async_evd());
  expect_completion(server.recv.get());
  pass_message(connection, 2);
  expect_low_watermark(server, srq);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(srq.query().low_watermark, 3);
  }
  expect_no_event(server.ia.async_evd());
}

TEST_P(SrqState, StaysOperationalWhateverConsumersAndPeersDo) {
  // SRQ-ST-1, SRQ-ST-2, SRQ-ST-5, SRQ-QUERY-5
  const Srq srq(server.ia, server.pz, 10);
  {
    const Connection connection = connect_pair(server, srq, client);
    DAT_LMR_TRIPLET tiny = buffers.lmr().triplet(0, 4);
    ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &tiny, cookie(0)), Succeeds());
    send(connection.client, 1, 8);  // too long: the endpoint breaks
    expect_completion(server.recv.get(), DAT_DTO_ERR_LOCAL_LENGTH);
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  }
  EXPECT_THAT(dat_srq_resize(srq.get(), -1), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_srq_set_lw(srq.get(), 1000), HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(srq.query().srq_state, DAT_SRQ_STATE_OPERATIONAL);
  expect_no_event(server.ia.async_evd());  // DAT_SRQ_TRANSFER_TO_ERROR would be announced here
  const Connection fresh = connect_pair(server, srq, client);
  buffers.post(srq, 0, 1);
  send(fresh.client, 3);
  expect_completion(server.recv.get());
}

TEST_P(SrqState, CallsDoNotDependOnTheStateOfEndpoints) {
  // SRQ-ST-4, SRQ-LW-19
  for (const DAT_EP_STATE state : reachable_states(server.ia)) {
    const Srq srq(server.ia, server.pz, 10);
    const EpInState ep(server, client, srq, state);
    EXPECT_EQ(srq.query().srq_state, DAT_SRQ_STATE_OPERATIONAL);
    EXPECT_THAT(buffers.try_post(srq, 0), Succeeds());
    EXPECT_THAT(dat_srq_set_lw(srq.get(), 1), Succeeds());
    EXPECT_THAT(dat_srq_resize(srq.get(), 5), Succeeds());
    EXPECT_EQ(counts(srq), (Counts{.available = 1, .outstanding = 1}));
  }
}

TEST_P(SrqState, FateOfOneEndpointTouchesNeitherQueueNorOthers) {
  // SRQ-ST-6
  const Srq srq(server.ia, server.pz, 10);
  const Connection survivor = connect_pair(server, srq, client);
  buffers.post(srq, 0, 5);
  {
    const EpInState disconnected(server, client, srq, DAT_EP_STATE_DISCONNECTED);
    EXPECT_EQ(counts(srq), (Counts{.available = 5, .outstanding = 5})) << "disconnected";
    ASSERT_THAT(dat_ep_reset(disconnected.get().get()), Succeeds());
    EXPECT_EQ(counts(srq), (Counts{.available = 5, .outstanding = 5})) << "reset";
  }
  { const EpInState freed_while_connected(server, client, srq, DAT_EP_STATE_CONNECTED); }
  EXPECT_EQ(counts(srq), (Counts{.available = 5, .outstanding = 5})) << "freed";
  EXPECT_EQ(srq.query().srq_state, DAT_SRQ_STATE_OPERATIONAL);
  EXPECT_EQ(survivor.server.state(), DAT_EP_STATE_CONNECTED);
  for (DAT_UINT64 i = 0; i < 5; ++i) {
    pass_message(survivor, i);
  }
}

ANYDAT_OVER_ALL_WIRES(SrqType);
ANYDAT_OVER_ALL_WIRES(SrqQuery);
ANYDAT_OVER_ALL_WIRES(SrqState);

}  // namespace
}  // namespace anydat::test
