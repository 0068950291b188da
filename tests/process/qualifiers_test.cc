// SPDX-License-Identifier: BSD-3-Clause
// Service points over TCP whose qualifiers are no ports, and who else may have the ports that stand for them
// (docs/wire-iwarp.md): other service points, other programs, other users.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "nic/qualifier_ports.h"
#include "os/unique_fd.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

using nic::derived_ports;

const Wire& tcp() {
  return wire_by_name("tcp");
}

// A program that is none of ours and listens on a port of the loopback address.
class Foreigner {
 public:
  explicit Foreigner(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket_.get(), 8) != 0) {
      socket_.reset();
    }
  }
  bool listens() const { return static_cast<bool>(socket_); }
  // Whether anybody has called.
  bool called() const {
    pollfd entry{socket_.get(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  }
  // Hears what the next caller says and gives that answer.
  void answer(const std::string& bytes) {
    pollfd entry{socket_.get(), POLLIN, 0};
    const int limit = static_cast<int>(patience().count());
    if (::poll(&entry, 1, limit) != 1) throw std::runtime_error("nobody has called");
    caller_ = os::UniqueFd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 1024> heard;
    entry.fd = caller_.get();
    if (::poll(&entry, 1, limit) != 1 || ::recv(caller_.get(), heard.data(), heard.size(), 0) <= 0) {
      throw std::runtime_error("the caller says nothing");
    }
    if (::send(caller_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) throw std::runtime_error("it has gone");
  }
  void leave() {
    caller_.reset();
    socket_.reset();
  }

 private:
  os::UniqueFd socket_;
  os::UniqueFd caller_;
};

// A rejection by a program, as RFC 5044 has it.
std::string rejection() {
  std::string bytes = "MPA ID Rep Frame";
  bytes += {'\x20', '\x01', '\x00', '\x00'};
  return bytes;
}

// A qualifier none of whose ports anybody listens on at the moment. Above the numbers of processes, and different in
// each process, so that tests may run side by side.
DAT_CONN_QUAL free_qualifier() {
  static DAT_CONN_QUAL next = (DAT_CONN_QUAL{0x51} << 56) + (static_cast<DAT_CONN_QUAL>(::getpid()) << 20);
  for (;;) {
    ++next;
    bool all = true;
    for (const std::uint16_t port : derived_ports(next)) all = all && Foreigner(port).listens();
    if (all) return next;
  }
}

class PspAt : public Owner<dat_psp_free> {
 public:
  PspAt(const Side& side, DAT_CONN_QUAL qualifier) {
    require(dat_psp_create(side.ia.get(), qualifier, side.requests.get(), DAT_PSP_CONSUMER_FLAG, out()),
            "dat_psp_create");
  }
};

DAT_RETURN try_listen(const Side& side, DAT_CONN_QUAL qualifier) {
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  const DAT_RETURN rc = dat_psp_create(side.ia.get(), qualifier, side.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp);
  if (rc == DAT_SUCCESS) require(dat_psp_free(psp), "dat_psp_free");
  return DAT_GET_TYPE(rc);
}

void ask(const Ep& ep, DAT_CONN_QUAL qualifier) {
  require(dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
}

class TcpQualifiers : public testing::Test {
 protected:
  void expect_reached(DAT_CONN_QUAL qualifier, Caller caller = Caller::here()) {
    const testing::ScopedTrace trace(caller.file, caller.line, "attempt");
    Ep active(client);
    Ep passive(server);
    ask(active, qualifier);
    const DAT_EVENT event = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    const auto& request = event.event_data.cr_arrival_event_data;
    EXPECT_EQ(request.conn_qual, qualifier);
    require(dat_cr_accept(request.cr_handle, passive.get(), 0, nullptr), "dat_cr_accept");
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    require(dat_ep_disconnect(active.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
    ASSERT_TRUE(wait_event(client.connect.get()));
    ASSERT_TRUE(wait_event(server.connect.get()));
    EXPECT_FALSE(poll_event(server.requests.get()));
  }
  void expect_nobody(DAT_CONN_QUAL qualifier, Caller caller = Caller::here()) {
    const Ep active(client);
    ask(active, qualifier);
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED, caller);
  }

  Side server{tcp()};
  Side client{tcp()};
};

TEST_F(TcpQualifiers, MayHaveTheSameFirstPort) {
  const DAT_CONN_QUAL first = free_qualifier();
  DAT_CONN_QUAL second = first + 1;
  while (derived_ports(second)[0] != derived_ports(first)[0]) ++second;
  std::optional<PspAt> one;
  one.emplace(server, first);
  expect_nobody(second);
  std::optional<PspAt> two;
  two.emplace(server, second);
  expect_reached(first);
  expect_reached(second);
  // Its first port is free now, and it is elsewhere.
  one.reset();
  expect_reached(second);
  expect_nobody(first);
  one.emplace(server, first);
  expect_reached(first);
  expect_reached(second);
}

// docs/wire-iwarp.md, Qualifiers above 65535: a port of the eight is one service point's alone. Two that shared one
// would each get callers of the other, and which, the kernel would choose; so it is asked who has the second port, not
// who answers.
TEST_F(TcpQualifiers, DoNotShareAPort) {
  const DAT_CONN_QUAL first = free_qualifier();
  const std::uint16_t wanted = derived_ports(first)[0];
  DAT_CONN_QUAL second = first;
  do {
    ++second;
  } while (derived_ports(second)[0] != wanted || !Foreigner(derived_ports(second)[1]).listens());
  const PspAt one(server, first);
  ASSERT_FALSE(Foreigner(wanted).listens());
  for (const Side* const side : {&server, &client}) {  // of the same instance of the adapter, and of another
    const PspAt two(*side, second);
    EXPECT_FALSE(Foreigner(derived_ports(second)[1]).listens()) << "the second service point has its second port";
  }
}

TEST_F(TcpQualifiers, AreReachedWhoeverHasTheirFirstPort) {
  const DAT_CONN_QUAL qualifier = free_qualifier();
  const auto ports = derived_ports(qualifier);
  Foreigner foreigner(ports[0]);
  ASSERT_TRUE(foreigner.listens());
  const PspAt psp(server, qualifier);
  EXPECT_FALSE(Foreigner(ports[1]).listens()) << "the second is the service point's";
  // The silence of the first port is not waited for.
  const auto begin = std::chrono::steady_clock::now();
  expect_reached(qualifier);
  if (!built_with_sanitizer()) {
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(900));
  }
  EXPECT_TRUE(foreigner.called());
  foreigner.leave();
  expect_reached(qualifier);
  // Some other foreigner has come.
  const Foreigner next(ports[0]);
  ASSERT_TRUE(next.listens());
  expect_reached(qualifier);
}

TEST_F(TcpQualifiers, WithAStrangerInTheirPlaceAreNobody) {
  const DAT_CONN_QUAL qualifier = free_qualifier();
  Foreigner foreigner(derived_ports(qualifier)[3]);
  ASSERT_TRUE(foreigner.listens());
  {
    const Ep active(client);
    ask(active, qualifier);
    foreigner.answer(rejection());
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  }
  // Who says nothing is waited for, a second long.
  const Ep active(client);
  const auto begin = std::chrono::steady_clock::now();
  ask(active, qualifier);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(950));
}

TEST_F(TcpQualifiers, WithoutAnyFreePortAreNotAvailable) {
  // PSP-CREATE-9
  const DAT_CONN_QUAL qualifier = free_qualifier();
  std::vector<Foreigner> foreigners;
  for (const std::uint16_t port : derived_ports(qualifier)) {
    foreigners.emplace_back(port);
    ASSERT_TRUE(foreigners.back().listens());
  }
  EXPECT_EQ(try_listen(server, qualifier), static_cast<DAT_RETURN>(DAT_CONN_QUAL_UNAVAILABLE));
  for (const std::size_t free : {7u, 2u}) {
    foreigners[free].leave();
    const PspAt psp(server, qualifier);
    expect_reached(qualifier);
  }
}

// As 72538 is not 7002.
TEST_F(TcpQualifiers, AreNotThePortsOfTheirLowerBits) {
  const DAT_CONN_QUAL port = server.listen();
  expect_nobody(port + 65536);
  EXPECT_FALSE(poll_event(server.requests.get()));
  // And a port that stands for one of them is no service point's qualifier.
  const DAT_CONN_QUAL qualifier = free_qualifier();
  const PspAt psp(server, qualifier);
  const DAT_CONN_QUAL its_port = derived_ports(qualifier)[0];
  expect_nobody(its_port);
  EXPECT_EQ(try_listen(server, its_port), static_cast<DAT_RETURN>(DAT_CONN_QUAL_IN_USE));
  EXPECT_FALSE(poll_event(server.requests.get()));
  expect_reached(qualifier);
}

// As a port does: RSP-CREATE-4 ends a reserved service point with its request, and what is behind it is met again.
TEST_F(TcpQualifiers, OfADeviceGoFirstUntilTheyHaveHadTheirRequest) {
  const DAT_CONN_QUAL qualifier = free_qualifier();
  const Side everywhere(Wire{.name = "tcp", .ia_name = "soft", .env = {{"DAT_WIRE", "tcp"}}});
  const PspAt psp(everywhere, qualifier);
  const Ep reserved(server);
  DAT_RSP_HANDLE handle = DAT_HANDLE_NULL;
  require(dat_rsp_create(server.ia.get(), qualifier, reserved.get(), server.requests.get(), &handle), "dat_rsp_create");
  const Owner<dat_rsp_free> rsp(handle);
  for (const Side* const asked : {static_cast<const Side*>(&server), &everywhere}) {
    const Ep active(client);
    ask(active, qualifier);
    const DAT_EVENT event = expect_event(asked->requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    require(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle), "dat_cr_reject");
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
  }
  EXPECT_EQ(try_listen(server, qualifier), static_cast<DAT_RETURN>(DAT_CONN_QUAL_IN_USE)) << "taken until freed";
}

// EP-CONN-21: where not all ports can be asked, none is; the attempt fails at once, and leaves nothing.
TEST_F(TcpQualifiers, AreNotAskedForWithoutDescriptors) {
  const DAT_CONN_QUAL qualifier = free_qualifier();
  // No thread accepts there: a service point of this process would, and would free the descriptor that it keeps to do
  // so with for a moment, in the middle of an attempt.
  std::vector<std::unique_ptr<Foreigner>> foreigners;
  for (const std::uint16_t port : derived_ports(qualifier)) {
    foreigners.push_back(std::make_unique<Foreigner>(port));
    ASSERT_TRUE(foreigners.back()->listens()) << port;
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = std::min<rlim_t>(before.rlim_cur, 512);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  {
    const Ep active(client);
    std::vector<os::UniqueFd> all;
    for (;;) {
      os::UniqueFd one(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
      if (!one) break;
      all.push_back(std::move(one));
    }
    for (int left = 0; left < 9; ++left) {  // eight to ask with, and one with the port that is asked from
      EXPECT_EQ(DAT_GET_TYPE(dat_ep_connect(active.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr,
                                            DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)),
                static_cast<DAT_RETURN>(DAT_INSUFFICIENT_RESOURCES))
          << left;
      EXPECT_EQ(active.state(), DAT_EP_STATE_UNCONNECTED);
      EXPECT_FALSE(poll_event(client.connect.get()));
      all.pop_back();
    }
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  foreigners.clear();
  const PspAt psp(server, qualifier);
  expect_reached(qualifier);
}

// ---- shared memory alone

// A service point of `soft` and one of a device may have the same qualifier there.
Wire shm_only(const std::string& ia_name, const std::string& ports = "") {
  Wire wire{.name = "shm", .ia_name = ia_name, .env = {{"DAT_WIRE", "shm"}}};
  if (!ports.empty()) wire.env.emplace("DAT_PORT_RANGE", ports);
  return wire;
}

TEST(ShmQualifiers, OfADeviceGoFirst) {
  const DAT_CONN_QUAL qualifier = free_qualifier();
  const Side everywhere(shm_only("soft"));
  const Side device(shm_only("soft-lo"));
  Side client(shm_only("soft-lo"));
  const PspAt of_all(everywhere, qualifier);
  std::optional<PspAt> of_device;
  of_device.emplace(device, qualifier);
  for (const Side* const asked : {&device, &everywhere}) {
    const Ep active(client);
    ask(active, qualifier);
    const DAT_EVENT event = expect_event(asked->requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    require(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle), "dat_cr_reject");
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
    of_device.reset();
  }
}

// PSP-ANY-3: a service point that is given one is reached by it, and none is hidden by that.
TEST(ShmQualifiers, ThatAreGivenAreNobodyElses) {
  // Two that tests beside this one do not have.
  const DAT_CONN_QUAL first = 2048 + 2 * static_cast<DAT_CONN_QUAL>(::getpid() % 14000);
  const std::string ports = std::to_string(first) + "-" + std::to_string(first + 1);
  for (const bool device_first : {true, false}) {
    const Side one(shm_only(device_first ? "soft-lo" : "soft", ports));
    const Side other(shm_only(device_first ? "soft" : "soft-lo", ports));
    const PspAt psp(one, first);
    for (int i = 0; i < 20; ++i) {
      DAT_CONN_QUAL qualifier = 0;
      DAT_PSP_HANDLE given = DAT_HANDLE_NULL;
      const DAT_RETURN rc =
          dat_psp_create_any(other.ia.get(), &qualifier, other.requests.get(), DAT_PSP_CONSUMER_FLAG, &given);
      require(rc, "dat_psp_create_any");
      const Owner<dat_psp_free> owner(given);
      EXPECT_EQ(qualifier, first + 1);
    }
    const PspAt second(one, first + 1);
    DAT_CONN_QUAL qualifier = 0;
    DAT_PSP_HANDLE none = DAT_HANDLE_NULL;
    EXPECT_EQ(DAT_GET_TYPE(
                  dat_psp_create_any(other.ia.get(), &qualifier, other.requests.get(), DAT_PSP_CONSUMER_FLAG, &none)),
              static_cast<DAT_RETURN>(DAT_CONN_QUAL_UNAVAILABLE));
  }
}

// ---- other processes

// Arguments: the qualifier, and the user whom the process belongs to, or nothing. Says what came of listening, and then
// lives until it is told to end.
void play_listener(RoleContext& context) {
  const DAT_CONN_QUAL qualifier = std::stoull(context.arguments.at(0));
  const bool changes = context.arguments.size() > 1;
  if (changes) {
    const auto user = static_cast<uid_t>(std::stoul(context.arguments.at(1)));
    if (::setresuid(user, user, user) != 0) {
      context.parent.say("no such user");
      return;
    }
  }
  Side side(context.wire);
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  const DAT_RETURN rc = dat_psp_create(side.ia.get(), qualifier, side.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp);
  const char* type = "";
  const char* subtype = "";
  dat_strerror(rc, &type, &subtype);
  context.parent.say(type);
  context.parent.hear();
  if (rc == DAT_SUCCESS) require(dat_psp_free(psp), "dat_psp_free");
}

const Role kListener("qualified_listener", play_listener);

TEST_F(TcpQualifiers, BelongToOneUserOfAHost) {
  // PSP-CREATE-9: as a port does.
  const DAT_CONN_QUAL qualifier = free_qualifier();
  PeerProcess other("qualified_listener", tcp(), {std::to_string(qualifier), "65534"});
  const std::string outcome = other.channel().hear();
  if (outcome.starts_with("no such user")) GTEST_SKIP() << "this user cannot become another";
  ASSERT_EQ(outcome, "DAT_SUCCESS");
  EXPECT_EQ(try_listen(server, qualifier), static_cast<DAT_RETURN>(DAT_CONN_QUAL_IN_USE));
  other.channel().say("end");
  EXPECT_EQ(other.wait_exit(), 0);
  EXPECT_EQ(try_listen(server, qualifier), static_cast<DAT_RETURN>(DAT_SUCCESS));
}

TEST_F(TcpQualifiers, AreFreeOnceTheirProcessIsDead) {
  const DAT_CONN_QUAL qualifier = free_qualifier();
  PeerProcess other("qualified_listener", tcp(), {std::to_string(qualifier)});
  ASSERT_EQ(other.channel().hear(), "DAT_SUCCESS");
  EXPECT_EQ(try_listen(server, qualifier), static_cast<DAT_RETURN>(DAT_CONN_QUAL_IN_USE));
  // An endpoint is connecting when it dies.
  const Ep active(client);
  ask(active, qualifier);
  other.kill();
  const auto event = wait_event(client.connect.get());
  ASSERT_TRUE(event);
  EXPECT_EQ(event->event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  expect_nobody(qualifier);
  const PspAt psp(server, qualifier);
  expect_reached(qualifier);
}

}  // namespace
}  // namespace anydat::test
