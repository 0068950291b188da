// SPDX-License-Identifier: BSD-3-Clause
// Qualifiers that are no TCP ports: any number of 64 bits names a service point, on every wire (PSP-CREATE-8,
// EP-CONN-3).
#include <unistd.h>

#include <array>
#include <cstdint>

#include "ep_states.h"

namespace anydat::test {
namespace {

// Of this process alone, so that tests may run side by side; `kind` is what distinguishes one from another.
DAT_CONN_QUAL wide(DAT_CONN_QUAL kind) {
  return kind + (static_cast<DAT_CONN_QUAL>(::getpid()) << 20);
}

const std::array<DAT_CONN_QUAL, 4> kKinds{
    DAT_CONN_QUAL{65536},    // no port any more
    DAT_CONN_QUAL{1} << 32,  // nothing in the lower half but what wide() adds
    0x7fff'ffff'0000'0003,   // all but the sign
    0x8000'0000'0000'0001,   // and the sign
};

class PspAt : public Owner<dat_psp_free> {
 public:
  PspAt(const Ia& ia, DAT_CONN_QUAL qualifier, DAT_EVD_HANDLE requests) {
    require(dat_psp_create(ia.get(), qualifier, requests, DAT_PSP_CONSUMER_FLAG, out()), "dat_psp_create");
  }
};

class Qualifiers : public EpStateTest {
 protected:
  static DAT_RETURN create(const Ia& ia, DAT_CONN_QUAL qualifier, DAT_EVD_HANDLE evd) {
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    const DAT_RETURN rc = dat_psp_create(ia.get(), qualifier, evd, DAT_PSP_CONSUMER_FLAG, &psp);
    if (rc == DAT_SUCCESS) {
      EXPECT_THAT(dat_psp_free(psp), Succeeds());
    }
    return rc;
  }
  void expect_nobody_listens(DAT_CONN_QUAL qualifier, Caller caller = Caller::here()) {
    const OwnEvds evds(client);
    const Ep ep(client.ia, client.pz, evds, default_ep_attr());
    ASSERT_THAT(try_connect(ep.get(), qualifier), Succeeds());
    expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep.get(), caller);
  }
  // Takes the request that comes to `requests`, and sees both ends established.
  void expect_accepted(Side& side, DAT_EVD_HANDLE requests, const Ep& caller, const OwnEvds& evds) {
    const OwnEvds passive_evds(side);
    const Ep passive(side.ia, side.pz, passive_evds, default_ep_attr());
    ASSERT_THAT(dat_cr_accept(expect_request(requests).cr_handle, passive.get(), 0, nullptr), Succeeds());
    expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, caller.get());
    expect_connection_event(passive_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, passive.get());
  }
};

TEST_P(Qualifiers, OfAllSizesNameServicePoints) {
  // PSP-CREATE-3, PSP-CREATE-8, EP-CONN-2, EP-CONN-3, EP-QUERY-6, CR-QUERY-1, PD-1, PD-3
  const DAT_COUNT most = server.ia.provider().max_private_data_size;
  std::vector<std::byte> asked(static_cast<std::size_t>(most));
  std::vector<std::byte> answered(asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    asked[i] = static_cast<std::byte>(i + 1);
    answered[i] = static_cast<std::byte>(255 - i);
  }
  for (const DAT_CONN_QUAL kind : kKinds) {
    const DAT_CONN_QUAL qualifier = wide(kind);
    SCOPED_TRACE(qualifier);
    const PspAt psp(server.ia, qualifier, server.requests.get());
    DAT_PSP_PARAM psp_param{};
    ASSERT_THAT(dat_psp_query(psp.get(), DAT_PSP_FIELD_ALL, &psp_param), Succeeds());
    EXPECT_EQ(psp_param.conn_qual, qualifier);
    Pair pair = make_pair();
    ASSERT_THAT(dat_ep_connect(pair.client.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, most, asked.data(),
                               DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
                Succeeds());
    EXPECT_EQ(pair.client.query().remote_port_qual, qualifier);
    const DAT_PORT_QUAL from = pair.client.query().local_port_qual;
    const auto request = expect_request(server.requests.get());
    EXPECT_EQ(request.conn_qual, qualifier);
    EXPECT_EQ(request.sp_handle.psp_handle, psp.get());
    const DAT_CR_PARAM param = query_request(request.cr_handle);
    if (GetParam().ia_name.starts_with("soft")) {
      EXPECT_EQ(param.remote_port_qual, from);
    }
    EXPECT_EQ(param.remote_port_qual, pair.client.query().local_port_qual);
    EXPECT_EQ(bytes_of(param.private_data, param.private_data_size), asked);
    ASSERT_THAT(dat_cr_accept(request.cr_handle, pair.server.get(), most, answered.data()), Succeeds());
    expect_connection_event(pair.server_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, pair.server.get());
    const auto established =
        expect_connection_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, pair.client.get());
    EXPECT_EQ(bytes_of(established.private_data, established.private_data_size), answered);
    EXPECT_EQ(pair.client.query().remote_port_qual, qualifier);
    EXPECT_EQ(pair.server.query().local_port_qual, qualifier);
    EXPECT_EQ(pair.server.query().remote_port_qual, pair.client.query().local_port_qual);
    expect_working(pair);
    EXPECT_FALSE(poll_event(server.requests.get())) << "one attempt is one request";
  }
}

