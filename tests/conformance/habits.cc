// SPDX-License-Identifier: BSD-3-Clause
// What programs written for other stacks take for granted, and the setting of DAT_COMPAT that grants it: the rows of
// the table in src/face/habits.cc. Each is also refused where it shall be, by a sentence that names the setting.
#include <gmock/gmock.h>

#include <cstring>
#include <deque>
#include <string>

#include "evd_fixture.h"
#include "habits_fixture.h"
#include "rmr_fixture.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr auto kDefaultFlags = DAT_COMPLETION_DEFAULT_FLAG;
constexpr auto kUnsignalledFlags = DAT_COMPLETION_UNSIGNALLED_FLAG;

DAT_EP_ATTR with_flags(DAT_COMPLETION_FLAGS recv, DAT_COMPLETION_FLAGS request) {
  DAT_EP_ATTR attr = default_ep_attr();
  attr.recv_completion_flags = recv;
  attr.request_completion_flags = request;
  return attr;
}

DAT_RETURN post_send(const Ep& ep, DAT_LMR_TRIPLET segment, DAT_COMPLETION_FLAGS flags = kDefaultFlags) {
  return dat_ep_post_send(ep.get(), 1, &segment, cookie(1), flags);
}

void post_receive(const Ep& ep, DAT_LMR_TRIPLET segment) {
  require(dat_ep_post_recv(ep.get(), 1, &segment, cookie(2), kDefaultFlags), "dat_ep_post_recv");
}

// Two sides under one setting, and memory of theirs.
struct Pair {
  static constexpr std::size_t kBytes = 1 << 20;

  explicit Pair(const Wire& wire) : server(wire), client(wire) {}

  Side server;
  Side client;
  Lmr sink{server.ia, server.pz, kBytes};
  Lmr source{client.ia, client.pz, kBytes};
};

