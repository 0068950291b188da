// SPDX-License-Identifier: BSD-3-Clause
// Which streams may share an EVD: EP-CREATE-20 to 24.
#include "ep_fixture.h"

namespace anydat::test {
namespace {

constexpr auto kDefault = DAT_COMPLETION_DEFAULT_FLAG;
constexpr auto kUnsignalled = DAT_COMPLETION_UNSIGNALLED_FLAG;
constexpr auto kSolicited = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
constexpr auto kThreshold = DAT_COMPLETION_EVD_THRESHOLD_FLAG;

DAT_EVD_FLAGS operator|(DAT_EVD_FLAGS one, DAT_EVD_FLAGS other) {
  return static_cast<DAT_EVD_FLAGS>(static_cast<int>(one) | static_cast<int>(other));
}

DAT_EP_ATTR of_streams(DAT_COMPLETION_FLAGS recv, DAT_COMPLETION_FLAGS request = kDefault) {
  DAT_EP_ATTR attr = default_ep_attr();
  attr.recv_completion_flags = recv;
  attr.request_completion_flags = request;
  return attr;
}

class EpEvdSharing : public EpTest {
 protected:
  DAT_RETURN try_create(const EpEvds& evds, const DAT_EP_ATTR& attr) {
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    const DAT_RETURN rc =
        dat_ep_create(server.ia.get(), server.pz.get(), evds.recv, evds.request, evds.connect, &attr, &ep);
    if (rc == DAT_SUCCESS) {
      EXPECT_THAT(dat_ep_free(ep), Succeeds());
    }
    return rc;
  }
  // An endpoint that receives on `evd`, beside the other EVDs of the server.
  EpEvds receiving_on(const Evd& evd) {
    return {.recv = evd.get(), .request = server.request.get(), .connect = server.connect.get()};
  }
};

TEST_P(EpEvdSharing, StreamsOnOneEvdAgreeOnTheirFlags) {
  // EP-CREATE-20, EP-CREATE-24
  const Evd evd(server.ia, DAT_EVD_DTO_FLAG);
  for (const auto first : {kDefault, kUnsignalled, kSolicited, kThreshold}) {
    const Ep ep(server.ia, server.pz, receiving_on(evd), of_streams(first));
    for (const auto second : {kDefault, kUnsignalled, kSolicited, kThreshold}) {
      // DEFAULT means EVD_THRESHOLD (ruling R43).
      const bool agree = (first == kDefault ? kThreshold : first) == (second == kDefault ? kThreshold : second);
      const DAT_RETURN rc = try_create(receiving_on(evd), of_streams(second));
      if (agree) {
        EXPECT_THAT(rc, Succeeds()) << first << " and " << second;
      } else {
        EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER)) << first << " and " << second;
      }
    }
  }
}

TEST_P(EpEvdSharing, AFreedEndpointNoLongerCounts) {
  // EP-CREATE-20, EP-FREE-6
  const Evd evd(server.ia, DAT_EVD_DTO_FLAG);
  Ep ep(server.ia, server.pz, receiving_on(evd), of_streams(kSolicited));
  EXPECT_THAT(try_create(receiving_on(evd), of_streams(kUnsignalled)), HasType(DAT_INVALID_PARAMETER));
  ASSERT_THAT(ep.free(), Succeeds());
  EXPECT_THAT(try_create(receiving_on(evd), of_streams(kUnsignalled)), Succeeds());
}

