// SPDX-License-Identifier: BSD-3-Clause
// dat_ep_create: section 3.1 of the rules. What EVDs may be shared is in ep_evd_sharing.cc.
#include <atomic>
#include <functional>
#include <limits>
#include <thread>

#include "ep_fixture.h"
#include "support/versions.h"

namespace anydat::test {
namespace {

class EpCreate : public EpTest {
 protected:
  struct Arguments {
    DAT_IA_HANDLE ia;
    DAT_PZ_HANDLE pz;
    EpEvds evds;
    DAT_EP_ATTR attr = default_ep_attr();
  };

  Arguments good() { return {.ia = server.ia.get(), .pz = server.pz.get(), .evds = evds_of(server)}; }

  // Creates and, if that worked, frees again.
  static DAT_RETURN create(const Arguments& args) {
    DAT_EP_HANDLE handle = DAT_HANDLE_NULL;
    const DAT_RETURN rc =
        dat_ep_create(args.ia, args.pz, args.evds.recv, args.evds.request, args.evds.connect, &args.attr, &handle);
    if (rc == DAT_SUCCESS) {
      EXPECT_THAT(dat_ep_free(handle), Succeeds());
    }
    return rc;
  }

  DAT_RETURN create_with(const std::function<void(DAT_EP_ATTR&)>& change) {
    Arguments args = good();
    change(args.attr);
    return create(args);
  }
};

TEST_P(EpCreate, StartsUnconnectedAndIdle) {
  // EP-CREATE-1, EP-CREATE-29
  const Ep ep(server);
  DAT_EP_STATE state = DAT_EP_STATE_CONNECTED;
  DAT_BOOLEAN recv_idle = DAT_FALSE;
  DAT_BOOLEAN request_idle = DAT_FALSE;
  ASSERT_THAT(dat_ep_get_status(ep.get(), &state, &recv_idle, &request_idle), Succeeds());
  EXPECT_EQ(state, DAT_EP_STATE_UNCONNECTED);
  EXPECT_EQ(recv_idle, DAT_TRUE);
  EXPECT_EQ(request_idle, DAT_TRUE);
  EXPECT_FALSE(poll_event(server.recv.get()));
  EXPECT_FALSE(poll_event(server.request.get()));
  EXPECT_FALSE(poll_event(server.connect.get()));
}

TEST_P(EpCreate, FailureCreatesNothing) {
  // EP-CREATE-2, GEN-6: the handle is undefined; nothing else may remain.
  Pz lonely(server.ia);
  Arguments args = good();
  args.pz = lonely.get();
  args.attr.max_request_iov = -1;
  EXPECT_THAT(create(args), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(lonely.free(), Succeeds()) << "a refused endpoint uses the zone";
}

TEST_P(EpCreate, ZoneMayBeGivenLater) {
  // EP-CREATE-3
  Arguments args = good();
  args.pz = DAT_HANDLE_NULL;
  EXPECT_THAT(create(args), Succeeds());
}

TEST_P(EpCreate, ZoneGovernsLocalMemory) {
  // EP-CREATE-4, PZ-CREATE-3
  const Pz other(server.ia);
  const Buffers foreign(server.ia, other, 1, kBytes);
  const Pair pair = make_connected_pair();
  EXPECT_THAT(try_recv(pair.server, foreign, 0), HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_THAT(try_send(pair.server, foreign, 0), HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_THAT(try_recv(pair.server, server_buffers, 0), Succeeds());
  EXPECT_THAT(try_send(pair.server, server_buffers, 1), Succeeds());
}

TEST_P(EpCreate, WithoutARecvEvdThereAreNoReceives) {
  // EP-CREATE-5, EP-CREATE-14
  Arguments args = good();
  args.evds.recv = DAT_HANDLE_NULL;
  EXPECT_THAT(create(args), HasType(DAT_INVALID_PARAMETER));  // 64 receives without an EVD
  args.attr.max_recv_dtos = 0;
  EXPECT_THAT(create(args), Succeeds());
  args.attr.max_recv_iov = 0;
  EXPECT_THAT(create(args), Succeeds());

  const OwnEvds evds(server);
  const Ep sender(server.ia, server.pz, args.evds, args.attr);
  EXPECT_EQ(sender.query().recv_evd_handle, static_cast<DAT_EVD_HANDLE>(DAT_HANDLE_NULL));
  const Ep receiver(client);
  connect_pair(client, receiver.get(), sender.get());
  post_recv(receiver, client_buffers, 0);
  post_send(sender, server_buffers, 0);
  expect_completion(server.request.get());
  expect_completion(client.recv.get());
}

TEST_P(EpCreate, WithoutARequestEvdThereAreNoRequests) {
  // EP-CREATE-6, EP-CREATE-14
  Arguments args = good();
  args.evds.request = DAT_HANDLE_NULL;
  EXPECT_THAT(create(args), HasType(DAT_INVALID_PARAMETER));
  args.attr.max_request_dtos = 0;
  EXPECT_THAT(create(args), Succeeds());

  const Ep receiver(server.ia, server.pz, args.evds, args.attr);
  EXPECT_EQ(receiver.query().request_evd_handle, static_cast<DAT_EVD_HANDLE>(DAT_HANDLE_NULL));
  const Ep sender(client);
  connect_pair(client, sender.get(), receiver.get());
  post_recv(receiver, server_buffers, 0);
  post_send(sender, client_buffers, 0);
  expect_completion(server.recv.get());
}

TEST_P(EpCreate, ConnectEvdMayBeGivenLater) {
  // EP-CREATE-7
  Arguments args = good();
  args.evds.connect = DAT_HANDLE_NULL;
  const Ep ep(server.ia, server.pz, args.evds, args.attr);
  EXPECT_EQ(ep.query().connect_evd_handle, static_cast<DAT_EVD_HANDLE>(DAT_HANDLE_NULL));
  DAT_EP_PARAM param{};
  param.connect_evd_handle = server.connect.get();
  ASSERT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param), Succeeds());
  const Ep peer(client);
  connect_pair(client, peer.get(), ep.get());
}

TEST_P(EpCreate, EveryKindOfEventHasItsEvd) {
  // EP-CREATE-8, EP-CREATE-9, DTO-3
  const Pair pair = make_connected_pair();  // one ESTABLISHED on each connect EVD
  post_recv(pair.server, server_buffers, 0);
  post_send(pair.client, client_buffers, 0);
  expect_completion(pair.server_evds.recv.get());
  expect_completion(pair.client_evds.request.get());
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.client.get());
  expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED, pair.server.get());
  for (const OwnEvds* evds : {&pair.server_evds, &pair.client_evds}) {
    EXPECT_FALSE(poll_event(evds->recv.get()));
    EXPECT_FALSE(poll_event(evds->request.get()));
    EXPECT_FALSE(poll_event(evds->connect.get()));
  }
}

TEST_P(EpCreate, QueueSizesAreAtLeastAndTheRestExactlyAsRequested) {
  // EP-CREATE-10
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_message_size = 12345;
  attr.max_rdma_size = 23456;
  attr.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
  attr.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
  attr.max_recv_dtos = 21;
  attr.max_request_dtos = 7;
  attr.max_recv_iov = 5;
  attr.max_request_iov = 3;
  attr.max_rdma_read_in = 2;
  attr.max_rdma_read_out = 3;
  attr.max_rdma_read_iov = 2;
  attr.max_rdma_write_iov = 3;
  const Ep ep(server, attr);
  const DAT_EP_ATTR actual = ep.query().ep_attr;
  EXPECT_GE(actual.max_recv_dtos, 21);
  EXPECT_GE(actual.max_request_dtos, 7);
  EXPECT_GE(actual.max_recv_iov, 5);
  EXPECT_GE(actual.max_request_iov, 3);
  EXPECT_EQ(actual.service_type, DAT_SERVICE_TYPE_RC);
  EXPECT_EQ(actual.max_message_size, 12345u);
  EXPECT_EQ(actual.max_rdma_size, 23456u);
  EXPECT_EQ(actual.qos, DAT_QOS_BEST_EFFORT);
  EXPECT_EQ(actual.recv_completion_flags, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
  EXPECT_EQ(actual.request_completion_flags, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
  EXPECT_EQ(actual.max_rdma_read_in, 2);
  EXPECT_EQ(actual.max_rdma_read_out, 3);
  EXPECT_EQ(actual.max_rdma_read_iov, 2);
  EXPECT_EQ(actual.max_rdma_write_iov, 3);
}

TEST_P(EpCreate, EvdsMustCarryTheirKindOfEvent) {
  // EP-CREATE-12, GEN-2, GEN-12
  const auto refused = [&](const std::function<void(Arguments&)>& change, DAT_RETURN subtype) {
    Arguments args = good();
    change(args);
    const DAT_RETURN rc = create(args);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(subtype));
  };
  Evd freed(server.ia, DAT_EVD_DTO_FLAG);
  const DAT_EVD_HANDLE stale = freed.get();
  freed.reset();
  for (const DAT_HANDLE bad :
       {server.connect.get(), server.requests.get(), server.pz.get(), client.recv.get(), stale}) {
    refused([&](Arguments& args) { args.evds.recv = bad; }, DAT_INVALID_HANDLE_EVD_RECV);
    refused([&](Arguments& args) { args.evds.request = bad; }, DAT_INVALID_HANDLE_EVD_REQUEST);
  }
  for (const DAT_HANDLE bad :
       {server.recv.get(), server.requests.get(), server.pz.get(), client.connect.get(), stale}) {
    refused([&](Arguments& args) { args.evds.connect = bad; }, DAT_INVALID_HANDLE_EVD_CONN);
  }
  EXPECT_THAT(create(good()), Succeeds());
}

TEST_P(EpCreate, AdapterAndZoneMustBeLiveAndBelongTogether) {
  // GEN-2, GEN-12, PZ-FREE-2
  const auto refused = [&](const std::function<void(Arguments&)>& change, DAT_RETURN subtype) {
    Arguments args = good();
    change(args);
    const DAT_RETURN rc = create(args);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(subtype));
  };
  Pz freed(server.ia);
  const DAT_PZ_HANDLE stale = freed.get();
  freed.reset();
  refused([](Arguments& args) { args.ia = DAT_HANDLE_NULL; }, DAT_INVALID_HANDLE_IA);
  refused([&](Arguments& args) { args.ia = server.pz.get(); }, DAT_INVALID_HANDLE_IA);
  refused([&](Arguments& args) { args.pz = stale; }, DAT_INVALID_HANDLE_PZ);
  refused([&](Arguments& args) { args.pz = server.recv.get(); }, DAT_INVALID_HANDLE_PZ);
  refused([&](Arguments& args) { args.pz = client.pz.get(); }, DAT_INVALID_HANDLE_PZ);
}

TEST_P(EpCreate, ServiceTypeIsReliableConnection) {
  // EP-CREATE-13
  EXPECT_THAT(create_with([](DAT_EP_ATTR& attr) { attr.service_type = kNoServiceType; }),
              HasType(DAT_INVALID_PARAMETER));
}

TEST_P(EpCreate, AnEvdAndItsQueueBelongTogether) {
  // EP-CREATE-14
  EXPECT_THAT(create_with([](DAT_EP_ATTR& attr) { attr.max_recv_dtos = 0; }), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create_with([](DAT_EP_ATTR& attr) { attr.max_request_dtos = 0; }), HasType(DAT_INVALID_PARAMETER));
}

TEST_P(EpCreate, VectorsHoldASegmentAndNoCountIsNegative) {
  // EP-CREATE-15
  EXPECT_THAT(create_with([](DAT_EP_ATTR& attr) { attr.max_request_iov = 0; }), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create_with([](DAT_EP_ATTR& attr) { attr.max_recv_iov = 0; }), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create_with([](DAT_EP_ATTR& attr) { attr.max_request_iov = 1; }), Succeeds());
  EXPECT_THAT(create_with([](DAT_EP_ATTR& attr) { attr.max_recv_iov = 1; }), Succeeds());
  for (const auto member :
       {&DAT_EP_ATTR::max_recv_dtos, &DAT_EP_ATTR::max_request_dtos, &DAT_EP_ATTR::max_recv_iov,
        &DAT_EP_ATTR::max_request_iov, &DAT_EP_ATTR::max_rdma_read_in, &DAT_EP_ATTR::max_rdma_read_out,
        &DAT_EP_ATTR::max_rdma_read_iov, &DAT_EP_ATTR::max_rdma_write_iov}) {
    for (const DAT_COUNT bad : {-1, -2, std::numeric_limits<DAT_COUNT>::min()}) {
      EXPECT_THAT(create_with([&](DAT_EP_ATTR& attr) { attr.*member = bad; }), HasType(DAT_INVALID_PARAMETER)) << bad;
    }
  }
}

TEST_P(EpCreate, LimitsOfTheAdapterAreInclusive) {
  // EP-CREATE-16, ATTR-1
  const DAT_IA_ATTR limits = server.ia.attributes();
  const std::vector<std::pair<DAT_COUNT DAT_EP_ATTR::*, DAT_COUNT>> counts{
      {&DAT_EP_ATTR::max_recv_dtos, limits.max_dto_per_ep},
      {&DAT_EP_ATTR::max_request_dtos, limits.max_dto_per_ep},
      {&DAT_EP_ATTR::max_recv_iov, limits.max_iov_segments_per_dto},
      {&DAT_EP_ATTR::max_request_iov, limits.max_iov_segments_per_dto},
      {&DAT_EP_ATTR::max_rdma_read_in, limits.max_rdma_read_per_ep_in},
      {&DAT_EP_ATTR::max_rdma_read_out, limits.max_rdma_read_per_ep_out},
      {&DAT_EP_ATTR::max_rdma_read_iov, limits.max_iov_segments_per_rdma_read},
      {&DAT_EP_ATTR::max_rdma_write_iov, limits.max_iov_segments_per_rdma_write},
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto& [member, limit] = counts[i];
    EXPECT_THAT(create_with([&, member = member, limit = limit](DAT_EP_ATTR& attr) { attr.*member = limit; }),
                Succeeds())
        << "attribute " << i << " at " << limit;
    if (limit < std::numeric_limits<DAT_COUNT>::max()) {
      EXPECT_THAT(create_with([&, member = member, limit = limit](DAT_EP_ATTR& attr) { attr.*member = limit + 1; }),
                  HasType(DAT_INVALID_PARAMETER))
          << "attribute " << i << " above " << limit;
    }
  }
  for (const auto& [member, limit] : {std::pair{&DAT_EP_ATTR::max_message_size, limits.max_message_size},
                                      std::pair{&DAT_EP_ATTR::max_rdma_size, limits.max_rdma_size}}) {
    EXPECT_THAT(create_with([&, member = member, limit = limit](DAT_EP_ATTR& attr) { attr.*member = limit; }),
                Succeeds());
    if (limit < kSegmentLengthMax) {
      EXPECT_THAT(create_with([&, member = member, limit = limit](DAT_EP_ATTR& attr) { attr.*member = limit + 1; }),
                  HasType(DAT_INVALID_PARAMETER));
    }
  }
}

TEST_P(EpCreate, RecvCompletionFlagsAreOneOfThree) {
  // EP-CREATE-17
  for (int bits = 0; bits < 0x40; ++bits) {
    const bool good = bits == DAT_COMPLETION_DEFAULT_FLAG || bits == DAT_COMPLETION_UNSIGNALLED_FLAG ||
                      bits == DAT_COMPLETION_SOLICITED_WAIT_FLAG || bits == DAT_COMPLETION_EVD_THRESHOLD_FLAG;
    const DAT_RETURN rc = create_with([&](DAT_EP_ATTR& attr) { attr.recv_completion_flags = flags_of(bits); });
    EXPECT_EQ(rc == DAT_SUCCESS, good) << "flags 0x" << std::hex << bits;
    if (!good) {
      EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER)) << "flags 0x" << std::hex << bits;
    }
  }
}

