// SPDX-License-Identifier: BSD-3-Clause
// A connecting side that is hung up on before it has had an answer asks again in revision 1 (RFC 6581, section 7). One
// of ours may do that to one of ours: when it has no descriptors left, it turns callers away without a word.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <optional>
#include <stdexcept>

#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

// A port where the first caller is hung up on. Whoever listens there next shares its number with that one's connection.
class FickleHost {
 public:
  FickleHost() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket_.get(), 1) != 0 ||
        ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("no port to listen at");
    }
    port_ = ntohs(address.sin_port);
  }
  DAT_CONN_QUAL port() const { return port_; }
  void take_caller() {
    pollfd entry{socket_.get(), POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(patience().count())) <= 0) throw std::runtime_error("nobody has called");
    caller_.emplace(base::UniqueFd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
    if (!caller_->hear_request()) throw std::runtime_error("nothing was asked");
    socket_.reset();
  }
  void hang_up() { caller_.reset(); }

 private:
  base::UniqueFd socket_;
  DAT_CONN_QUAL port_ = 0;
  std::optional<MpaPeer> caller_;
};

class ServicePoint : public Owner<dat_psp_free> {
 public:
  ServicePoint(const Side& side, DAT_CONN_QUAL port) {
    require(dat_psp_create(side.ia.get(), port, side.requests.get(), DAT_PSP_CONSUMER_FLAG, out()), "dat_psp_create");
  }
};

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
