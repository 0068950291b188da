// SPDX-License-Identifier: BSD-3-Clause
// The arguments of dat_ep_create_with_srq: chapter 1.10 of the rules.
#include <functional>
#include <limits>

#include "srq_fixture.h"
#include "support/versions.h"

namespace anydat::test {
namespace {

class SrqEndpointArguments : public SrqTest {
 protected:
  struct Arguments {
    DAT_IA_HANDLE ia;
    DAT_PZ_HANDLE pz;
    EpEvds evds;
    DAT_SRQ_HANDLE srq;
    DAT_EP_ATTR attr = default_srq_ep_attr();
  };

  Arguments good() { return {.ia = server.ia.get(), .pz = server.pz.get(), .evds = evds_of(server), .srq = srq.get()}; }

  // Creates and, if that worked, frees again.
  static DAT_RETURN create(const Arguments& args) {
    DAT_EP_HANDLE handle = DAT_HANDLE_NULL;
    const DAT_RETURN rc = dat_ep_create_with_srq(args.ia, args.pz, args.evds.recv, args.evds.request, args.evds.connect,
                                                 args.srq, &args.attr, &handle);
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

  Srq srq{server.ia, server.pz, 10};
};

TEST_P(SrqEndpointArguments, FailureLeavesTheHandleAsItWas) {
  // EP-CSRQ-1, GEN-6
  int marker = 0;
  DAT_EP_HANDLE handle = &marker;
  const EpEvds evds = evds_of(server);
  EXPECT_THAT(dat_ep_create_with_srq(server.ia.get(), server.pz.get(), evds.recv, evds.request, evds.connect, srq.get(),
                                     nullptr, &handle),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(handle, &marker);
  EXPECT_THAT(srq.free(), Succeeds()) << "nothing was attached";
}

TEST_P(SrqEndpointArguments, AttributesAreRequired) {
  // EP-CSRQ-6
  DAT_EP_HANDLE handle = DAT_HANDLE_NULL;
  const EpEvds evds = evds_of(server);
  const DAT_RETURN rc = dat_ep_create_with_srq(server.ia.get(), server.pz.get(), evds.recv, evds.request, evds.connect,
                                               srq.get(), nullptr, &handle);
  EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG7));
}

TEST_P(SrqEndpointArguments, AttributesMustBeAligned) {
  // GEN-14
  alignas(DAT_EP_ATTR) std::byte storage[sizeof(DAT_EP_ATTR) + 4]{};
  DAT_EP_HANDLE handle = DAT_HANDLE_NULL;
  const EpEvds evds = evds_of(server);
  for (const std::size_t offset : {1, 2, 3}) {
    const auto* const attr = static_cast<DAT_EP_ATTR*>(static_cast<void*>(storage + offset));
    EXPECT_THAT(dat_ep_create_with_srq(server.ia.get(), server.pz.get(), evds.recv, evds.request, evds.connect,
                                       srq.get(), attr, &handle),
                HasType(DAT_INVALID_PARAMETER));
  }
}

TEST_P(SrqEndpointArguments, QueueMustBeOne) {
  // EP-CSRQ-7, GEN-12
  Srq freed(server.ia, server.pz, 1);
  const DAT_SRQ_HANDLE stale = freed.get();
  freed.reset();
  const Srq of_another_instance(client.ia, client.pz, 1);
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, server.ia.get(), server.recv.get(),
                               of_another_instance.get()}) {
    Arguments args = good();
    args.srq = bad;
    const DAT_RETURN rc = create(args);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_SRQ));
  }
}

