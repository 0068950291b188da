// SPDX-License-Identifier: BSD-3-Clause
// dat_srq_create: chapter 1.4 of the rules.
#include "srq_fixture.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

class SrqCreate : public SrqTest {
 protected:
  DAT_RETURN create(DAT_COUNT max_recv_dtos, DAT_COUNT max_recv_iov, DAT_COUNT low_watermark) {
    DAT_SRQ_ATTR attr{.max_recv_dtos = max_recv_dtos, .max_recv_iov = max_recv_iov, .low_watermark = low_watermark};
    DAT_SRQ_HANDLE handle = DAT_HANDLE_NULL;
    const DAT_RETURN rc = dat_srq_create(server.ia.get(), server.pz.get(), &attr, &handle);
    if (rc == DAT_SUCCESS) {
      EXPECT_THAT(dat_srq_free(handle), Succeeds());
    }
    return rc;
  }
};
class SrqCreateHolding : public SrqHoldingTest {};

TEST_P(SrqCreate, NewQueueIsEmptyUnattachedAndOperational) {
  // SRQ-CREATE-1, SRQ-ST-1
  Srq srq(server.ia, server.pz, 10);
  const DAT_SRQ_PARAM param = srq.query();
  EXPECT_EQ(param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
  EXPECT_EQ(param.available_dto_count, 0);
  EXPECT_EQ(param.outstanding_dto_count, 0);
  EXPECT_THAT(srq.free(), Succeeds()) << "an endpoint is attached to a new SRQ";
}

TEST_P(SrqCreate, FailureLeavesTheHandleAsItWas) {
  // SRQ-CREATE-2, GEN-6
  DAT_SRQ_ATTR attr{.max_recv_dtos = 0, .max_recv_iov = 1, .low_watermark = 0};
  int marker = 0;
  DAT_SRQ_HANDLE handle = &marker;
  EXPECT_THAT(dat_srq_create(server.ia.get(), server.pz.get(), &attr, &handle), HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(handle, &marker);
}

TEST_P(SrqCreate, AcceptsTheRequestedNumberOfBuffers) {
  // SRQ-CREATE-3, SRQ-ACC-1
  for (const DAT_COUNT size : {1, 2, 10, kBuffers}) {
    const Srq srq(server.ia, server.pz, size);
    ASSERT_GE(srq.size(), size);
    buffers.post(srq, 0, size);
    EXPECT_EQ(counts(srq), (Counts{.available = size, .outstanding = size}));
  }
}

TEST_P(SrqCreate, AcceptsTheRequestedNumberOfSegments) {
  // SRQ-CREATE-4
  const DAT_COUNT most = server.ia.attributes().max_iov_segments_per_dto;
  for (const DAT_COUNT segments : {1, 2, most}) {
    const Srq srq(server.ia, server.pz, 1, segments);
    ASSERT_GE(srq.query().max_recv_iov, segments);
    std::vector<DAT_LMR_TRIPLET> iov;
    for (DAT_COUNT i = 0; i < segments; ++i) {
      iov.push_back(buffers.lmr().triplet(static_cast<std::size_t>(i), 1));
    }
    EXPECT_THAT(dat_srq_post_recv(srq.get(), segments, iov.data(), cookie(0)), Succeeds()) << segments << " segments";
  }
}

TEST_P(SrqCreate, SizesAreExactlyAsRequested) {
  // SRQ-CREATE-5: the recommendation, so that the worked example of SRQ-ACC-14 holds literally.
  for (const DAT_COUNT size : {1, 3, 10, 1000}) {
    const Srq srq(server.ia, server.pz, size, 3);
    EXPECT_EQ(srq.size(), size);
    EXPECT_EQ(srq.query().max_recv_iov, 3);
  }
}

TEST_P(SrqCreate, ZoneDecidesWhichMemoryMayBePosted) {
  // SRQ-CREATE-6
  const Pz other_zone(server.ia);
  const Srq here(server.ia, server.pz, 4);
  const Srq there(server.ia, other_zone, 4);
  EXPECT_THAT(buffers.try_post(here, 0), Succeeds());
  EXPECT_THAT(buffers.try_post(there, 0), HasType(DAT_PROTECTION_VIOLATION));
}

TEST_P(SrqCreate, DefaultWatermarkNeverFires) {
  // SRQ-CREATE-7
  const Srq srq(server.ia, server.pz, 4, 1, DAT_SRQ_LW_DEFAULT);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 2);
  pass_message(connection);
  pass_message(connection);
  EXPECT_EQ(srq.available(), 0);
  expect_no_event(server.ia.async_evd());
}

TEST_P(SrqCreate, PositiveWatermarkFiresAtOnceAndOnlyOnce) {
  // SRQ-CREATE-8
  for (const DAT_COUNT watermark : {1, 5, 10}) {
    const Srq srq(server.ia, server.pz, 10, 1, watermark);
    expect_low_watermark(server, srq);
    EXPECT_EQ(srq.query().low_watermark, watermark);
    const Connection connection = connect_pair(server, srq, client);
    buffers.post(srq, 0, 10);
    pass_message(connection);
    expect_no_event(server.ia.async_evd());
  }
}

TEST_P(SrqCreate, WatermarkOutsideTheQueueIsRefused) {
  // SRQ-CREATE-9
  for (const DAT_COUNT watermark : {-1, -2, 11, 1 << 30}) {
    EXPECT_THAT(create(10, 1, watermark), HasType(DAT_INVALID_PARAMETER)) << watermark;
  }
  expect_no_event(server.ia.async_evd());
}

TEST_P(SrqCreate, SizesMustBePositive) {
  // SRQ-CREATE-10
  for (const DAT_COUNT bad : {0, -1, -2, -1000}) {
    EXPECT_THAT(create(bad, 1, 0), HasType(DAT_INVALID_PARAMETER)) << "max_recv_dtos " << bad;
    EXPECT_THAT(create(1, bad, 0), HasType(DAT_INVALID_PARAMETER)) << "max_recv_iov " << bad;
  }
}

TEST_P(SrqCreate, SizesReachTheAdapterLimitsAndNoFurther) {
  // SRQ-CREATE-11
  const DAT_IA_ATTR limits = server.ia.attributes();
  EXPECT_THAT(create(limits.max_recv_per_srq, 1, 0), Succeeds());
  EXPECT_THAT(create(1, limits.max_iov_segments_per_dto, 0), Succeeds());
  EXPECT_THAT(create(limits.max_recv_per_srq + 1, 1, 0), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create(1, limits.max_iov_segments_per_dto + 1, 0), HasType(DAT_INVALID_PARAMETER));
}

TEST_P(SrqCreate, NullPointersAreRefused) {
  // SRQ-CREATE-12
  DAT_SRQ_ATTR attr{.max_recv_dtos = 1, .max_recv_iov = 1, .low_watermark = 0};
  DAT_SRQ_HANDLE handle = DAT_HANDLE_NULL;
  const DAT_RETURN without_attr = dat_srq_create(server.ia.get(), server.pz.get(), nullptr, &handle);
  EXPECT_THAT(without_attr, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(without_attr, HasSubtype(DAT_INVALID_ARG3));
  const DAT_RETURN without_handle = dat_srq_create(server.ia.get(), server.pz.get(), &attr, nullptr);
  EXPECT_THAT(without_handle, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(without_handle, HasSubtype(DAT_INVALID_ARG4));
}

TEST_P(SrqCreate, MisalignedAttributesAreRefused) {
  // GEN-14
  alignas(DAT_SRQ_ATTR) std::byte storage[sizeof(DAT_SRQ_ATTR) + 4]{};
  DAT_SRQ_HANDLE handle = DAT_HANDLE_NULL;
  for (const std::size_t offset : {1, 2, 3}) {
    auto* const attr = static_cast<DAT_SRQ_ATTR*>(static_cast<void*>(storage + offset));
    EXPECT_THAT(dat_srq_create(server.ia.get(), server.pz.get(), attr, &handle), HasType(DAT_INVALID_PARAMETER));
  }
}

TEST_P(SrqCreate, BadHandlesAreRefused) {
  // SRQ-CREATE-13, GEN-2, GEN-3
  DAT_SRQ_ATTR attr{.max_recv_dtos = 1, .max_recv_iov = 1, .low_watermark = 0};
  DAT_SRQ_HANDLE handle = DAT_HANDLE_NULL;
  Pz freed(server.ia);
  const DAT_PZ_HANDLE stale = freed.get();
  ASSERT_THAT(freed.free(), Succeeds());
  for (const DAT_HANDLE ia : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.pz.get()}) {
    const DAT_RETURN rc = dat_srq_create(ia, server.pz.get(), &attr, &handle);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_IA));
  }
  for (const DAT_HANDLE pz : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), server.ia.get(), server.recv.get(), stale}) {
    const DAT_RETURN rc = dat_srq_create(server.ia.get(), pz, &attr, &handle);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_PZ));
  }
}