TEST_P(EpCreate, RequestCompletionFlagsMayNameWhatIsAlwaysAvailable) {
  // EP-CREATE-18
  constexpr int kWithoutEffect =
      DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;
  for (const int model :
       {DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG}) {
    EXPECT_THAT(create_with([&](DAT_EP_ATTR& attr) { attr.request_completion_flags = flags_of(model); }), Succeeds());
    EXPECT_THAT(
        create_with([&](DAT_EP_ATTR& attr) { attr.request_completion_flags = flags_of(model | kWithoutEffect); }),
        Succeeds());
  }
  EXPECT_THAT(create_with([](DAT_EP_ATTR& attr) { attr.request_completion_flags = flags_of(0x20); }),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create_with([](DAT_EP_ATTR& attr) {
                attr.request_completion_flags =
                    flags_of(DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_EVD_THRESHOLD_FLAG);
              }),
              HasType(DAT_INVALID_PARAMETER));

  // Without effect: they do not become the rule for every post.
  DAT_EP_ATTR attr = default_ep_attr();
  attr.request_completion_flags = flags_of(kWithoutEffect);
  const Pair pair = make_connected_pair(default_ep_attr(), attr);
  expect_working(pair);  // the Send's completion is not suppressed
}

TEST_P(EpCreate, HandlePointerIsRequired) {
  // EP-CREATE-19
  const DAT_EP_ATTR attr = default_ep_attr();
  const EpEvds evds = evds_of(server);
  const DAT_RETURN rc =
      dat_ep_create(server.ia.get(), server.pz.get(), evds.recv, evds.request, evds.connect, &attr, nullptr);
  EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG7));
}

