// SPDX-License-Identifier: BSD-3-Clause
// What the active side over iWARP does for its first message, which soft-iWARP's passive side may leave lying unread
// until more comes (docs/verbs.md). The passive side is a TCP socket that is played by hand, with MPA's frames
// (RFC 5044, section 7.1.1; RFC 6581, section 9.1).
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "support/patience.h"
#include "verbs/device_test.h"

namespace anydat::test {
namespace {

class PassiveHost {
 public:
  // Listens at this address, at any port.
  explicit PassiveHost(sockaddr_in at) {
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    if (bind(listener_.get(), address, size) != 0 || listen(listener_.get(), 1) != 0 ||
        getsockname(listener_.get(), address, &size) != 0) {
      throw std::runtime_error("no port");
    }
    port_ = ntohs(at.sin_port);
    limit(listener_);
  }
  std::uint16_t port() const { return port_; }

  // Answers the request with what it offers.
  void accept() {
    socket_ = base::UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket_) throw std::runtime_error("nobody calls");
    limit(socket_);
    std::array<std::byte, kHeadBytes> head = read<kHeadBytes>();
    const auto data_bytes = std::to_integer<std::size_t>(head[18]) << 8 | std::to_integer<std::size_t>(head[19]);
    std::vector<std::byte> data(data_bytes);
    if (!data.empty()) read_into(data);
    std::memcpy(head.data(), "MPA ID Rep Frame", 16);
    const bool has_depths = std::to_integer<int>(head[17]) == 2 && data.size() >= kDepthsBytes;
    data.resize(has_depths ? kDepthsBytes : 0);
    head[18] = {};
    head[19] = static_cast<std::byte>(data.size());
    std::vector<std::byte> reply(head.begin(), head.end());
    reply.insert(reply.end(), data.begin(), data.end());
    if (send(socket_.get(), reply.data(), reply.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(reply.size())) {
      throw std::runtime_error("it has gone");
    }
  }
  template <std::size_t kCount>
  std::array<std::byte, kCount> read() {
    std::array<std::byte, kCount> bytes{};
    read_into(bytes);
    return bytes;
  }

 private:
  static constexpr std::size_t kHeadBytes = 20;
  static constexpr std::size_t kDepthsBytes = 4;

  static void limit(const base::UniqueFd& socket) {
    const timeval most{std::chrono::duration_cast<std::chrono::seconds>(patience()).count(), 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  }
  void read_into(std::span<std::byte> room) {
    if (recv(socket_.get(), room.data(), room.size(), MSG_WAITALL) != static_cast<ssize_t>(room.size())) {
      throw std::runtime_error("nothing more comes");
    }
  }

  base::UniqueFd listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  base::UniqueFd socket_;
  std::uint16_t port_ = 0;
};

class FirstMessage : public DeviceTest {};

TEST_P(FirstMessage, OverIwarpIsFollowedByAWriteOfNothing) {
  if (GetParam().name.find("siw") == std::string::npos) GTEST_SKIP() << "it is not iWARP";
  sockaddr_in address{};
  std::memcpy(&address, server.ia.attributes().ia_address_ptr, sizeof address);
  address.sin_port = 0;
  PassiveHost host(address);
  const Ep ep(client);
  require(dat_ep_connect(ep.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), host.port(), DAT_TIMEOUT_INFINITE, 0,
                         nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  host.accept();
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  // A length of 14, then DDP's control of the last tagged segment and RDMAP's of a Write (RFC 5041, section 4.1; RFC
  // 5040, section 4.1), STag and offset of nothing, and a checksum or its place.
  constexpr std::array kBegin{std::byte{0}, std::byte{14}, std::byte{0xc1}, std::byte{0x40}};
  for (int i = 0; i < 3; ++i) {
    const auto frame = host.read<20>();
    EXPECT_TRUE(std::equal(kBegin.begin(), kBegin.end(), frame.begin())) << "frame " << i;
  }
  EXPECT_FALSE(poll_event(client.request.get()));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FirstMessage);
INSTANTIATE_TEST_SUITE_P(Devices, FirstMessage, testing::ValuesIn(device_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
