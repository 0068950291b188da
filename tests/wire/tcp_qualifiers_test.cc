// SPDX-License-Identifier: BSD-3-Clause
// What hosts say that do not keep to docs/wire-iwarp.md where qualifiers are no ports: to a service point, and as
// the process that has one of the ports that a caller asks at.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "nic/qualifier_ports.h"
#include "nic/refusal.h"
#include "nic/wanted.h"
#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;
using nic::Wanted;
using nic::write_wanted;

Bytes all_of(std::span<const std::byte> bytes) {
  return Bytes(bytes.begin(), bytes.end());
}

class PspAt : public Owner<dat_psp_free> {
 public:
  PspAt(const Side& side, DAT_CONN_QUAL qualifier) {
    require(dat_psp_create(side.ia.get(), qualifier, side.requests.get(), DAT_PSP_CONSUMER_FLAG, out()),
            "dat_psp_create");
  }
};

// Its own in this process. Above all numbers of processes, so that tests may run side by side.
DAT_CONN_QUAL any_qualifier() {
  static DAT_CONN_QUAL next = (DAT_CONN_QUAL{0x61} << 56) + (static_cast<DAT_CONN_QUAL>(::getpid()) << 16);
  return ++next;
}

class TcpQualifier : public TcpTest {
 protected:
  // What a caller is told who asks so.
  struct Told {
    bool rejected = false;
    Bytes why;
  };
  static std::optional<Told> ask(DAT_CONN_QUAL port, const Bytes& private_data) {
    MpaPeer peer(port);
    peer.greet({.revision = 2, .private_data = private_data});
    const auto answer = peer.hear_answer();
    if (!answer) return std::nullopt;
    return Told{answer->frame.rejected, answer->private_data};
  }
  void expect_refused(DAT_CONN_QUAL port, const Bytes& private_data, Caller caller = Caller::here()) {
    const testing::ScopedTrace trace(caller.file, caller.line, "request");
    const auto told = ask(port, private_data);
    ASSERT_TRUE(told);
    EXPECT_TRUE(told->rejected);
    EXPECT_EQ(told->why, nobody());
    target.expect_no_request();
  }
  static Bytes nobody() { return all_of(nic::write_refusal({nic::Refusal::Why::nobody_listens, 0})); }
  // The one of its ports that this service point has. None of the tests' other programs need be the reason.
  DAT_CONN_QUAL its_port() {
    const Bytes question = all_of(write_wanted({Wanted::Kind::whose, qualifier, {}}));
    for (const std::uint16_t port : nic::derived_ports(qualifier)) {
      try {
        const auto told = ask(port, question);
        if (told && told->why == all_of(nic::write_refusal({nic::Refusal::Why::here, qualifier}))) return port;
      } catch (const std::runtime_error&) {
        // No service point is there.
      }
    }
    throw std::runtime_error("the service point is at none of its ports");
  }

  const DAT_CONN_QUAL qualifier = any_qualifier();
};

