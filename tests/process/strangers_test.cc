// SPDX-License-Identifier: BSD-3-Clause
// Hosts that call and say nothing, more of them than the program has descriptors for: the program keeps most of its
// descriptors, and who has something to say is heard.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "footprint.h"
#include "lingering.h"
#include "raw_peer.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr rlim_t kLimit = 128;

void limit_descriptors(rlim_t most) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = most;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("setrlimit");
}

// How often it has been logged that there are too many strangers.
int warnings_in(int log) {
  std::string text(65536, '\0');
  const ssize_t length = ::pread(log, text.data(), text.size(), 0);
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  int count = 0;
  for (std::size_t at = 0; (at = text.find("a quarter of RLIMIT_NOFILE", at)) != std::string::npos; ++at) ++count;
  return count;
}

std::size_t open_files() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// Takes "limit N", "open N", "serve N", "files", "processor time", "watch the log", "warnings",
// "do not listen".
void play_besieged_server(RoleContext& context) {
  const int log = ::memfd_create("log", MFD_CLOEXEC);
  Side side(context.wire);
  context.parent.say(std::to_string(side.listen()));
  std::vector<Ep> ends;
  for (;;) {
    const std::string line = context.parent.hear(std::chrono::hours(1));
    const auto number = [&] { return std::stoul(line.substr(line.find(' ') + 1)); };
    if (line.starts_with("limit ")) {
      limit_descriptors(number());
      context.parent.say("ok");
    } else if (line.starts_with("open ")) {
      std::vector<Fd> files;
      for (std::size_t i = 0; i < number(); ++i) {
        Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        if (file) files.push_back(std::move(file));
      }
      context.parent.say(std::to_string(files.size()));
    } else if (line.starts_with("serve ")) {
      for (std::size_t i = 0; i < number(); ++i) {
        const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
        ends.emplace_back(side);
        require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ends.back().get(), 0, nullptr),
                "dat_cr_accept");
        expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
      }
      context.parent.say("served");
    } else if (line == "watch the log") {
      context.parent.say(::dup2(log, STDERR_FILENO) == STDERR_FILENO ? "ok" : "no log");
    } else if (line == "warnings") {
      context.parent.say(std::to_string(warnings_in(log)));
    } else if (line == "do not listen") {
      side.psp.reset();
      context.parent.say("it does not");
    } else if (line == "files") {
      context.parent.say(std::to_string(open_files()));
    } else if (line == "processor time") {
      context.parent.say(std::to_string(processor_time().count()));
    } else {
      return;
    }
  }
}

const Role kBesiegedServer("besieged_server", play_besieged_server);

class Server {
 public:
  explicit Server(const Wire& wire)
      : process_("besieged_server", wire), qual_(std::stoull(process_.channel().hear())) {}
  DAT_CONN_QUAL qual() const { return qual_; }
  void stop() {
    ::kill(process_.pid(), SIGSTOP);
    process_.wait_until_stopped();
  }
  void resume() { process_.resume(); }
  void tell(const std::string& line) { process_.channel().say(line); }
  std::string hear() { return process_.channel().hear(); }
  std::string ask(const std::string& line) {
    tell(line);
    return hear();
  }
  int finish() {
    tell("finish");
    return process_.wait_exit();
  }

 private:
  PeerProcess process_;
  DAT_CONN_QUAL qual_;
};

// A socket that has called from that address of this host, 127.0.0.`from`.
Fd call(DAT_CONN_QUAL qual, unsigned from) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(0x7f000000u | from);
  sockaddr_in there = here;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  there.sin_port = htons(static_cast<std::uint16_t>(qual));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0) {
    throw std::runtime_error("nobody takes the call");
  }
  return socket;
}