TEST_P(EpCreate, AttributesMustBeAligned) {
  // GEN-14
  alignas(DAT_EP_ATTR) std::byte storage[sizeof(DAT_EP_ATTR) + 4]{};
  DAT_EP_HANDLE handle = DAT_HANDLE_NULL;
  const EpEvds evds = evds_of(server);
  for (const std::size_t offset : {1, 2, 3}) {
    const auto* const attr = static_cast<DAT_EP_ATTR*>(static_cast<void*>(storage + offset));
    EXPECT_THAT(dat_ep_create(server.ia.get(), server.pz.get(), evds.recv, evds.request, evds.connect, attr, &handle),
                HasType(DAT_INVALID_PARAMETER));
  }
}

TEST_P(EpCreate, UsesItsZoneAndEvds) {
  // EP-CREATE-25, EP-FREE-6, PZ-FREE-1
  Pz pz(server.ia);
  OwnEvds evds(server);
  Ep ep(server.ia, pz, evds, default_ep_attr());
  const DAT_RETURN rc = pz.free();
  EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_PZ_IN_USE));
  EXPECT_THAT(evds.recv.free(), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(evds.request.free(), HasType(DAT_INVALID_STATE));
  EXPECT_THAT(evds.connect.free(), HasType(DAT_INVALID_STATE));
  ASSERT_THAT(ep.free(), Succeeds());
  EXPECT_THAT(pz.free(), Succeeds());
  EXPECT_THAT(evds.recv.free(), Succeeds());
  EXPECT_THAT(evds.request.free(), Succeeds());
  EXPECT_THAT(evds.connect.free(), Succeeds());
}