TEST_P(SrqEndpointArguments, OtherHandlesAreChecked) {
  // EP-CSRQ-25, GEN-2, GEN-12
  const auto refused = [&](const std::function<void(Arguments&)>& change) {
    Arguments args = good();
    change(args);
    EXPECT_THAT(create(args), HasType(DAT_INVALID_HANDLE));
  };
  refused([](Arguments& args) { args.ia = DAT_HANDLE_NULL; });
  refused([&](Arguments& args) { args.ia = server.pz.get(); });
  refused([&](Arguments& args) { args.pz = server.recv.get(); });
  refused([&](Arguments& args) { args.pz = client.pz.get(); });
  refused([&](Arguments& args) { args.evds.recv = server.pz.get(); });
  refused([&](Arguments& args) { args.evds.recv = server.connect.get(); });  // not an EVD for DTOs
  refused([&](Arguments& args) { args.evds.recv = client.recv.get(); });
  refused([&](Arguments& args) { args.evds.request = server.connect.get(); });
  refused([&](Arguments& args) { args.evds.connect = server.recv.get(); });
  EXPECT_THAT(create(good()), Succeeds());
}

TEST_P(SrqEndpointArguments, HandlePointerIsRequired) {
  // EP-CSRQ-25
  const DAT_EP_ATTR attr = default_srq_ep_attr();
  const EpEvds evds = evds_of(server);
  const DAT_RETURN rc = dat_ep_create_with_srq(server.ia.get(), server.pz.get(), evds.recv, evds.request, evds.connect,
                                               srq.get(), &attr, nullptr);
  EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG8));
  EXPECT_THAT(srq.free(), Succeeds()) << "nothing was attached";
}

TEST_P(SrqEndpointArguments, RequestSizesAreAtLeastAndTheRestExactlyAsRequested) {
  // EP-CSRQ-11, EP-CSRQ-12
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.max_request_dtos = 7;
  attr.max_request_iov = 3;
  attr.max_recv_dtos = 21;
  attr.max_message_size = 12345;
  attr.max_rdma_size = 23456;
  attr.max_rdma_read_in = 2;
  attr.max_rdma_read_out = 3;
  attr.srq_soft_hw = 17;
  attr.max_rdma_read_iov = 2;
  attr.max_rdma_write_iov = 3;
  attr.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
  attr.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
  const Ep ep(server, srq, attr);
  const DAT_EP_ATTR actual = ep.query().ep_attr;
  EXPECT_GE(actual.max_request_dtos, 7);
  EXPECT_GE(actual.max_request_iov, 3);
  EXPECT_EQ(actual.service_type, attr.service_type);
  EXPECT_EQ(actual.qos, attr.qos);
  EXPECT_EQ(actual.max_recv_dtos, 21);
  EXPECT_EQ(actual.max_message_size, 12345u);
  EXPECT_EQ(actual.max_rdma_size, 23456u);
  EXPECT_EQ(actual.max_rdma_read_in, 2);
  EXPECT_EQ(actual.max_rdma_read_out, 3);
  EXPECT_EQ(actual.srq_soft_hw, 17);
  EXPECT_EQ(actual.max_rdma_read_iov, 2);
  EXPECT_EQ(actual.max_rdma_write_iov, 3);
  EXPECT_EQ(actual.recv_completion_flags, attr.recv_completion_flags);
  EXPECT_EQ(actual.request_completion_flags, attr.request_completion_flags);
}

TEST_P(SrqEndpointArguments, ReceiveSegmentLimitIsThatOfTheQueue) {
  // EP-CSRQ-13
  const Srq wide(server.ia, server.pz, 4, 3);
  for (const DAT_COUNT ignored : {0, 1, -1, std::numeric_limits<DAT_COUNT>::max()}) {
    DAT_EP_ATTR attr = default_srq_ep_attr();
    attr.max_recv_iov = ignored;
    const Connection connection = connect_pair(server, wide, client, attr);
    std::vector<DAT_LMR_TRIPLET> iov(3, buffers.lmr().triplet(0, 0));
    iov[2] = buffers.triplet(0);
    ASSERT_THAT(dat_srq_post_recv(wide.get(), 3, iov.data(), cookie(0)), Succeeds());
    EXPECT_EQ(pass_message(connection).transfered_length, 32u) << "max_recv_iov " << ignored;
  }
}