TEST_F(TcpQualifier, IsAnsweredToWhoeverAsksAndNoRequestToTheProgram) {
  const PspAt psp(target.side(), qualifier);
  const DAT_CONN_QUAL port = its_port();
  target.expect_no_request();
  MpaPeer peer(port);
  peer.greet({.revision = 2, .private_data = all_of(write_wanted({Wanted::Kind::connection, qualifier, hex("'hi'")}))});
  const DAT_EVENT event = expect_event(target.side().requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  const auto& request = event.event_data.cr_arrival_event_data;
  EXPECT_EQ(request.conn_qual, qualifier);
  DAT_CR_PARAM param{};
  require(dat_cr_query(request.cr_handle, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
  EXPECT_EQ(param.private_data_size, 2);
  require(dat_cr_reject(request.cr_handle), "dat_cr_reject");
  const auto answer = peer.hear_answer();
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->frame.rejected);
  EXPECT_TRUE(answer->private_data.empty()) << "by the program";
  target.expect_unharmed();
}

TEST_F(TcpQualifier, MustBeNamedWholeAtADerivedPort) {
  const PspAt psp(target.side(), qualifier);
  const DAT_CONN_QUAL port = its_port();
  // A caller that names none means the port, which is another qualifier.
  expect_refused(port, {});
  expect_refused(port, hex("'as a program would'"));
  const Bytes whole = all_of(write_wanted({Wanted::Kind::connection, qualifier, hex("'data'")}));
  for (const std::size_t half : {1u, 8u, 12u, 15u, 16u, 24u, 28u, 215u}) {
    expect_refused(port, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(half)));
  }
  expect_refused(port, whole + hex("00"));
  for (const DAT_CONN_QUAL other : {qualifier & 0xffff'ffff, qualifier + 1, qualifier ^ (DAT_CONN_QUAL{1} << 63)}) {
    expect_refused(port, all_of(write_wanted({Wanted::Kind::connection, other, {}})));
    expect_refused(port, all_of(write_wanted({Wanted::Kind::whose, other, {}})));
  }
  for (const std::size_t damaged : {8u, 15u, 16u, 17u, 18u}) {
    Bytes bad = whole;
    bad[damaged] ^= std::byte{0x80};
    expect_refused(port, bad);
  }
  target.expect_unharmed();
}

TEST_F(TcpQualifier, ThatIsAPortIsNotReachedByAnother) {
  // 72538 and 7002, say.
  const DAT_CONN_QUAL port = target.port();
  for (const Wanted::Kind kind : {Wanted::Kind::whose, Wanted::Kind::connection}) {
    expect_refused(port, all_of(write_wanted({kind, port + 65536, {}})));
  }
  target.expect_unharmed();
}

// A program says what it likes where the qualifier is the port.
TEST_F(TcpQualifier, DoesNotTakePrivateDataFromAnybody) {
  const Bytes whole = all_of(write_wanted({Wanted::Kind::connection, qualifier, {}}));
  for (const std::size_t half : {8u, 12u, 16u, 215u}) {
    const Bytes data(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(half));
    MpaPeer peer(target.port());
    peer.greet({.private_data = data});
    const DAT_EVENT event = expect_event(target.side().requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    DAT_CR_PARAM param{};
    const DAT_CR_HANDLE request = event.event_data.cr_arrival_event_data.cr_handle;
    require(dat_cr_query(request, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
    EXPECT_EQ(
        all_of({static_cast<const std::byte*>(param.private_data), static_cast<std::size_t>(param.private_data_size)}),
        data);
    require(dat_cr_reject(request), "dat_cr_reject");
    EXPECT_TRUE(peer.hear_answer());
  }
  target.expect_unharmed();
}

// ---- strangers that have one of the ports

// Strangers that do the same at each of the ports of a qualifier.
class Strangers {
 public:
  using Play = std::function<void(MpaPeer& peer, int call)>;  // what was asked has come; calls of a port from 0 on
  // A qualifier whose ports are free, to begin with.
  Strangers(Play play) : play_(std::move(play)) {
    for (int tries = 0; listeners_.size() < nic::kPortsOfQualifier; ++tries) {
      if (tries == 100) throw std::runtime_error("no qualifier has eight free ports");
      listeners_.clear();
      qualifier_ = any_qualifier();
      for (const std::uint16_t port : nic::derived_ports(qualifier_)) {
        if (os::UniqueFd socket = listen_at(port)) listeners_.push_back(std::move(socket));
      }
    }
    for (os::UniqueFd& socket : listeners_) {
      threads_.emplace_back([this, fd = socket.get()] { run(fd); });
    }
  }
  ~Strangers() {
    over_ = true;
    for (const os::UniqueFd& socket : listeners_) ::shutdown(socket.get(), SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
  }
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;
  DAT_CONN_QUAL qualifier() const { return qualifier_; }
  int called() const { return called_; }

 private:
  static os::UniqueFd listen_at(std::uint16_t port) {
    os::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool done = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                      ::listen(socket.get(), 8) == 0;
    if (!done) socket.reset();
    return socket;
  }
  void run(int fd) {
    std::vector<MpaPeer> kept;
    for (int call = 0; !over_; ++call) {
      os::UniqueFd caller(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
      if (!caller) return;
      ++called_;
      MpaPeer peer(std::move(caller));
      if (peer.hear_request()) play_(peer, call);
      kept.push_back(std::move(peer));
    }
  }

  const Play play_;
  DAT_CONN_QUAL qualifier_ = 0;
  std::vector<os::UniqueFd> listeners_;
  std::atomic<bool> over_{false};
  std::atomic<int> called_{0};
  std::vector<std::thread> threads_;
};

struct Play {
  std::string name;
  Strangers::Play play;
  bool at_once = true;  // and not after the second that a silent stranger is given
};
std::ostream& operator<<(std::ostream& out, const Play& play) {
  return out << play.name;
}

const std::vector<Play>& plays() {
  static const std::vector<Play> all{
      {"Reject", [](MpaPeer& peer, int) { peer.send(MpaPeer::answer({}, true)); }},
      {"RejectWithWords", [](MpaPeer& peer, int) { peer.send(MpaPeer::answer({.private_data = hex("'no'")}, true)); }},
      {"Accept", [](MpaPeer& peer, int) { peer.send(MpaPeer::answer({})); }},
      {"AcceptInRevision2", [](MpaPeer& peer, int) { peer.send(MpaPeer::answer({.revision = 2})); }},
      {"ClaimAnotherQualifier",
       [](MpaPeer& peer, int) {
         peer.send(MpaPeer::answer(
             {.private_data = all_of(nic::write_refusal({nic::Refusal::Why::here, 0x1'0000'0000}))}, true));
       }},
      {"SayHalfAQualifier",
       [](MpaPeer& peer, int) {
         peer.send(MpaPeer::answer({.private_data = hex("'anydat-1' 00000003 00000000 61000000")}, true));
       }},
      {"SpeakAnotherProtocol", [](MpaPeer& peer, int) { peer.send(hex("'220 mail.example.org ESMTP' 0d 0a")); }},
      {"SayMoreThanThereCanBe", [](MpaPeer& peer, int) { peer.send(hex("'MPA ID Rep Frame' 20 02 02 01")); }},
      {"HangUp", [](MpaPeer& peer, int) { peer.stop_sending(); }},
      {"Reset", [](MpaPeer& peer, int) { peer.reset(); }},
      {"SayNothing", [](MpaPeer&, int) {}, false},
      {"StopInTheMiddle", [](MpaPeer& peer, int) { peer.send(hex("'MPA ID Rep Fr'")); }, false},
  };
  return all;
}

class TcpStrangers : public TcpTest, public testing::WithParamInterface<Play> {
 protected:
  // All refusing is NON_PEER_REJECTED, in whatever words: no peer has been reached. Returns how long that took.
  std::chrono::steady_clock::duration expect_nobody() {
    Strangers strangers(GetParam().play);
    const Ep ep(target.side(), target.srq());
    const auto begin = std::chrono::steady_clock::now();
    require(dat_ep_connect(ep.get(), loopback(), strangers.qualifier(), DAT_TIMEOUT_INFINITE, 0, nullptr,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    const DAT_EVENT event = expect_event(target.side().connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(event.event_data.connect_event_data.ep_handle, ep.get());
    EXPECT_EQ(strangers.called(), static_cast<int>(nic::kPortsOfQualifier)) << "each is asked, and asked once";
    EXPECT_FALSE(poll_event(target.side().connect.get()));
    return took;
  }
};

TEST_P(TcpStrangers, AtAllPortsAreNobody) {
  auto took = expect_nobody();
  if (!GetParam().at_once) {
    EXPECT_GE(took, std::chrono::milliseconds(950)) << "whoever may just be slow has a second";
    // A busy machine may take its time, but not each time.
    for (int more = 0; more < 4 && took >= std::chrono::milliseconds(1900); ++more) took = expect_nobody();
    EXPECT_LT(took, std::chrono::milliseconds(1900)) << "and no more";
  }
  target.expect_unharmed();
}

std::string play_name(const testing::TestParamInfo<Play>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Plays, TcpStrangers, testing::ValuesIn(plays()), play_name);

// A program at a port of the loopback address that takes no callers, its backlog being full: the kernel drops what
// comes.
class Deaf {
 public:
  explicit Deaf(std::uint16_t port) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* const there = reinterpret_cast<const sockaddr*>(&address);
    if (::bind(listener_.get(), there, sizeof address) != 0 || ::listen(listener_.get(), 0) != 0) return;
    // One caller more than the backlog has room for, the first of whom is in it before connect(2) is done.
    for (int callers = 0; callers < 3; ++callers) {
      callers_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      const int error = ::connect(callers_.back().get(), there, sizeof address) == 0 ? 0 : errno;
      if (error != 0 && error != EINPROGRESS) throw std::runtime_error("no caller fills the backlog");
      pollfd entry{callers_.back().get(), POLLOUT, 0};
      if (callers == 0 && ::poll(&entry, 1, 5000) != 1) throw std::runtime_error("the first caller is not taken");
    }
    listens_ = true;
  }
  bool listens() const { return listens_; }

 private:
  os::UniqueFd listener_;
  std::vector<os::UniqueFd> callers_;
  bool listens_ = false;
};

void connect_for_ever(const Ep& ep, DAT_CONN_QUAL qualifier) {
  require(dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
}

// The kernel itself would go on trying for two minutes.
TEST_F(TcpQualifier, IsNotLookedForLongAtAPortThatTakesNoCallers) {
  const Deaf deaf(nic::derived_ports(qualifier)[2]);
  if (!deaf.listens()) GTEST_SKIP() << "another program has the port";
  const Ep ep(target.side(), target.srq());
  const auto begin = std::chrono::steady_clock::now();
  connect_for_ever(ep, qualifier);
  const auto event = wait_event(target.side().connect.get(), std::chrono::seconds(30));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED) << event_name(event->event_number);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2950)) << "a segment may be lost once";
  EXPECT_FALSE(poll_event(target.side().connect.get()));
  target.expect_unharmed();
}

// The questions and the connection come from the same port, and some go to the same port as well.
TEST_F(TcpQualifier, IsReachedFromARangeOfOnePort) {
  os::UniqueFd keeper(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(keeper.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(keeper.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(keeper.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const std::map<std::string, std::string> env{{"DAT_WIRE", "tcp"}, {"DAT_PORT_RANGE", port + "-" + port}};
  Side client(Wire{.name = "tcp", .ia_name = "soft-lo", .env = env});
  for (int i = 0; i < 10; ++i) {
    const DAT_CONN_QUAL its = any_qualifier();
    const testing::ScopedTrace trace(__FILE__, __LINE__, "attempt " + std::to_string(i));
    const PspAt psp(target.side(), its);
    const Ep ep(client);
    connect_for_ever(ep, its);
    const DAT_EVENT event = expect_event(target.side().requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    const auto& request = event.event_data.cr_arrival_event_data;
    EXPECT_EQ(request.conn_qual, its);
    DAT_CR_PARAM param{};
    require(dat_cr_query(request.cr_handle, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
    EXPECT_EQ(std::to_string(param.remote_port_qual), port);
    require(dat_cr_reject(request.cr_handle), "dat_cr_reject");
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_PEER_REJECTED);
  }
}

using TcpLiars = TcpTest;

// They say that they are the service point, and then send us to it again.
TEST_F(TcpLiars, ThatSendUsRoundInCirclesAreGivenUpInTime) {
  DAT_CONN_QUAL qualifier = 0;
  Strangers strangers([&](MpaPeer& peer, int call) {
    const auto why = call % 2 == 0 ? nic::Refusal::Why::here : nic::Refusal::Why::elsewhere;
    peer.send(MpaPeer::answer({.private_data = all_of(nic::write_refusal({why, qualifier}))}, true));
    peer.stop_sending();
  });
  qualifier = strangers.qualifier();
  const Ep ep(target.side(), target.srq());
  require(dat_ep_connect(ep.get(), loopback(), qualifier, 500'000, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  const auto event = wait_event(target.side().connect.get(), 3 * patience());
  ASSERT_TRUE(event);
  EXPECT_NE(event->event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_FALSE(poll_event(target.side().connect.get()));
  target.expect_unharmed();
}

TEST_F(TcpLiars, ThatHaveSaidItIsTheyAreGivenTheTimeOfTheProgram) {
  DAT_CONN_QUAL qualifier = 0;
  Strangers strangers([&](MpaPeer& peer, int call) {
    if (call > 0) return;
    peer.send(
        MpaPeer::answer({.private_data = all_of(nic::write_refusal({nic::Refusal::Why::here, qualifier}))}, true));
  });
  qualifier = strangers.qualifier();
  const Ep ep(target.side(), target.srq());
  require(dat_ep_connect(ep.get(), loopback(), qualifier, 300'000, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  const auto event = wait_event(target.side().connect.get(), 3 * patience());
  ASSERT_TRUE(event);
  EXPECT_EQ(event->event_number, DAT_CONNECTION_EVENT_TIMED_OUT);
  target.expect_unharmed();
}

}  // namespace
}  // namespace anydat::test