// Nothing has come from there, and it has not hung up.
bool still_open(const Fd& socket) {
  char byte = 0;
  return ::recv(socket.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

void connect(const Side& side, const Ep& ep, DAT_CONN_QUAL qual) {
  require(dat_ep_connect(ep.get(), loopback(), qual, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST(Strangers, LeaveTheProgramItsDescriptorsAndItsPeersTheService) {
  const Wire& wire = wire_by_name("tcp");
  Server server(wire);
  ASSERT_EQ(server.ask("limit " + std::to_string(kLimit)), "ok");
  std::vector<Fd> strangers;
  for (rlim_t i = 0; i < kLimit + 20; ++i) strangers.push_back(call(server.qual(), 1));
  Side side(wire);
  std::vector<Ep> ends;
  server.tell("serve 10");
  for (int i = 0; i < 10; ++i) {
    ends.emplace_back(side);
    connect(side, ends.back(), server.qual());
  }
  EXPECT_EQ(server.hear(), "served");
  EXPECT_EQ(server.ask("open 40"), "40");
  EXPECT_EQ(server.finish(), 0);
}

// Who lays siege does not fill the log as well.
TEST(Strangers, AreLoggedOnce) {
  const ScopedEnv env(std::map<std::string, std::string>{{"DAT_LOG", "warn"}});
  Server server(wire_by_name("tcp"));
  ASSERT_EQ(server.ask("limit " + std::to_string(kLimit)), "ok");
  ASSERT_EQ(server.ask("watch the log"), "ok");
  for (int siege = 0; siege < 3; ++siege) {
    std::vector<Fd> strangers;
    for (rlim_t i = 0; i < kLimit; ++i) strangers.push_back(call(server.qual(), 1));
    EXPECT_TRUE(eventually([&] { return !still_open(strangers[kLimit / 2]); }));
  }
  EXPECT_EQ(server.ask("warnings"), "1");
  EXPECT_EQ(server.finish(), 0);
}

// A caller that has sent nothing is turned out from the address with the most sockets first: a slow peer elsewhere
// stays.
TEST(Strangers, OfOneAddressDoNotDriveOutThoseOfAnother) {
  Server server(wire_by_name("tcp"));
  ASSERT_EQ(server.ask("limit " + std::to_string(kLimit)), "ok");
  const Fd slow = call(server.qual(), 3);
  std::vector<Fd> strangers;
  for (rlim_t i = 0; i < kLimit; ++i) strangers.push_back(call(server.qual(), 2));
  // The oldest of them go; the newest are there still.
  EXPECT_TRUE(eventually([&] { return !still_open(strangers[kLimit / 2]); }));
  EXPECT_TRUE(still_open(strangers.back()));
  EXPECT_TRUE(still_open(slow));
  EXPECT_EQ(server.finish(), 0);
}

// RFC 5042, section 6: what a process of this host has passed and the server cannot close keeps out no other host.
TEST(Strangers, OfThisHostThatLeaveSomethingBehindDoNotKeepOutThoseOfOthers) {
  const Wire& wire = wire_by_name("tcp");
  Server server(wire);
  ASSERT_EQ(server.ask("limit " + std::to_string(kLimit)), "ok");
  const std::size_t before = std::stoul(server.ask("files"));
  std::vector<Lingering> lingering(kLimit / 2);
  server.stop();  // it hangs up on each at once, who would not have passed anything then
  for (Lingering& one : lingering) {
    RawPeer peer(raw_service_name(server.qual()));
    ASSERT_TRUE(peer.greet(shm::GreetingKind::hello, {one.get()}));
    one.give_away();
  }
  server.resume();
  // A quarter of the descriptors is for callers, and half of it for those of this host. The two that are being closed
  // have no number any longer.
  const std::size_t left = kLimit / 8 - 2;
  EXPECT_TRUE(eventually([&] { return std::stoul(server.ask("files")) >= before + left; }));
  Side side(wire);
  const Ep ep(side);
  server.tell("serve 1");
  connect(side, ep, server.qual());
  EXPECT_EQ(server.hear(), "served");
  EXPECT_EQ(server.finish(), 0);
}

// RFC 5042, section 6: nor does a program that frees its service point wait for what the callers have passed that it
// has not accepted, more of them than it has descriptors for.
TEST(Strangers, OfThisHostThatLeaveSomethingBehindDoNotHoldUpTheEndOfTheServicePoint) {
  Server server(wire_by_name("tcp"));
  ASSERT_EQ(server.ask("limit " + std::to_string(kLimit)), "ok");
  std::vector<Lingering> lingering(kLimit + 20);
  server.stop();
  for (Lingering& one : lingering) {
    RawPeer peer(raw_service_name(server.qual()));
    ASSERT_TRUE(peer.greet(shm::GreetingKind::hello, {one.get()}));
    one.give_away();
  }
  server.tell("do not listen");
  const auto begun = std::chrono::steady_clock::now();
  server.resume();
  EXPECT_EQ(server.hear(), "it does not");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, Lingering::kTime / 8);
  EXPECT_EQ(server.ask("open 40"), "40");
  lingering.clear();
  EXPECT_EQ(server.finish(), 0);
}

class Starved : public testing::TestWithParam<Wire> {};

// Descriptors that are open already can lie beyond a limit that is lowered: then not even one is left to turn callers
// away with. They wait until there is one.
TEST_P(Starved, AcceptingWaitsWithoutSpinning) {
  Server server(GetParam());
  ASSERT_EQ(server.ask("limit 4"), "ok");
  Side side(GetParam());
  const Ep ep(side);
  require(dat_ep_connect(ep.get(), loopback(), server.qual(), DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  // The control is a process that waits for no caller: what it uses in the same time is next to nothing.
  const long before = std::stol(server.ask("processor time"));
  std::this_thread::sleep_for(std::chrono::milliseconds(400));  // the time over which it is measured
  EXPECT_LT(std::stol(server.ask("processor time")) - before, 100'000) << "it spins";
  ASSERT_EQ(server.ask("limit " + std::to_string(kLimit)), "ok");
  server.tell("serve 1");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(server.hear(), "served");
  EXPECT_EQ(server.finish(), 0);
}

INSTANTIATE_TEST_SUITE_P(Wires, Starved, testing::Values(wire_by_name("shm"), wire_by_name("tcp")), wire_name);

}  // namespace
}  // namespace anydat::test