TEST_P(Qualifiers, ThatShareTheirLowerBitsAreDifferent) {
  // EP-CONN-3: 72538 is not 7002.
  const AnyPsp psp(server.ia, server.requests.get());
  for (const DAT_CONN_QUAL above : {DAT_CONN_QUAL{1} << 16, DAT_CONN_QUAL{1} << 32, DAT_CONN_QUAL{1} << 63}) {
    expect_nobody_listens(psp.qualifier() + above);
  }
  const DAT_CONN_QUAL large = wide(kKinds[2]);
  const PspAt other(server.ia, large, server.requests.get());
  for (const DAT_CONN_QUAL below : {large & 0xffff'ffff, large & 0x7fff'ffff'ffff, large + (DAT_CONN_QUAL{1} << 63)}) {
    expect_nobody_listens(below);
  }
  EXPECT_FALSE(poll_event(server.requests.get()));
}

TEST_P(Qualifiers, HaveOneListener) {
  // PSP-CREATE-9, PSP-FREE-5, RSP-CREATE-4
  const Side other(GetParam());
  const DAT_CONN_QUAL qualifier = wide(kKinds[1]);
  {
    const PspAt psp(server.ia, qualifier, server.requests.get());
    EXPECT_THAT(create(server.ia, qualifier, server.requests.get()), HasType(DAT_CONN_QUAL_IN_USE));
    EXPECT_THAT(create(other.ia, qualifier, other.requests.get()), HasType(DAT_CONN_QUAL_IN_USE));
    EXPECT_THAT(create(other.ia, qualifier + 1, other.requests.get()), Succeeds());
  }
  expect_nobody_listens(qualifier);
  EXPECT_THAT(create(other.ia, qualifier, other.requests.get()), Succeeds()) << "free again";
}

TEST_P(Qualifiers, NameReservedServicePoints) {
  // RSP-CREATE-1, RSP-CREATE-4
  const DAT_CONN_QUAL qualifier = wide(kKinds[3]);
  const OwnEvds evds(client);
  const OwnEvds reserved_evds(server);
  const Ep reserved(server.ia, server.pz, reserved_evds, default_ep_attr());
  DAT_RSP_HANDLE handle = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_rsp_create(server.ia.get(), qualifier, reserved.get(), server.requests.get(), &handle), Succeeds());
  const Owner<dat_rsp_free> rsp(handle);
  const Ep caller(client.ia, client.pz, evds, default_ep_attr());
  ASSERT_THAT(try_connect(caller.get(), qualifier), Succeeds());
  const auto request = expect_request(server.requests.get());
  EXPECT_EQ(request.conn_qual, qualifier);
  expect_nobody_listens(qualifier);
  EXPECT_THAT(create(server.ia, qualifier, server.requests.get()), HasType(DAT_CONN_QUAL_IN_USE))
      << "taken until freed";
  ASSERT_THAT(dat_cr_accept(request.cr_handle, DAT_HANDLE_NULL, 0, nullptr), Succeeds());
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, caller.get());
  expect_connection_event(reserved_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, reserved.get());
}