TEST_P(SrqCreate, ZoneOfAnotherInstanceIsRefused) {
  // GEN-12
  DAT_SRQ_ATTR attr{.max_recv_dtos = 1, .max_recv_iov = 1, .low_watermark = 0};
  DAT_SRQ_HANDLE handle = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_srq_create(server.ia.get(), client.pz.get(), &attr, &handle), HasType(DAT_INVALID_HANDLE));
}

TEST_P(SrqCreate, NumberOfQueuesIsLimitedByTheAdapter) {
  // SRQ-CREATE-14, GEN-9
  const DAT_COUNT most = server.ia.attributes().max_srqs;
  std::vector<Srq> all;
  for (DAT_COUNT i = 0; i < most; ++i) {
    all.emplace_back(server.ia, server.pz, 1, 1);
  }
  const DAT_RETURN rc = create(1, 1, 0);
  EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_THAT(rc, HasSubtype(DAT_RESOURCE_SRQ));
  all.pop_back();
  EXPECT_THAT(create(1, 1, 0), Succeeds()) << "a freed SRQ leaves its place to another";
}

TEST_P(SrqCreate, EveryModelIsSupportedAsTheAttributesSay) {
  // SRQ-CREATE-15, ATTR-1, ATTR-2, GEN-13, SRQ-LW-12
  const DAT_PROVIDER_ATTR provider = server.ia.provider();
  const bool software = GetParam().ia_name.starts_with("soft");  // a device knows some things that it does not tell
  EXPECT_EQ(provider.srq_supported, DAT_TRUE);
  EXPECT_EQ(provider.srq_watermarks_supported, software ? 0x111 : 0x001);
  EXPECT_EQ(provider.srq_ep_pz_difference_supported, software ? DAT_TRUE : DAT_FALSE);
  EXPECT_EQ(provider.srq_info_supported, 0x11);
  EXPECT_EQ(provider.ep_recv_info_supported, software ? 0x11 : 0x00);
  EXPECT_THAT(create(4, 1, 4), Succeeds());
  const Srq srq(server.ia, server.pz, 4);
  EXPECT_THAT(dat_srq_set_lw(srq.get(), 2), Succeeds());
  EXPECT_THAT(dat_srq_resize(srq.get(), 8), Succeeds());
  const Ep ep(server, srq);
  if (software) {
    EXPECT_THAT(dat_ep_set_watermark(ep.get(), 3, 4), Succeeds());
  } else {
    EXPECT_THAT(dat_ep_set_watermark(ep.get(), 3, 4), HasType(DAT_MODEL_NOT_SUPPORTED));
  }
}