TEST_P(EpCreate, SoftWatermarkOfAPlainEndpointIsIgnored) {
  // EP-CREATE-26
  for (const DAT_COUNT given : {0, 2}) {
    DAT_EP_ATTR attr = default_ep_attr();
    attr.srq_soft_hw = given;
    const Ep ep(server, attr);
    EXPECT_EQ(ep.query().ep_attr.srq_soft_hw, DAT_HW_DEFAULT) << given;
    post_recv(ep, server_buffers, 0, 5);
    expect_no_event(server.ia.async_evd());
  }
}

TEST_P(EpCreate, NamedAttributesAreUnknownAndRefused) {
  // EP-CREATE-27
  DAT_NAMED_ATTR named{};
  named.name = "no such attribute";
  named.value = "1";
  const auto with = [&](DAT_COUNT count, DAT_NAMED_ATTR* array, bool transport) {
    return create_with([&](DAT_EP_ATTR& attr) {
      (transport ? attr.ep_transport_specific_count : attr.ep_provider_specific_count) = count;
      (transport ? attr.ep_transport_specific : attr.ep_provider_specific) = array;
    });
  };
  for (const bool transport : {true, false}) {
    EXPECT_THAT(with(-1, &named, transport), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(with(1, nullptr, transport), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(with(1, &named, transport), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(with(0, &named, transport), Succeeds());
    EXPECT_THAT(with(0, nullptr, transport), Succeeds());
  }
}

class EpLimit : public EpCreate {};

TEST_P(EpLimit, NumberIsLimitedByTheAdapter) {
  // EP-CREATE-28, GEN-9
  const DAT_COUNT most = server.ia.attributes().max_eps;
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_recv_dtos = 0;
  attr.max_request_dtos = 0;
  Arguments args{.ia = server.ia.get(), .pz = server.pz.get(), .evds = {}, .attr = attr};
  args.evds.connect = server.connect.get();
  std::vector<Ep> all;
  for (DAT_COUNT i = 0; i < most; ++i) {
    all.emplace_back(server.ia, server.pz, args.evds, attr);
  }
  EXPECT_THAT(create(args), HasType(DAT_INSUFFICIENT_RESOURCES));
  all.pop_back();
  EXPECT_THAT(create(args), Succeeds());
}

TEST_P(EpCreate, QosMustBeSupported) {
  // EP-CREATE-28, GEN-13, ATTR-1
  const unsigned supported = server.ia.provider().dat_qos_supported;
  for (unsigned qos = 0; qos <= 0x20; ++qos) {
    const DAT_RETURN rc = create_with([&](DAT_EP_ATTR& attr) { attr.qos = static_cast<DAT_QOS>(qos); });
    if ((qos & ~supported) == 0) {
      EXPECT_THAT(rc, Succeeds()) << qos;
    } else {
      EXPECT_THAT(rc, HasType(DAT_MODEL_NOT_SUPPORTED)) << qos;
    }
  }
}

TEST_P(EpCreate, CreatingIsSafeFromManyThreads) {
  // MT-1
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        failures += create(good()) == DAT_SUCCESS ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failures, 0);
}

ANYDAT_OVER_ALL_WIRES(EpCreate);
ANYDAT_OVER_ONE_WIRE(EpLimit);

}  // namespace
}  // namespace anydat::test