TEST_P(HabitsTest, SendsAndWritesNeedNoLocalRead) {
  for (const char* compat : {"strict", "default", "openfabrics"}) {
    Pair pair(under(compat, GetParam()));
    const Lmr local(pair.client.ia, pair.client.pz, Pair::kBytes, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
    const Connection connection = connect_pair(pair.server, pair.client);
    if (std::strcmp(compat, "strict") == 0) {
      EXPECT_THAT(post_send(connection.client, local.triplet(0, 64)), HasType(DAT_PRIVILEGES_VIOLATION));
      EXPECT_THAT(sentence(), HasSubstr("DAT_COMPAT=default"));
      EXPECT_THAT(rdma_write(connection.client, local.triplet(0, 64), pair.sink.remote(0, 64), 1),
                  HasType(DAT_PRIVILEGES_VIOLATION));
      EXPECT_THAT(sentence(), HasSubstr("DAT_COMPAT=default"));
      continue;
    }
    for (const std::size_t length : {std::size_t{64}, std::size_t{4096}, Pair::kBytes}) {
      fill_pattern(local.bytes().first(length), length);
      post_receive(connection.server, pair.sink.triplet(0, length));
      ASSERT_THAT(post_send(connection.client, local.triplet(0, length)), Succeeds());
      EXPECT_EQ(expect_completion(pair.server.recv.get()).transfered_length, length);
      expect_completion(pair.client.request.get());
      EXPECT_TRUE(has_pattern(pair.sink.bytes().first(length), length)) << length;
      for (const std::size_t again : {length, length + 1}) {  // the second goes the way that the first has found
        fill_pattern(local.bytes().first(length), again);
        ASSERT_THAT(rdma_write(connection.client, local.triplet(0, length), pair.sink.remote(0, length), again),
                    Succeeds());
        expect_completion(pair.client.request.get());
        post_receive(connection.server, pair.sink.triplet(0, 0));
        ASSERT_THAT(post_send(connection.client, local.triplet(0, 0)), Succeeds());
        expect_completion(pair.server.recv.get());
        expect_completion(pair.client.request.get());
        EXPECT_TRUE(has_pattern(pair.sink.bytes().first(length), again)) << length;
      }
    }
    DAT_LMR_PARAM param{};
    ASSERT_THAT(dat_lmr_query(local.get(), DAT_LMR_FIELD_ALL, &param), Succeeds());
    EXPECT_EQ(param.mem_priv, DAT_MEM_PRIV_LOCAL_WRITE_FLAG) << "as it was asked for";
  }
}

TEST_P(HabitsTest, MemoryWithoutLocalReadIsNotLentToPeers) {
  // RMR-BIND-9, LMR-CREATE-9: the habit is about the program's own posts
  Pair pair(under("openfabrics", GetParam()));
  const Lmr local(pair.server.ia, pair.server.pz, 4096, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  const Connection connection = connect_pair(pair.server, pair.client);
  const Rmr rmr(pair.server.pz);
  DAT_RMR_CONTEXT context = 0;
  EXPECT_THAT(try_bind(rmr, local.triplet(), kRemoteRead, connection.server, &context),
              HasType(DAT_PRIVILEGES_VIOLATION));
  EXPECT_THAT(try_bind(rmr, local.triplet(), kRemoteWrite, connection.server, &context), Succeeds());
  expect_bind(pair.server.request.get());
  EXPECT_EQ(local.rmr_context(), 0u);
  ASSERT_THAT(dat_ep_disconnect(connection.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(pair.client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

TEST_P(HabitsTest, StreamsNotifyByTheirOwnFlags) {
  // As MVAPICH2 has it: receives DEFAULT and requests UNSIGNALLED on one EVD.
  {
    const Side strict(under("strict", GetParam()));
    const Evd evd(strict.ia, DAT_EVD_DTO_FLAG);
    const DAT_EP_ATTR attr = with_flags(kDefaultFlags, kUnsignalledFlags);
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    EXPECT_THAT(dat_ep_create(strict.ia.get(), strict.pz.get(), evd.get(), evd.get(), strict.connect.get(), &attr, &ep),
                HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(sentence(), HasSubstr("DAT_COMPAT=default"));
  }
  Pair pair(under("default", GetParam()));
  const Evd evd(pair.client.ia, DAT_EVD_DTO_FLAG);
  const EpEvds evds{.recv = evd.get(), .request = evd.get(), .connect = pair.client.connect.get()};
  const Ep client(pair.client.ia, pair.client.pz, evds, with_flags(kDefaultFlags, kUnsignalledFlags));
  const Ep server(pair.server);
  EXPECT_EQ(query_evd(evd.get()).evd_state & kConfigurationPart, unsigned{DAT_EVD_STATE_CONFIG_NOTIFY});
  EXPECT_THAT(wait_evd(evd.get(), 0, 2).rc, HasSubtype(DAT_INVALID_STATE_EVD_CONFIG_NOTIFY));
  connect_pair(pair.server, server.get(), client.get());
  post_receive(server, pair.sink.triplet(0, 64));
  post_receive(server, pair.sink.triplet(0, 64));
  post_receive(client, pair.source.triplet(0, 64));

  BlockedWait waiter(evd.get());
  ASSERT_THAT(post_send(client, pair.source.triplet(0, 64), kUnsignalledFlags), Succeeds());
  expect_completion(pair.server.recv.get());
  EXPECT_TRUE(waiter.stays_blocked()) << "the request does not notify";
  ASSERT_THAT(post_send(server, pair.sink.triplet(0, 64)), Succeeds());
  EXPECT_THAT(waiter.result().rc, Succeeds()) << "the receive does";
  EXPECT_EQ(waiter.result().event.event_data.dto_completion_event_data.user_cookie.as_64, 1u) << "in order of arrival";
  expect_completion(evd.get());

  BlockedWait second(evd.get());
  ASSERT_THAT(post_send(client, pair.source.triplet(0, 64)), Succeeds());
  EXPECT_THAT(second.result().rc, Succeeds()) << "and so does a request that was posted without the flag";
}

TEST_P(HabitsTest, SolicitedStreamsNotifyByTheirOwnFlags) {
  Pair pair(under("default", GetParam()));
  ANYDAT_NEEDS_SOLICITED(pair.server.ia);
  // Connection events, too.
  const Evd evd(pair.server.ia, flags(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG));
  EpEvds evds = evds_of(pair.server);
  evds.recv = evd.get();
  EpEvds requests_too = evds;
  requests_too.request = evd.get();
  const EpEvds all{.recv = evd.get(), .request = evd.get(), .connect = evd.get()};
  const Ep quiet(pair.server.ia, pair.server.pz, requests_too,
                 with_flags(DAT_COMPLETION_SOLICITED_WAIT_FLAG, kDefaultFlags));
  EXPECT_EQ(query_evd(evd.get()).evd_state & kConfigurationPart, unsigned{DAT_EVD_STATE_CONFIG_SOLICITED});
  const Ep loud(pair.server.ia, pair.server.pz, evds, with_flags(kDefaultFlags, kDefaultFlags));
  const Ep third(pair.server.ia, pair.server.pz, all, with_flags(kDefaultFlags, kDefaultFlags));
  const Ep to_quiet(pair.client);
  const Ep to_loud(pair.client);
  connect_pair(pair.server, quiet.get(), to_quiet.get());
  connect_pair(pair.server, loud.get(), to_loud.get());
  for (const Ep* ep : {&quiet, &quiet, &loud}) post_receive(*ep, pair.sink.triplet(0, 64));

  BlockedWait waiter(evd.get());
  ASSERT_THAT(post_send(to_quiet, pair.source.triplet(0, 64)), Succeeds());
  expect_completion(pair.client.request.get());
  EXPECT_TRUE(waiter.stays_blocked()) << "its sender did not ask for it";
  ASSERT_THAT(post_send(to_loud, pair.source.triplet(0, 64)), Succeeds());
  EXPECT_THAT(waiter.result().rc, Succeeds()) << "this stream does not wait to be asked";
  expect_completion(evd.get());
  BlockedWait second(evd.get());
  ASSERT_THAT(post_send(to_quiet, pair.source.triplet(0, 64), DAT_COMPLETION_SOLICITED_WAIT_FLAG), Succeeds());
  EXPECT_THAT(second.result().rc, Succeeds());
  post_receive(to_quiet, pair.source.triplet(0, 64));
  BlockedWait third_wait(evd.get());
  ASSERT_THAT(post_send(quiet, pair.sink.triplet(0, 64)), Succeeds());
  EXPECT_THAT(third_wait.result().rc, Succeeds()) << "a request waits for nobody to ask for it";
  drain(pair.client.request.get());
}

TEST_P(HabitsTest, TheLocalLengthCounts) {
  constexpr std::size_t kSaid = 64;  // as dtest says of any buffer
  for (const char* compat : {"default", "openfabrics"}) {
    Pair pair(under(compat, GetParam()));
    const Connection connection = connect_pair(pair.server, pair.client);
    const bool counts = std::strcmp(compat, "openfabrics") == 0;
    for (const std::size_t length : {std::size_t{4096}, Pair::kBytes}) {
      DAT_RMR_TRIPLET remote = pair.sink.remote(0, length);
      remote.segment_length = kSaid;
      for (const DAT_UINT64 number : {1, 2}) {  // the second goes the way that the first has found
        fill_pattern(pair.source.bytes().first(length), number);
        const DAT_RETURN rc = rdma_write(connection.client, pair.source.triplet(0, length), remote, number);
        if (!counts) {
          EXPECT_THAT(rc, HasType(DAT_LENGTH_ERROR));
          EXPECT_THAT(sentence(), HasSubstr("DAT_COMPAT=openfabrics"));
        } else {
          ASSERT_THAT(rc, Succeeds());
          EXPECT_EQ(expect_completion(pair.client.request.get()).transfered_length, length);
        }
        // What it has written, read back; under the standard the remote segment says how much.
        fill_pattern(pair.source.bytes(), 99);
        if (!counts) fill_pattern(pair.sink.bytes().first(kSaid), number);
        ASSERT_THAT(rdma_read(connection.client, pair.source.triplet(0, length), remote, number), Succeeds());
        const std::size_t moved = counts ? length : kSaid;
        EXPECT_EQ(expect_completion(pair.client.request.get()).transfered_length, moved);
        EXPECT_TRUE(has_pattern(pair.source.bytes().first(moved), number)) << length;
      }
    }
  }
}

TEST_P(HabitsTest, TheTargetsRegionsBoundTheLocalLength) {
  // PROT-5, PROT-8: nothing is written or read beyond a region, whatever its triplet says
  for (const Rdma kind : kBothRdma) {
    Pair pair(under("openfabrics", GetParam()));
    const Lmr small(pair.server.ia, pair.server.pz, pair.sink.bytes().first(4096));
    const Connection connection = connect_pair(pair.server, pair.client);
    fill_pattern(pair.sink.bytes(), 3);
    DAT_RMR_TRIPLET remote = small.remote(0, 64);
    const DAT_RETURN rc = rdma(kind, connection.client, pair.source.triplet(0, 8192), remote, 1);
    if (rc == DAT_SUCCESS) {
      const DAT_DTO_COMPLETION_STATUS status =
          expect_event(pair.client.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data.status;
      EXPECT_NE(status, DAT_DTO_SUCCESS) << rdma_name(kind);
    }
    EXPECT_TRUE(has_pattern(pair.sink.bytes(), 3)) << rdma_name(kind);
    (void)dat_ep_disconnect(connection.client.get(), DAT_CLOSE_ABRUPT_FLAG);
  }
}

TEST_P(HabitsTest, EverydayOutcomesAreBare) {
  for (const char* compat : {"default", "openfabrics"}) {
    const Ia ia(under(compat, GetParam()));
    const Cno cno(ia);
    const Evd evd(ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
    const DAT_RETURN expected_class = std::strcmp(compat, "openfabrics") == 0 ? 0 : DAT_RETURN{DAT_CLASS_ERROR};
    DAT_EVENT event{};
    EXPECT_EQ(dat_evd_dequeue(evd.get(), &event), expected_class | DAT_QUEUE_EMPTY) << compat;
    for (const DAT_TIMEOUT timeout : {0, 1000}) {
      EXPECT_EQ(wait_evd(evd.get(), timeout).rc, expected_class | DAT_TIMEOUT_EXPIRED) << compat;
      EXPECT_EQ(wait_cno(cno.get(), timeout).rc, expected_class | DAT_QUEUE_EMPTY) << compat;
    }
    EXPECT_THAT(dat_evd_dequeue(evd.get(), nullptr), HasType(DAT_INVALID_PARAMETER)) << "errors stay errors";
  }
}

TEST_P(HabitsTest, FullEvdsGrow) {
  // EVM-51
  constexpr int kMessages = 60;
  Pair pair(under("openfabrics", GetParam()));
  const Evd recv(pair.server.ia, DAT_EVD_DTO_FLAG, 2);
  const Evd request(pair.client.ia, DAT_EVD_DTO_FLAG, 1);
  EpEvds evds = evds_of(pair.server);
  evds.recv = recv.get();
  const Ep server(pair.server.ia, pair.server.pz, evds, default_ep_attr());
  evds = evds_of(pair.client);
  evds.request = request.get();
  const Ep client(pair.client.ia, pair.client.pz, evds, default_ep_attr());
  connect_pair(pair.server, server.get(), client.get());
  for (int i = 0; i < kMessages; ++i) {
    DAT_LMR_TRIPLET segment = pair.sink.triplet(0, 64);
    require(dat_ep_post_recv(server.get(), 1, &segment, cookie(i), kDefaultFlags), "dat_ep_post_recv");
  }
  for (int i = 0; i < kMessages; ++i) {
    DAT_LMR_TRIPLET segment = pair.source.triplet(0, 64);
    require(dat_ep_post_send(client.get(), 1, &segment, cookie(i), kDefaultFlags), "dat_ep_post_send");
  }
  for (const Evd* evd : {&recv, &request}) {
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_EQ(expect_completion(evd->get()).user_cookie.as_64, static_cast<DAT_UINT64>(i));
    }
  }
  expect_no_event(pair.server.ia.async_evd());
  expect_no_event(pair.client.ia.async_evd());

  // What fills by the program's own doing, or is a backlog, stays as long as it was made (EVM-52, EVM-53).
  const Evd own(pair.client.ia, DAT_EVD_SOFTWARE_FLAG, 3);
  post_range(own.get(), 1, 3);
  EXPECT_THAT(try_post(own.get()), HasType(DAT_QUEUE_FULL));
  EXPECT_EQ(own.qlen(), 3);
}

TEST_P(HabitsTest, WithoutTheHabitFullEvdsOverflow) {
  // EVM-48: what FullEvdsGrow is seen against
  Pair pair(under("default", GetParam()));
  const Evd request(pair.client.ia, DAT_EVD_DTO_FLAG, 1);
  EpEvds evds = evds_of(pair.client);
  evds.request = request.get();
  const Ep client(pair.client.ia, pair.client.pz, evds, default_ep_attr());
  const Ep server(pair.server);
  connect_pair(pair.server, server.get(), client.get());
  for (int i = 0; i < 2; ++i) post_receive(server, pair.sink.triplet(0, 64));
  for (int i = 0; i < 2; ++i) (void)post_send(client, pair.source.triplet(0, 64));
  expect_event(pair.client.ia.async_evd(), DAT_ASYNC_ERROR_EVD_OVERFLOW);
}

class HabitsHoldingTest : public HabitsTest {
 protected:
  static constexpr int kHeld = 6;
  void SetUp() override {
    if (GetParam().held_for_stopped_sender < kHeld) {
      GTEST_SKIP() << "over wire " << GetParam().name << " a stopped sender leaves at most "
                   << GetParam().held_for_stopped_sender << " buffers at an endpoint; this test needs " << kHeld;
    }
  }
};

TEST_P(HabitsHoldingTest, MaxRecvDtosOfAnSrqEndpointIsNoWatermark) {
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.max_recv_dtos = 2;
  attr.srq_soft_hw = 0;  // cleared: unset in every setting (EP-CSRQ-17)
  Side server(under("openfabrics", GetParam()));
  const Srq srq(server.ia, server.pz, 12);
  const Buffers large(server.ia, server.pz, kHeld, StoppedSender::kLarge);
  const Ep ep(server, srq, attr);
  EXPECT_EQ(ep.query().ep_attr.max_recv_dtos, 2) << "as it was given";
  const StoppedSender sender(server, ep, GetParam(), 0, kHeld);
  large.post(srq, 0, kHeld);
  ASSERT_TRUE(eventually_held(ep, kHeld));
  EXPECT_EQ(ep.state(), DAT_EP_STATE_CONNECTED);
  expect_no_event(server.ia.async_evd());
}

TEST_P(HabitsTest, MaxRecvDtosOfAnSrqEndpointMayBeAnything) {
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.max_recv_dtos = 0;
  for (const char* compat : {"default", "openfabrics"}) {
    const Side side(under(compat, GetParam()));
    const Srq srq(side.ia, side.pz, 12);
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    const DAT_RETURN rc = dat_ep_create_with_srq(side.ia.get(), side.pz.get(), side.recv.get(), side.request.get(),
                                                 side.connect.get(), srq.get(), &attr, &ep);
    if (std::strcmp(compat, "openfabrics") == 0) {
      ASSERT_THAT(rc, Succeeds());
      EXPECT_THAT(dat_ep_free(ep), Succeeds());
    } else {
      EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
      EXPECT_THAT(sentence(), HasSubstr("DAT_COMPAT=openfabrics"));
    }
  }
}

TEST_P(HabitsTest, NoMaxRecvDtosBreaksAnSrqEndpoint) {
  // EP-CSRQ-16, EP-WM-13: 0 is the watermark that the first buffer exceeds, on each wire and however short it is held.
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.max_recv_dtos = 0;
  Pair pair(under("openfabrics", GetParam()));
  const Srq srq(pair.server.ia, pair.server.pz, 12);
  const Connection connection = connect_pair(pair.server, srq, pair.client, attr);
  const auto post_buffer = [&] {
    DAT_LMR_TRIPLET segment = pair.sink.triplet(0, 64);
    require(dat_srq_post_recv(srq.get(), 1, &segment, cookie(2)), "dat_srq_post_recv");
  };
  for (int i = 0; i < 6; ++i) post_buffer();
  for (int i = 0; i < 6; ++i) {
    ASSERT_THAT(post_send(connection.client, pair.source.triplet(0, 64)), Succeeds());
    EXPECT_EQ(expect_completion(pair.server.recv.get()).transfered_length, 64u) << "message " << i;
    expect_completion(pair.client.request.get());
  }
  EXPECT_EQ(connection.server.state(), DAT_EP_STATE_CONNECTED);
  EXPECT_EQ(connection.server.query().ep_attr.max_recv_dtos, 0) << "as it was given";
  expect_no_event(pair.server.connect.get());
  if (!watermarks_supported(pair.server.ia)) return;
  // What is asked for by dat_ep_set_watermark is a watermark all the same.
  ASSERT_THAT(dat_ep_set_watermark(connection.server.get(), DAT_WATERMARK_INFINITE, 0), Succeeds());
  post_buffer();
  ASSERT_THAT(post_send(connection.client, pair.source.triplet(0, 64)), Succeeds());
  expect_event(pair.server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

// A server as dtestsrq is one: one SRQ, many endpoints, and an async EVD of eight.
struct SrqServer : Side {
  static constexpr std::size_t kBytes = 64;

  SrqServer(const Wire& wire, int endpoints) : Side(wire, 8), memory(ia, pz, kBytes), srq(ia, pz, 2 * endpoints) {
    for (int i = 0; i < endpoints; ++i) eps.emplace_back(*this, srq);
    for (int i = 0; i < endpoints; ++i) post_buffer();
  }
  void post_buffer() {
    DAT_LMR_TRIPLET segment = memory.triplet();
    require(dat_srq_post_recv(srq.get(), 1, &segment, cookie(7)), "dat_srq_post_recv");
  }

  Lmr memory;
  Srq srq;
  std::deque<Ep> eps;
};

TEST_P(HabitsTest, SrqEndpointsReportTheirEndInOrder) {
  constexpr int kEndpoints = 40;
  const Wire wire = under("openfabrics", GetParam());
  SrqServer server(wire, kEndpoints);
  Side client(wire);
  const Lmr source(client.ia, client.pz, SrqServer::kBytes);
  std::deque<Ep> peers;
  for (int i = 0; i < kEndpoints; ++i) {
    peers.emplace_back(client);
    connect_pair(server, server.eps[i].get(), peers[i].get());
  }
  for (int i = 0; i < kEndpoints; ++i) {
    ASSERT_THAT(post_send(peers[i], source.triplet()), Succeeds());
    expect_completion(client.request.get());
  }
  // Both sides end some, in another order than that in which they were made; no thread looks meanwhile.
  for (int i = 0; i < kEndpoints; ++i) {
    const int which = (i * 7) % kEndpoints;
    const Ep& ep = i % 3 == 0 ? server.eps[which] : peers[which];
    ASSERT_THAT(dat_ep_disconnect(ep.get(), i % 2 == 0 ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  }
  for (int i = 0; i < kEndpoints; ++i) {
    const DAT_EP_HANDLE ended =
        expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED).event_data.connect_event_data.ep_handle;
    const DAT_EVENT event = expect_event(server.ia.async_evd(), DAT_ASYNC_ERROR_EP_BROKEN);
    EXPECT_EQ(event.event_data.asynch_error_event_data.dat_handle, ended) << "number " << i;
    EXPECT_EQ(event.event_data.asynch_error_event_data.reason, static_cast<DAT_COUNT>(DAT_EP_TRANSFER_TO_ERROR));
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  }
  EXPECT_FALSE(poll_event(server.ia.async_evd()));
  EXPECT_FALSE(poll_event(client.ia.async_evd())) << "plain endpoints say nothing";
  // All that was taken has come back.
  const int received = drain(server.recv.get());
  EXPECT_EQ(server.srq.outstanding(), kEndpoints - received);
  EXPECT_EQ(server.srq.available(), kEndpoints - received);
}

TEST_P(HabitsTest, WithoutTheHabitSrqEndpointsEndWithTheirConnectionEvent) {
  const Wire wire = under("default", GetParam());
  SrqServer server(wire, 1);
  Side client(wire);
  const Ep peer(client);
  connect_pair(server, server.eps[0].get(), peer.get());
  ASSERT_THAT(dat_ep_disconnect(peer.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_no_event(server.ia.async_evd());
}

ANYDAT_OVER_ALL_WIRES(HabitsTest);
ANYDAT_OVER_ALL_WIRES(HabitsHoldingTest);

}  // namespace
}  // namespace anydat::test