TEST_P(SrqCreate, KeepsItsZoneInUse) {
  // SRQ-CREATE-16
  Pz zone(server.ia);
  {
    const Srq srq(server.ia, zone, 1);
    const DAT_RETURN rc = zone.free();
    EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_PZ_IN_USE));
    EXPECT_EQ(srq.query().pz_handle, zone.get());
  }
  EXPECT_THAT(zone.free(), Succeeds());
}

TEST_P(SrqCreate, AttributesAreOnlyReadDuringTheCall) {
  // SRQ-CREATE-17
  const DAT_SRQ_ATTR before{.max_recv_dtos = 3, .max_recv_iov = 2, .low_watermark = 0};
  auto attr = std::make_unique<DAT_SRQ_ATTR>(before);
  DAT_SRQ_HANDLE handle = DAT_HANDLE_NULL;
  require(dat_srq_create(server.ia.get(), server.pz.get(), attr.get(), &handle), "dat_srq_create");
  EXPECT_EQ(attr->max_recv_dtos, before.max_recv_dtos);
  EXPECT_EQ(attr->max_recv_iov, before.max_recv_iov);
  EXPECT_EQ(attr->low_watermark, before.low_watermark);
  *attr = {.max_recv_dtos = 77, .max_recv_iov = 77, .low_watermark = 77};
  attr.reset();
  DAT_SRQ_PARAM param{};
  EXPECT_THAT(dat_srq_query(handle, DAT_SRQ_FIELD_ALL, &param), Succeeds());
  EXPECT_EQ(param.max_recv_dtos, 3);
  EXPECT_EQ(param.max_recv_iov, 2);
  EXPECT_EQ(param.low_watermark, 0);
  EXPECT_THAT(dat_srq_free(handle), Succeeds());
}