TEST_P(SrqEndpointArguments, ValuesThatCannotBeMetAreRefused) {
  // EP-CSRQ-14
  const DAT_IA_ATTR limits = server.ia.attributes();
  const std::vector<std::pair<const char*, std::function<void(DAT_EP_ATTR&)>>> bad{
      {"service_type", [](DAT_EP_ATTR& attr) { attr.service_type = kNoServiceType; }},
      {"max_message_size", [&](DAT_EP_ATTR& attr) { attr.max_message_size = limits.max_message_size + 1; }},
      {"max_rdma_size", [&](DAT_EP_ATTR& attr) { attr.max_rdma_size = limits.max_rdma_size + 1; }},
      {"max_request_dtos", [&](DAT_EP_ATTR& attr) { attr.max_request_dtos = limits.max_dto_per_ep + 1; }},
      {"negative max_request_dtos", [](DAT_EP_ATTR& attr) { attr.max_request_dtos = -1; }},
      {"max_request_iov", [&](DAT_EP_ATTR& attr) { attr.max_request_iov = limits.max_iov_segments_per_dto + 1; }},
      {"zero max_request_iov", [](DAT_EP_ATTR& attr) { attr.max_request_iov = 0; }},
      {"max_rdma_read_in", [&](DAT_EP_ATTR& attr) { attr.max_rdma_read_in = limits.max_rdma_read_per_ep_in + 1; }},
      {"negative max_rdma_read_in", [](DAT_EP_ATTR& attr) { attr.max_rdma_read_in = -1; }},
      {"max_rdma_read_out", [&](DAT_EP_ATTR& attr) { attr.max_rdma_read_out = limits.max_rdma_read_per_ep_out + 1; }},
      {"max_rdma_read_iov",
       [&](DAT_EP_ATTR& attr) { attr.max_rdma_read_iov = limits.max_iov_segments_per_rdma_read + 1; }},
      {"max_rdma_write_iov",
       [&](DAT_EP_ATTR& attr) { attr.max_rdma_write_iov = limits.max_iov_segments_per_rdma_write + 1; }},
      {"ep_transport_specific_count", [](DAT_EP_ATTR& attr) { attr.ep_transport_specific_count = 1; }},
      {"ep_provider_specific_count", [](DAT_EP_ATTR& attr) { attr.ep_provider_specific_count = -1; }},
  };
  for (const auto& [name, change] : bad) {
    EXPECT_THAT(create_with(change), HasType(DAT_INVALID_PARAMETER)) << name;
  }
}

TEST_P(SrqEndpointArguments, ReadSegmentsWithoutReadsMayBeAcceptedOrRefused) {
  // EP-CSRQ-15
  const DAT_RETURN rc = create_with([](DAT_EP_ATTR& attr) {
    attr.max_rdma_read_out = 0;
    attr.max_rdma_read_iov = 4;
  });
  EXPECT_TRUE(rc == DAT_SUCCESS || is_type(rc, DAT_INVALID_PARAMETER)) << describe(rc);
}

