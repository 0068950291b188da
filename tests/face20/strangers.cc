// SPDX-License-Identifier: BSD-3-Clause
// Peers over TCP that are no ends of this library, spoken for by hand: MPA (RFC 5044) and RDMAP (RFC 5040).
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "face20/fixture.h"
#include "support/patience.h"

namespace anydat::test {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr std::size_t kStartUpBytes = 20;
constexpr unsigned kSendInvalidate = 4;  // RFC 5040, figure 3

// A socket of this host's loopback address.
class Stranger {
 public:
  Stranger() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  explicit Stranger(int socket) : socket_(socket) {}
  ~Stranger() { ::close(socket_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void connect(DAT_CONN_QUAL port) const {
    const sockaddr_in there = loopback_at(static_cast<std::uint16_t>(port));
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0) {
      throw std::runtime_error("connect");
    }
  }
  // Returns the port.
  DAT_CONN_QUAL listen() const {
    sockaddr_in here = loopback_at(0);
    socklen_t length = sizeof here;
    auto* const address = reinterpret_cast<sockaddr*>(&here);
    if (::bind(socket_, address, length) != 0 || ::listen(socket_, 1) != 0 ||
        ::getsockname(socket_, address, &length) != 0) {
      throw std::runtime_error("listen");
    }
    return ntohs(here.sin_port);
  }
  int accept() const {
    wait_for_more();
    return ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  }
  void say(const Bytes& bytes) const {
    if (::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("send");
    }
  }
  Bytes hear(std::size_t count) const {
    Bytes bytes(count);
    for (std::size_t done = 0; done < count;) {
      wait_for_more();
      const ssize_t more = ::recv(socket_, bytes.data() + done, count - done, 0);
      if (more <= 0) throw std::runtime_error("the stream has ended");
      done += static_cast<std::size_t>(more);
    }
    return bytes;
  }

 private:
  static sockaddr_in loopback_at(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  void wait_for_more() const {
    pollfd entry{socket_, POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(patience().count())) != 1) throw std::runtime_error("nothing comes");
  }

  int socket_;
};

// Of revision 1, without markers or CRC.
Bytes start_up(std::string_view key, std::size_t private_data) {
  Bytes bytes(key.begin(), key.end());
  bytes.push_back(0);
  bytes.push_back(1);
  bytes.push_back(static_cast<unsigned char>(private_data >> 8));
  bytes.push_back(static_cast<unsigned char>(private_data));
  for (std::size_t i = 0; i < private_data; ++i) bytes.push_back(static_cast<unsigned char>(i * 5 + 1));
  return bytes;
}

// Its length, the controls of DDP and RDMAP, what they say, the bytes up to a multiple of 4, and the place of a CRC.
Bytes next_frame(const Stranger& stranger) {
  Bytes frame = stranger.hear(2);
  const std::size_t padded = (2 + (std::size_t{frame[0]} << 8 | frame[1]) + 3) / 4 * 4;
  const Bytes rest = stranger.hear(padded - 2 + 4);
  frame.insert(frame.end(), rest.begin(), rest.end());
  return frame;
}

class Dat2Strangers : public testing::Test {
 protected:
  Side side{wire_by_name("tcp")};
};

// D2-CR-7: as much as an endpoint of this library could have sent is heard, and no more.
TEST_F(Dat2Strangers, MayTellMoreThanIsHeard) {
  const DAT_COUNT most = side.ia.provider().max_private_data_size;
  for (const DAT_COUNT told : {most - 1, most, most + 1, DAT_COUNT{512}}) {
    const Stranger stranger;
    stranger.connect(side.listen());
    stranger.say(start_up("MPA ID Req Frame", static_cast<std::size_t>(told)));
    const DAT_EVENT event = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    const DAT_CR_ARRIVAL_EVENT_DATA& arrival = event.event_data.cr_arrival_event_data;
    EXPECT_EQ(arrival.truncate_flag, told > most ? DAT_TRUE : DAT_FALSE) << told;
    DAT_CR_PARAM param{};
    require(dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
    ASSERT_EQ(param.private_data_size, std::min(told, most));
    const auto* const heard = static_cast<const unsigned char*>(param.private_data);
    for (DAT_COUNT i = 0; i < param.private_data_size; ++i) {
      ASSERT_EQ(heard[i], static_cast<unsigned char>(i * 5 + 1)) << i;
    }
    require(dat_cr_reject(arrival.cr_handle, 0, nullptr), "dat_cr_reject");
  }
}

// D2-SENDINV-8: they are sent what the RFC has them know, though they have not said that they do.
TEST_F(Dat2Strangers, AreTakenToCarryOutInvalidations) {
  constexpr DAT_RMR_CONTEXT kTheirs = 0x1a2b3c4d;
  const Stranger door;
  const DAT_CONN_QUAL port = door.listen();
  const Ep ep(side);
  require(dat_ep_connect(ep.get(), loopback(), port, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  const Stranger stranger(door.accept());
  const Bytes request = stranger.hear(kStartUpBytes);
  (void)stranger.hear(std::size_t{request[18]} << 8 | request[19]);
  stranger.say(start_up("MPA ID Rep Frame", 0));
  (void)expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  const Lmr source(side.ia, side.pz, 8);
  DAT_LMR_TRIPLET segment = source.triplet();
  EXPECT_THAT(
      dat_ep_post_send_with_invalidate(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE, kTheirs),
      Succeeds());
  (void)expect_completion(side.request.get());
  // Before it comes what one of this library says to its like, as a Write that others ignore.
  Bytes frame = next_frame(stranger);
  for (int more = 0; more < 3 && (frame[3] & 0xfu) != kSendInvalidate; ++more) frame = next_frame(stranger);
  EXPECT_EQ(frame[3] & 0xfu, kSendInvalidate);
  EXPECT_EQ(
      DAT_RMR_CONTEXT{frame[4]} << 24 | DAT_RMR_CONTEXT{frame[5]} << 16 | DAT_RMR_CONTEXT{frame[6]} << 8 | frame[7],
      kTheirs);
}

}  // namespace
}  // namespace anydat::test