TEST_P(SrqCreate, EndpointsComeLaterAndMayOrMayNotShareTheirReceiveEvd) {
  // SRQ-CREATE-18
  const Srq srq(server.ia, server.pz, 10);
  buffers.post(srq, 0, 3);
  const Evd own_recv(server.ia, DAT_EVD_DTO_FLAG);
  Connection first = connect_pair(server, srq, client);
  Connection second = connect_pair(server, srq, client);
  Connection third{
      .server = Ep(server.ia, server.pz,
                   {.recv = own_recv.get(), .request = server.request.get(), .connect = server.connect.get()}, srq,
                   default_srq_ep_attr()),
      .client = Ep(client)};
  connect_pair(server, third.server.get(), third.client.get());
  send_and_wait(first.client, 1);
  send_and_wait(second.client, 2);
  send_and_wait(third.client, 3);
  EXPECT_EQ(expect_completion(own_recv.get()).ep_handle, third.server.get());
  std::vector<DAT_EP_HANDLE> shared;
  for (const auto& dto : expect_completions(server.recv.get(), 2)) {
    shared.push_back(dto.ep_handle);
  }
  EXPECT_THAT(shared, testing::UnorderedElementsAre(first.server.get(), second.server.get()));
}

TEST_P(SrqCreate, FewBuffersServeManyConnections) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // SRQ-CREATE-19
  constexpr int kConnections = 12;
  constexpr int kMessages = 5;
  const Srq srq(server.ia, server.pz, 2);
  buffers.post(srq, 0, 2);
  std::vector<Connection> connections;
  for (int i = 0; i < kConnections; ++i) {
    connections.push_back(connect_pair(server, srq, client));
  }
  for (int message = 0; message < kMessages; ++message) {
    for (const Connection& connection : connections) {
      send(connection.client, static_cast<DAT_UINT64>(message));
    }
  }
  for (int i = 0; i < kConnections * kMessages; ++i) {
    const auto dto = expect_completion(server.recv.get());
    buffers.post(srq, static_cast<int>(dto.user_cookie.as_64), 1);
  }
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 2}));
}

TEST_P(SrqCreate, AnyEndpointMayTakeAnyBufferSoAllMustFitTheLargestMessage) {
  // SRQ-CREATE-20
  const Srq srq(server.ia, server.pz, 4);
  const Connection small = connect_pair(server, srq, client);
  const Connection large = connect_pair(server, srq, client);
  buffers.post(srq, 0, 4);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(pass_message(small, 1, 16).transfered_length, 16u);
    EXPECT_EQ(pass_message(large, 2, kBytes).transfered_length, kBytes);
  }
}

TEST_P(SrqCreateHolding, OneEndpointMayHoldSeveralBuffers) {
  // SRQ-CREATE-21, SRQ-ACC-16
  const Srq srq(server.ia, server.pz, kLargeBuffers);
  const Ep ep(server, srq);
  const StoppedSender sender(server, ep, GetParam(), 0, 3);
  large.post(srq, 0, 5);
  EXPECT_TRUE(eventually_held(ep, 3)) << held(ep);
  EXPECT_EQ(counts(srq), (Counts{.available = 2, .outstanding = 5})) << "three are neither on the SRQ nor on an EVD";
  EXPECT_FALSE(poll_event(server.recv.get()));
}

ANYDAT_OVER_ALL_WIRES(SrqCreate);
ANYDAT_OVER_ALL_WIRES(SrqCreateHolding);

}  // namespace
}  // namespace anydat::test
