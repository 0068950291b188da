// SPDX-License-Identifier: BSD-3-Clause
// How long closing an adapter may take over TCP.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using Clock = std::chrono::steady_clock;

class TcpClosing : public TcpTest {
 protected:
  // The window is small from the beginning, so that there is more to say than it takes; but of several segments, since
  // a part of one would be sent now and then only.
  static os::UniqueFd call(DAT_CONN_QUAL port) {
    os::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int bytes = 64 << 10;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    there.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0) {
      throw std::runtime_error("nobody takes the call");
    }
    return socket;
  }
  // A peer to which there is more to say than it takes in this test.
  static std::unique_ptr<MpaPeer> meet_one_to_tell_much(Side& side, const Lmr& memory, int& number) {
    os::UniqueFd socket = call(side.listen());
    number = socket.get();
    auto peer = std::make_unique<MpaPeer>(std::move(socket));
    peer->greet({});
    Ep ep(side);
    DAT_LMR_TRIPLET segment = memory.triplet();
    require(dat_ep_post_recv(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_TRUE(peer->hear_answer());
    peer->send_message(hex("'now you may send'"));
    expect_completion(side.recv.get());
    for (int i = 0; i < 8; ++i) {
      require(dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_SUPPRESS_FLAG), "dat_ep_post_send");
    }
    ep.release();  // it ends with its instance
    return peer;
  }
};

// Each takes a little now and then, which is progress, so that the second without any never comes: the close is over
// after ten, for all of them together.
TEST_F(TcpClosing, EndsAfterTenSecondsHoweverLongPeersGoOnTaking) {
  Side side(tcp_wire());
  Lmr memory(side.ia, side.pz, 1 << 20);
  std::array<std::unique_ptr<MpaPeer>, 3> peers;
  std::array<int, 3> sockets{};
  for (std::size_t i = 0; i < peers.size(); ++i) peers[i] = meet_one_to_tell_much(side, memory, sockets[i]);
  std::atomic<bool> over = false;
  std::thread taking([&] {
    std::array<std::byte, 16 << 10> some;
    while (!over) {
      for (const int socket : sockets) ::recv(socket, some.data(), some.size(), MSG_DONTWAIT);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  const auto start = Clock::now();
  EXPECT_EQ(side.ia.close(DAT_CLOSE_ABRUPT_FLAG), static_cast<DAT_RETURN>(DAT_SUCCESS));
  const auto took = Clock::now() - start;
  over = true;
  taking.join();
  EXPECT_GT(took, std::chrono::milliseconds(9'500));
  EXPECT_LT(took, std::chrono::seconds(10) + patience() / 2);
  // The instance has taken all with it.
  memory.release();
  side.pz.release();
  side.psp->release();
  for (Evd* evd : {&side.recv, &side.request, &side.connect, &side.requests}) evd->release();
  target.expect_unharmed();
}

}  // namespace
}  // namespace anydat::test