TEST_P(Qualifiers, MayBeThoughtAboutForLong) {
  // EP-CONN-8, CR-REJ-1: how long a stranger may be silent is no limit for the program that is asked. A second and a
  // half have to pass here.
  const PspAt psp(server.ia, wide(kKinds[0]), server.requests.get());
  const OwnEvds evds(client);
  const Ep caller(client.ia, client.pz, evds, default_ep_attr());
  ASSERT_THAT(try_connect(caller.get(), wide(kKinds[0])), Succeeds());
  const auto request = expect_request(server.requests.get());
  EXPECT_FALSE(wait_event(evds.connect.get(), std::chrono::milliseconds(1500)));
  ASSERT_THAT(dat_cr_reject(request.cr_handle), Succeeds());
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED, caller.get());
}

TEST_P(Qualifiers, AreNotAskedForAnyMoreOnceGivenUp) {
  // EP-DISC-14, EP-CONN-8
  for (int i = 0; i < 20; ++i) {
    const OwnEvds evds(client);
    Ep caller(client.ia, client.pz, evds, default_ep_attr());
    ASSERT_THAT(try_connect(caller.get(), wide(kKinds[0])), Succeeds());
    if (i % 2 == 0) {
      ASSERT_THAT(dat_ep_disconnect(caller.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
      const auto event = wait_event(evds.connect.get());
      ASSERT_TRUE(event);
      EXPECT_THAT(event->event_number,
                  testing::AnyOf(DAT_CONNECTION_EVENT_DISCONNECTED, DAT_CONNECTION_EVENT_NON_PEER_REJECTED));
      EXPECT_FALSE(poll_event(evds.connect.get()));
    }
    EXPECT_THAT(caller.free(), Succeeds());
  }
}

TEST_P(Qualifiers, ArePassedOnWhole) {
  // CR-HO-1, CR-HO-5: within the instance and to another one, from small to large and the other way round.
  Side other(GetParam());
  const Evd requests(server.ia, DAT_EVD_CR_FLAG);
  const PspAt here(server.ia, wide(kKinds[2]), requests.get());
  const PspAt there(other.ia, wide(kKinds[3]), other.requests.get());
  struct Passing {
    DAT_CONN_QUAL asked;
    DAT_EVD_HANDLE asked_requests;
    DAT_CONN_QUAL answers;
    Side& side;
    DAT_EVD_HANDLE requests;
  };
  const Passing all[]{
      {server.listen(), server.requests.get(), wide(kKinds[2]), server, requests.get()},
      {wide(kKinds[2]), requests.get(), server.listen(), server, server.requests.get()},
      {server.listen(), server.requests.get(), wide(kKinds[3]), other, other.requests.get()},
      {wide(kKinds[2]), requests.get(), wide(kKinds[3]), other, other.requests.get()},
      {wide(kKinds[3]), other.requests.get(), server.listen(), server, server.requests.get()},
  };
  for (const Passing& passing : all) {
    SCOPED_TRACE(std::to_string(passing.asked) + " to " + std::to_string(passing.answers));
    const OwnEvds evds(client);
    const Ep caller(client.ia, client.pz, evds, default_ep_attr());
    ASSERT_THAT(try_connect(caller.get(), passing.asked), Succeeds());
    ASSERT_THAT(dat_cr_handoff(expect_request(passing.asked_requests).cr_handle, passing.answers), Succeeds());
    const OwnEvds passive_evds(passing.side);
    const Ep passive(passing.side.ia, passing.side.pz, passive_evds, default_ep_attr());
    const auto request = expect_request(passing.requests);
    EXPECT_EQ(request.conn_qual, passing.answers);
    ASSERT_THAT(dat_cr_accept(request.cr_handle, passive.get(), 0, nullptr), Succeeds());
    expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, caller.get());
    expect_connection_event(passive_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, passive.get());
    EXPECT_EQ(passive.query().local_port_qual, passing.answers);
    EXPECT_FALSE(poll_event(passing.asked_requests));
  }
}

TEST_P(Qualifiers, AreAskedAgainWhereTheyWerePassedTo) {
  // EP-DUP-1
  Side other(GetParam());
  const PspAt there(other.ia, wide(kKinds[3]), other.requests.get());
  const Evd requests(server.ia, DAT_EVD_CR_FLAG);
  const PspAt here(server.ia, wide(kKinds[2]), requests.get());
  const auto ask_twice = [&](DAT_CONN_QUAL answers, Side& side, DAT_EVD_HANDLE its_requests) {
    const OwnEvds evds(client);
    const Ep caller(client.ia, client.pz, evds, default_ep_attr());
    ASSERT_THAT(try_connect(caller.get(), server.listen()), Succeeds());
    ASSERT_THAT(dat_cr_handoff(expect_request(server.requests.get()).cr_handle, answers), Succeeds());
    const OwnEvds passive_evds(side);
    const Ep passive(side.ia, side.pz, passive_evds, default_ep_attr());
    ASSERT_THAT(dat_cr_accept(expect_request(its_requests).cr_handle, passive.get(), 0, nullptr), Succeeds());
    expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, caller.get());
    expect_connection_event(passive_evds.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, passive.get());
    const OwnEvds again_evds(client);
    const Ep again(client.ia, client.pz, again_evds, default_ep_attr());
    ASSERT_THAT(dat_ep_dup_connect(again.get(), caller.get(), DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT),
                Succeeds());
    expect_accepted(side, its_requests, again, again_evds);
    EXPECT_FALSE(poll_event(server.requests.get()));
  };
  ask_twice(wide(kKinds[2]), server, requests.get());
  ask_twice(wide(kKinds[3]), other, other.requests.get());
}