TEST_P(EpEvdSharing, BesideOtherEventsCompletionsAreThresholdOnly) {
  // EP-CREATE-21, EP-CREATE-24
  const Evd mixed(server.ia, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG);
  const EpEvds own{.recv = mixed.get(), .request = server.request.get(), .connect = mixed.get()};
  EXPECT_THAT(try_create(own, of_streams(kDefault)), Succeeds());
  EXPECT_THAT(try_create(own, of_streams(kThreshold)), Succeeds());
  EXPECT_THAT(try_create(own, of_streams(kUnsignalled)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(try_create(own, of_streams(kSolicited)), HasType(DAT_INVALID_PARAMETER));
  EpEvds requests = own;
  requests.recv = server.recv.get();
  requests.request = mixed.get();
  EXPECT_THAT(try_create(requests, of_streams(kDefault, kThreshold)), Succeeds());
  EXPECT_THAT(try_create(requests, of_streams(kDefault, kUnsignalled)), HasType(DAT_INVALID_PARAMETER));
  {
    const AnyPsp psp(server.ia, mixed.get());  // the other events may be those of a service point
    EXPECT_THAT(try_create(receiving_on(mixed), of_streams(kDefault)), Succeeds());
    EXPECT_THAT(try_create(receiving_on(mixed), of_streams(kUnsignalled)), HasType(DAT_INVALID_PARAMETER));
  }
  EXPECT_THAT(try_create(receiving_on(mixed), of_streams(kUnsignalled)), Succeeds()) << "nothing else feeds it";
  const Evd software(server.ia, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG);
  EXPECT_THAT(try_create(receiving_on(software), of_streams(kDefault)), Succeeds());
  EXPECT_THAT(try_create(receiving_on(software), of_streams(kUnsignalled)), HasType(DAT_INVALID_PARAMETER));
}

TEST_P(EpEvdSharing, OneUnsignalledStreamMakesAllUnsignalled) {
  // EP-CREATE-22, EP-CREATE-24
  const Evd evd(server.ia, DAT_EVD_DTO_FLAG);
  const EpEvds both{.recv = evd.get(), .request = evd.get(), .connect = server.connect.get()};
  EXPECT_THAT(try_create(both, of_streams(kUnsignalled, kUnsignalled)), Succeeds());
  EXPECT_THAT(try_create(both, of_streams(kUnsignalled, kDefault)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(try_create(both, of_streams(kDefault, kUnsignalled)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(try_create(both, of_streams(kThreshold, kDefault)), Succeeds());
  // Also between endpoints, and between their directions.
  const Ep ep(server.ia, server.pz, receiving_on(evd), of_streams(kUnsignalled));
  EpEvds requests = evds_of(server);
  requests.request = evd.get();
  EXPECT_THAT(try_create(requests, of_streams(kDefault, kUnsignalled)), Succeeds());
  EXPECT_THAT(try_create(requests, of_streams(kDefault, kThreshold)), HasType(DAT_INVALID_PARAMETER));
}

TEST_P(EpEvdSharing, ASolicitedStreamSharesWithItsKindOnly) {
  // EP-CREATE-23, EP-CREATE-24
  const Evd evd(server.ia, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
  const Ep ep(server.ia, server.pz, receiving_on(evd), of_streams(kSolicited));
  EXPECT_THAT(try_create(receiving_on(evd), of_streams(kSolicited)), Succeeds());
  EXPECT_THAT(try_create(receiving_on(evd), of_streams(kDefault)), HasType(DAT_INVALID_PARAMETER));
  EpEvds requests = evds_of(server);
  requests.request = evd.get();
  EXPECT_THAT(try_create(requests, of_streams(kDefault, kDefault)), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(try_create(requests, of_streams(kDefault, kUnsignalled)), HasType(DAT_INVALID_PARAMETER));
  EpEvds connections = evds_of(server);
  connections.connect = evd.get();
  EXPECT_THAT(try_create(connections, of_streams(kDefault)), HasType(DAT_INVALID_PARAMETER));
}

TEST_P(EpEvdSharing, ModifyObeysTheSame) {
  // EP-CREATE-24, EP-MODIFY-7
  const Evd evd(server.ia, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
  const Ep fixed(server.ia, server.pz, receiving_on(evd), of_streams(kSolicited));
  const Ep ep(server);
  DAT_EP_PARAM param = ep.query();
  const DAT_EP_PARAM before = param;
  param.recv_evd_handle = evd.get();
  param.request_evd_handle = evd.get();
  param.connect_evd_handle = evd.get();
  param.ep_attr.recv_completion_flags = kSolicited;
  for (const DAT_EP_PARAM_MASK mask :
       {DAT_EP_FIELD_RECV_EVD_HANDLE, DAT_EP_FIELD_REQUEST_EVD_HANDLE, DAT_EP_FIELD_CONNECT_EVD_HANDLE}) {
    EXPECT_THAT(dat_ep_modify(ep.get(), mask, &param), HasType(DAT_INVALID_PARAMETER)) << std::hex << mask;
  }
  const DAT_EP_PARAM after = ep.query();
  EXPECT_EQ(after.recv_evd_handle, before.recv_evd_handle);
  EXPECT_EQ(after.request_evd_handle, before.request_evd_handle);
  EXPECT_EQ(after.connect_evd_handle, before.connect_evd_handle);
  // The configuration that would result counts: both changes at once are good.
  EXPECT_THAT(
      dat_ep_modify(ep.get(), DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &param),
      Succeeds());
  param.ep_attr.recv_completion_flags = kDefault;
  EXPECT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &param),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_EQ(ep.query().ep_attr.recv_completion_flags, kSolicited);
}

ANYDAT_OVER_ALL_WIRES(EpEvdSharing);

}  // namespace
}  // namespace anydat::test
