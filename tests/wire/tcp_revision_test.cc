// SPDX-License-Identifier: BSD-3-Clause
// A connecting side that is hung up on before it has had an answer asks again in revision 1 (RFC 6581, section 7). One
// of ours may do that to one of ours: when it has no descriptors left, it turns callers away without a word.
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

// A port where the first caller is hung up on. The socket that listens there next shares its number with that caller's
// connection.
class FickleHost {
 public:
  DAT_CONN_QUAL port() const { return listener_.port(); }
  void take_caller() {
    caller_ = listener_.accept();
    if (!caller_ || !caller_->hear_request()) throw std::runtime_error("nothing was asked");
    listener_.stop();
  }
  void hang_up() { caller_.reset(); }

 private:
  MpaListener listener_;
  std::optional<MpaPeer> caller_;
};

class ServicePoint : public Owner<dat_psp_free> {
 public:
  ServicePoint(const Side& side, DAT_CONN_QUAL port) {
    require(dat_psp_create(side.ia.get(), port, side.requests.get(), DAT_PSP_CONSUMER_FLAG, out()), "dat_psp_create");
  }
};

DAT_CR_ARRIVAL_EVENT_DATA expect_request(Side& side) {
  return expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data;
}

class TcpRevisionOne : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 16 << 10;  // the word that it has been delivered is waited for

  void connect(DAT_CONN_QUAL port) {
    require(dat_ep_connect(client_ep.get(), loopback(), port, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
  }
  void expect_sent(Side& from, const Ep& sender, Side& to, const Ep& receiver) {
    const Lmr source(from.ia, from.pz, kBytes);
    const Lmr target(to.ia, to.pz, kBytes);
    DAT_LMR_TRIPLET there = target.triplet();
    require(dat_ep_post_recv(receiver.get(), 1, &there, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    DAT_LMR_TRIPLET here = source.triplet();
    require(dat_ep_post_send(sender.get(), 1, &here, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    expect_completion(to.recv.get());
    expect_completion(from.request.get());
  }

  Side server{tcp_wire()};
  Side client{tcp_wire()};
  Ep server_ep{server};
  Ep client_ep{client};
};

TEST_F(TcpRevisionOne, OursKnowEachOtherAllTheSame) {
  FickleHost host;
  connect(host.port());
  host.take_caller();
  const ServicePoint point(server, host.port());
  host.hang_up();
  const DAT_EVENT request = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, server_ep.get(), 0, nullptr),
          "dat_cr_accept");
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_sent(server, server_ep, client, client_ep);
  expect_sent(client, client_ep, server, server_ep);
  require(dat_ep_disconnect(client_ep.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

// EP-DUP-1: a duplicate asks the service point that has got the request in the end, whose port another is asked by.
class TcpRevisionOneHandedOff : public TcpRevisionOne, public testing::WithParamInterface<DAT_CONN_QUAL> {};

TEST_P(TcpRevisionOneHandedOff, IsDuplicatedWhereItHasGone) {
  FickleHost host;
  connect(host.port());
  host.take_caller();
  const ServicePoint asked(server, host.port());
  const DAT_CONN_QUAL elsewhere = GetParam() != 0 ? GetParam() : MpaListener().port();
  const ServicePoint taker(server, elsewhere);
  host.hang_up();
  require(dat_cr_handoff(expect_request(server).cr_handle, elsewhere), "dat_cr_handoff");
  const DAT_CR_ARRIVAL_EVENT_DATA request = expect_request(server);
  EXPECT_EQ(request.conn_qual, elsewhere);
  require(dat_cr_accept(request.cr_handle, server_ep.get(), 0, nullptr), "dat_cr_accept");
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_sent(server, server_ep, client, client_ep);  // who the server is comes before it
  const Ep another(client);
  require(dat_ep_dup_connect(another.get(), client_ep.get(), DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT),
          "dat_ep_dup_connect");
  const DAT_CR_ARRIVAL_EVENT_DATA second = expect_request(server);
  EXPECT_EQ(second.conn_qual, elsewhere);
  require(dat_cr_reject(second.cr_handle), "dat_cr_reject");
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
}

// 0: any port.
INSTANTIATE_TEST_SUITE_P(To, TcpRevisionOneHandedOff, testing::Values(DAT_CONN_QUAL{0}, DAT_CONN_QUAL{72538}));

// Its first segment tells that it is none of ours, and it need not send any.
TEST_F(TcpRevisionOne, AnotherKindOfPeerIsTakenForWhatItIs) {
  MpaListener listener;
  connect(listener.port());
  std::optional<MpaPeer> peer = listener.accept();
  ASSERT_TRUE(peer && peer->hear_request());
  peer.reset();
  peer = listener.accept();
  ASSERT_TRUE(peer && peer->hear_request());
  peer->send(MpaPeer::answer({}));
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  const Lmr memory(client.ia, client.pz, kBytes);
  DAT_LMR_TRIPLET segment = memory.triplet();
  const auto send = [&] {
    require(dat_ep_post_send(client_ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    expect_completion(client.request.get());
  };
  send();
  require(dat_ep_post_recv(client_ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  peer->send_message(repeat(kBytes));
  expect_completion(client.recv.get());
  // What says hello later has no meaning any more: there is no word to wait for.
  SegmentHeader hello;
  hello.opcode = Opcode::write;
  hello.last = true;
  hello.stag = 0x414e5944;
  hello.tagged_offset = std::uint64_t{1} << 32;
  peer->send_segment(hello);
  require(dat_ep_post_recv(client_ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  peer->send_message(repeat(kBytes));
  expect_completion(client.recv.get());
  send();
  peer->stop_sending();
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

}  // namespace
}  // namespace anydat::test