TEST_P(Qualifiers, ArePassedOnToListenersOnly) {
  // CR-HO-4
  const OwnEvds evds(client);
  const Ep caller(client.ia, client.pz, evds, default_ep_attr());
  ASSERT_THAT(try_connect(caller.get(), server.listen()), Succeeds());
  const auto request = expect_request(server.requests.get());
  for (const DAT_CONN_QUAL nobody : {server.listen() + 65536, wide(kKinds[1]), ~DAT_CONN_QUAL{0}}) {
    EXPECT_THAT(dat_cr_handoff(request.cr_handle, nobody), HasType(DAT_INVALID_PARAMETER)) << nobody;
  }
  ASSERT_THAT(dat_cr_reject(request.cr_handle), Succeeds());
  expect_connection_event(evds.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED, caller.get());
}

TEST_P(Qualifiers, OfADevicesAdapterGoBeforeThoseOfAllAddresses) {
  // PSP-CREATE-9, EP-DUP-1: as it is with ports. Exactly one of the two has the request.
  if (!GetParam().ia_name.starts_with("soft"))
    GTEST_SKIP() << "of the software NIC, which has an adapter for all addresses";
  Wire everywhere = GetParam();
  everywhere.ia_name = "soft";
  Side other(everywhere);
  const DAT_CONN_QUAL qualifier = wide(kKinds[0]);
  for (const bool device_first : {true, false}) {
    SCOPED_TRACE(device_first);
    std::optional<PspAt> of_device;
    if (device_first) of_device.emplace(server.ia, qualifier, server.requests.get());
    std::optional<PspAt> of_all;
    of_all.emplace(other.ia, qualifier, other.requests.get());
    if (!device_first) of_device.emplace(server.ia, qualifier, server.requests.get());
    const OwnEvds evds(client);
    const Ep first(client.ia, client.pz, evds, default_ep_attr());
    ASSERT_THAT(try_connect(first.get(), qualifier), Succeeds());
    expect_accepted(server, server.requests.get(), first, evds);
    EXPECT_FALSE(poll_event(other.requests.get()));
    of_device.reset();
    const Ep second(client.ia, client.pz, evds, default_ep_attr());
    const auto ended = wait_event(evds.connect.get());  // of the first
    ASSERT_TRUE(ended);
    ASSERT_THAT(try_connect(second.get(), qualifier), Succeeds());
    expect_accepted(other, other.requests.get(), second, evds);
  }
}

ANYDAT_OVER_ALL_WIRES(Qualifiers);

}  // namespace
}  // namespace anydat::test