TEST_P(SrqEndpointArguments, WatermarksMustMakeSense) {
  // EP-CSRQ-17
  for (const DAT_COUNT bad : {-2, -3, std::numeric_limits<DAT_COUNT>::min()}) {
    EXPECT_THAT(create_with([bad](DAT_EP_ATTR& attr) { attr.max_recv_dtos = bad; }), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(create_with([bad](DAT_EP_ATTR& attr) { attr.srq_soft_hw = bad; }), HasType(DAT_INVALID_PARAMETER));
  }
  EXPECT_THAT(create_with([](DAT_EP_ATTR& attr) { attr.max_recv_dtos = 0; }), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(create_with([](DAT_EP_ATTR& attr) { attr.srq_soft_hw = 0; }), Succeeds());
  EXPECT_THAT(create_with([](DAT_EP_ATTR& attr) { attr.max_recv_dtos = 1; }), Succeeds());
}

TEST_P(SrqEndpointArguments, ReceiveFlagsAreOneOfFour) {
  // EP-CSRQ-21
  const auto with_flags = [](int flags) {
    return [flags](DAT_EP_ATTR& attr) { attr.recv_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(flags); };
  };
  for (const int good_flags : {DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG,
                               DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG}) {
    EXPECT_THAT(create_with(with_flags(good_flags)), Succeeds()) << good_flags;
  }
  for (const int bad_flags : {0x01, 0x08, 0x20, 0x06, 0x14, 0x12}) {
    EXPECT_THAT(create_with(with_flags(bad_flags)), HasType(DAT_INVALID_PARAMETER)) << bad_flags;
  }
}

TEST_P(SrqEndpointArguments, StreamsOnOneEvdMustFitTogether) {
  // EP-CSRQ-22
  const Evd shared(server.ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG));
  const Evd recv(server.ia, DAT_EVD_DTO_FLAG);
  const EpEvds all_shared{.recv = shared.get(), .request = shared.get(), .connect = shared.get()};
  const EpEvds recv_apart{.recv = recv.get(), .request = server.request.get(), .connect = server.connect.get()};
  const auto rc = [&](const EpEvds& evds, DAT_COMPLETION_FLAGS recv_flags, DAT_COMPLETION_FLAGS request_flags) {
    Arguments args = good();
    args.evds = evds;
    args.attr.recv_completion_flags = recv_flags;
    args.attr.request_completion_flags = request_flags;
    return create(args);
  };
  constexpr auto kThreshold = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
  constexpr auto kUnsignalled = DAT_COMPLETION_UNSIGNALLED_FLAG;
  constexpr auto kSolicited = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
  EXPECT_THAT(rc(all_shared, kThreshold, kThreshold), Succeeds()) << "other kinds of events may share it";
  EXPECT_THAT(rc(all_shared, kThreshold, kUnsignalled), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rc(all_shared, kUnsignalled, kUnsignalled), HasType(DAT_INVALID_PARAMETER)) << "connection events";
  EXPECT_THAT(rc(all_shared, kSolicited, kThreshold), HasType(DAT_INVALID_PARAMETER));
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.recv_completion_flags = kThreshold;
  const Ep first(server.ia, server.pz, recv_apart, srq, attr);
  EXPECT_THAT(rc(recv_apart, kThreshold, kThreshold), Succeeds());
  EXPECT_THAT(rc(recv_apart, DAT_COMPLETION_DEFAULT_FLAG, kThreshold), Succeeds()) << "the default means threshold";
  EXPECT_THAT(rc(recv_apart, kUnsignalled, kThreshold), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rc(recv_apart, kSolicited, kThreshold), HasType(DAT_INVALID_PARAMETER));
}

TEST_P(SrqEndpointArguments, ReceiveEvdAndReceiveSizesAreIndependent) {
  // EP-CSRQ-28
  for (const DAT_EVD_HANDLE recv : {server.recv.get(), static_cast<DAT_EVD_HANDLE>(DAT_HANDLE_NULL)}) {
    for (const DAT_COUNT max_recv_dtos : {DAT_HW_DEFAULT, DAT_COUNT{1}, DAT_COUNT{1000}}) {
      for (const DAT_COUNT max_recv_iov : {0, 4}) {
        Arguments args = good();
        args.evds.recv = recv;
        args.attr.max_recv_dtos = max_recv_dtos;
        args.attr.max_recv_iov = max_recv_iov;
        EXPECT_THAT(create(args), Succeeds());
      }
    }
  }
}

ANYDAT_OVER_ALL_WIRES(SrqEndpointArguments);

}  // namespace
}  // namespace anydat::test
