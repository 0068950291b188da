// SPDX-License-Identifier: BSD-3-Clause
// The tools' servers, and clients that are none: what one of them does, or lacks, must not end the service for others.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "os/unique_fd.h"
#include "support/dat_fixture.h"
#include "support/progress.h"

namespace anydat::test {
namespace {

// Where the tools are: those that were built with this test, or those of ANYDAT_TEST_BIN.
std::string tool_folder() {
  const char* other = std::getenv("ANYDAT_TEST_BIN");
  return other ? other : ANYDAT_BIN;
}

// A tool that serves on a qualifier of its choice, until the test ends.
class ToolServer {
 public:
  explicit ToolServer(std::vector<std::string> arguments) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    output_ = os::UniqueFd(ends[0]);
    const os::UniqueFd theirs(ends[1]);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const std::string program = tool_folder() + "/" + arguments[0];
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(theirs.get(), STDOUT_FILENO);
      execv(program.c_str(), argv.data());
      _exit(127);
    }
  }
  ~ToolServer() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ToolServer(const ToolServer&) = delete;
  ToolServer& operator=(const ToolServer&) = delete;

  // What follows "ADDRESS:" in its first line.
  DAT_CONN_QUAL qualifier() {
    std::string line;
    for (char c = 0; read(output_.get(), &c, 1) == 1 && c != '\n';) line += c;
    const auto at = line.find(" on ");
    const auto colon = line.find(" (");
    if (at == std::string::npos || colon == std::string::npos) throw std::runtime_error("it serves nowhere: " + line);
    return std::stoul(line.substr(line.rfind(':', colon) + 1));
  }
  bool lives() const {
    siginfo_t ended{};
    return waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
  }
  pid_t pid() const { return pid_; }
  // What it has of memory at the most, in bytes.
  std::uint64_t peak() const {
    std::ifstream status(fmt::format("/proc/{}/status", pid_));
    for (std::string word; status >> word;) {
      std::uint64_t kib = 0;
      if (word == "VmHWM:" && status >> kib) return kib << 10;
    }
    return 0;
  }

 private:
  const Bystander bystander_;
  pid_t pid_ = -1;
  os::UniqueFd output_;
};

// How a tool that is run to its end ends.
int run_tool(const std::string& command) {
  const int status = std::system(fmt::format("timeout 60 {}/{} >/dev/null 2>&1", tool_folder(), command).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The first 64 bytes that a client of datperf says.
struct RunRequest {
  std::uint64_t magic = 0x6461747065726634;
  std::uint8_t metric = 0, op = 0, srq = 0, block = 1;
  std::uint32_t endpoints = 1, index = 0;
  std::uint16_t shareable = 0, clients = 1;
  std::uint64_t size = 64, iters = 100, warmup = 0, run = 1;
  std::uint8_t window = 0, slots = 0;
  std::uint8_t bidirectional = 0, notices = 0;
  std::uint16_t batch = 0, at_once = 0;
};
static_assert(sizeof(RunRequest) == 64);

// What a client says about the next phase.
struct PhaseReport {
  std::uint64_t magic = 0x646174706572665f;
  std::array<std::byte, 32> other{};
  std::uint64_t elapsed_ns = 0, messages = 0, growth = 0;
};

class ToolServers : public testing::TestWithParam<Wire> {
 protected:
  template <typename Request>
  Ep ask(DAT_CONN_QUAL qualifier, const Request& request, std::size_t bytes) {
    std::array<std::byte, 64> data{};
    std::memcpy(data.data(), &request, sizeof request);
    Ep ep(side);
    require(dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, static_cast<DAT_COUNT>(bytes),
                           data.data(), DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    return ep;
  }
  static std::vector<std::string> datperf_serve(const std::vector<std::string>& options) {
    std::vector<std::string> command{"datperf", "serve", "--qual", "0", "--ia", GetParam().ia_name};
    command.insert(command.end(), options.begin(), options.end());
    return command;
  }
  // Whether datperf runs against the server now.
  static bool serves_another(DAT_CONN_QUAL qualifier) {
    return run_tool(fmt::format("datperf lat --size 64 --iters 50 --wait block --to 127.0.0.1:{} --ia {}", qualifier,
                                GetParam().ia_name)) == 0;
  }
  DAT_EVENT_NUMBER answer() {
    const auto event = wait_event(side.connect.get());
    return event ? event->event_number : DAT_EVENT_NUMBER{};
  }

  Side side{GetParam()};
  ScopedEnv env{GetParam().env};  // for the tools, too
};

TEST_P(ToolServers, DatperfIsNotEndedByARequestThatContradictsAnother) {
  ToolServer server(datperf_serve({}));
  const DAT_CONN_QUAL qualifier = server.qualifier();
  RunRequest request;
  request.endpoints = 2;
  const Ep first = ask(qualifier, request, 64);
  EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_ESTABLISHED);
  request.endpoints = 70;
  request.index = 69;
  const Ep second = ask(qualifier, request, 64);
  EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_PEER_REJECTED);
  EXPECT_TRUE(server.lives());
  request.index = 0;  // again
  const Ep third = ask(qualifier, request, 64);
  EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_PEER_REJECTED);
  EXPECT_TRUE(server.lives());
}

TEST_P(ToolServers, DatperfTurnsFromAnIdleClientToTheNext) {
  ToolServer server(datperf_serve({"--patience", "0.3"}));
  const DAT_CONN_QUAL qualifier = server.qualifier();
  const Ep idle = ask(qualifier, RunRequest{}, 64);
  EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_TRUE(serves_another(qualifier));
}

// A run that is being set up, and never will be.
TEST_P(ToolServers, DatperfTurnsFromARunWithoutItsOtherEndpointsToTheNext) {
  ToolServer server(datperf_serve({"--patience", "0.3"}));
  const DAT_CONN_QUAL qualifier = server.qualifier();
  RunRequest request;
  request.endpoints = 4000;
  const Ep lonely = ask(qualifier, request, 64);
  EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_TRUE(serves_another(qualifier));
}

// Each of them is given up in its turn.
TEST_P(ToolServers, DatperfTurnsFromAClientThatAsksForRunAfterRun) {
  ToolServer server(datperf_serve({"--patience", "0.3"}));
  const DAT_CONN_QUAL qualifier = server.qualifier();
  RunRequest request;
  request.endpoints = 2;
  std::vector<Ep> lonely;
  for (request.run = 1; request.run <= 4; ++request.run) lonely.push_back(ask(qualifier, request, 64));
  EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_TRUE(serves_another(qualifier));
}

// Long before its patience is over. The second goes while it waits, or when it has its turn.
TEST_P(ToolServers, DatperfTurnsFromClientsThatHaveGoneInTheMiddleOfTheirSetUp) {
  ToolServer server(datperf_serve({"--patience", "600"}));
  const DAT_CONN_QUAL qualifier = server.qualifier();
  RunRequest request;
  request.endpoints = 4000;  // which may take longer than the next client waits
  const Ep gone = ask(qualifier, request, 64);
  EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_ESTABLISHED);
  request.run = 2;
  const Ep waits = ask(qualifier, request, 64);
  expect_no_event(side.connect.get());  // meanwhile the request is on its way
  for (const Ep* ep : {&waits, &gone})
    require(dat_ep_disconnect(ep->get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  EXPECT_TRUE(serves_another(qualifier));
}

// Neither does it end the run that is being set up, nor is it turned away.
TEST_P(ToolServers, DatperfLetsTheNextClientWaitWhileARunIsSetUp) {
  ToolServer server(datperf_serve({"--patience", "600"}));
  const DAT_CONN_QUAL qualifier = server.qualifier();
  RunRequest request;
  request.endpoints = 2;
  const Ep first = ask(qualifier, request, 64);
  EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_ESTABLISHED);
  RunRequest other;
  other.run = 2;
  const Ep next = ask(qualifier, other, 64);
  request.index = 1;
  const Ep second = ask(qualifier, request, 64);
  const auto up = wait_event(side.connect.get());
  ASSERT_TRUE(up.has_value());
  EXPECT_EQ(up->event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(up->event_data.connect_event_data.ep_handle, second.get());
  require(dat_ep_disconnect(first.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  std::optional<DAT_EVENT> served;
  do served = wait_event(side.connect.get());  // behind the ends of both, or between
  while (served && served->event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
  ASSERT_TRUE(served.has_value());
  EXPECT_EQ(served->event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(served->event_data.connect_event_data.ep_handle, next.get());
}

TEST_P(ToolServers, DatperfStopsWhileARunIsSetUpAndOthersWait) {
  ToolServer server(datperf_serve({"--patience", "600"}));
  const DAT_CONN_QUAL qualifier = server.qualifier();
  RunRequest request;
  request.endpoints = 2;
  const Ep first = ask(qualifier, request, 64);
  EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_ESTABLISHED);
  RunRequest other;
  other.run = 2;
  const Ep next = ask(qualifier, other, 64);
  expect_no_event(side.connect.get());
  ASSERT_EQ(kill(server.pid(), SIGTERM), 0);
  EXPECT_TRUE(eventually([&] { return !server.lives(); }));
}

TEST_P(ToolServers, DatperfMakesNoMoreMemoryThanItMay) {
  ToolServer server(datperf_serve({"--memory", "64MiB"}));
  const DAT_CONN_QUAL qualifier = server.qualifier();
  RunRequest request;
  request.size = 100 << 20;
  const Ep greedy = ask(qualifier, request, 64);
  EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_PEER_REJECTED);
  EXPECT_LT(server.peak(), std::uint64_t{400} << 20);
  EXPECT_EQ(run_tool(fmt::format("datperf bw --size 1MiB --iters 20 --to 127.0.0.1:{} --ia {}", qualifier,
                                 GetParam().ia_name)),
            0);
}

// Every field that a client fills in is looked at before anything is made of it.
TEST_P(ToolServers, DatperfRefusesWhatIsOutOfRange) {
  ToolServer server(datperf_serve({}));
  const DAT_CONN_QUAL qualifier = server.qualifier();
  const auto refused = [&](const char* what, auto&& change) {
    RunRequest request;
    request.metric = 2;
    request.block = 0;
    change(request);
    const Ep ep = ask(qualifier, request, 64);
    EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_PEER_REJECTED) << what;
    EXPECT_TRUE(server.lives()) << what;
  };
  refused("window", [](RunRequest& request) { request.window = 14; });
  refused("window, the largest", [](RunRequest& request) { request.window = 255; });
  refused("slots", [](RunRequest& request) { request.slots = 16; });
  refused("slots, the most", [](RunRequest& request) { request.slots = 255; });
  refused("batch", [](RunRequest& request) { request.batch = 4097; });
  refused("a direction too many", [](RunRequest& request) { request.bidirectional = 2; });
  refused("notices of Sends", [](RunRequest& request) { request.notices = 1; });
  refused("too many at once", [](RunRequest& request) { request.at_once = 65; });
  refused("Writes at once", [](RunRequest& request) { request.at_once = request.op = 1; });
  refused("waits for many at once", [](RunRequest& request) { request.at_once = request.block = 1; });
  refused("many at once in both directions", [](RunRequest& request) { request.at_once = request.bidirectional = 1; });
  refused("many at once of latency", [](RunRequest& request) { request.metric = 0, request.at_once = 1; });
  refused("blocks in both", [](RunRequest& request) { request.bidirectional = request.block = 1; });
  refused("window of latency", [](RunRequest& request) { request.metric = 0, request.window = 3; });
  refused("both ways of latency", [](RunRequest& request) { request.metric = 0, request.bidirectional = 1; });
  refused("blocks at memory", [](RunRequest& request) { request.metric = 0, request.op = 1, request.block = 1; });
  refused("clients without a number",
          [](RunRequest& request) { request.endpoints = request.clients = 2, request.iters = 0; });
  refused("clients with slots",
          [](RunRequest& request) { request.endpoints = request.clients = 2, request.slots = 1; });
  refused("slots beyond what it has", [](RunRequest& request) { request.slots = 15, request.size = 1 << 20; });
  EXPECT_EQ(
      run_tool(fmt::format("datperf bw --size 1KiB --iters 20 --slots 1 --bidirectional --to 127.0.0.1:{} --ia {}",
                           qualifier, GetParam().ia_name)),
      0);
}

// A run whose client says before each phase how long it is.
TEST_P(ToolServers, DatperfEndsARunWithAPhaseThatIsTooLong) {
  ToolServer server(datperf_serve({}));
  const DAT_CONN_QUAL qualifier = server.qualifier();
  RunRequest request;
  request.iters = 0;
  const Ep ep = ask(qualifier, request, 64);
  EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_ESTABLISHED);
  PhaseReport report;
  report.messages = 1'000'000'000'001;
  Lmr region(side.ia, side.pz, sizeof report);
  std::memcpy(region.bytes().data(), &report, sizeof report);
  DAT_LMR_TRIPLET message = region.triplet(0, sizeof report);
  require(dat_ep_post_send(ep.get(), 1, &message, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  // It ends that connection and goes on to serve.
  EXPECT_TRUE(wait_event(side.connect.get()).has_value());
  EXPECT_TRUE(serves_another(qualifier));
}

// A host that asks in revision 2 of MPA, promises a first frame and never sends it, so that its connection is accepted
// and does not come up.
class HalfConnected {
 public:
  HalfConnected(DAT_CONN_QUAL port, const RunRequest& request) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(static_cast<std::uint16_t>(port));
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::string said("MPA ID Req Frame\x50\x02\x00\x44\xC0\x04\x80\x04", 24);
    said.append(reinterpret_cast<const char*>(&request), sizeof request);
    if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0 ||
        send(socket_.get(), said.data(), said.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(said.size())) {
      throw std::runtime_error("it cannot ask");
    }
  }
  bool accepted() const {
    pollfd answer{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    std::array<char, 20> frame{};
    constexpr char kRejected = 0x20;
    return poll(&answer, 1, 10'000) == 1 && recv(socket_.get(), frame.data(), frame.size(), MSG_WAITALL) == 20 &&
           std::string(frame.data(), 16) == "MPA ID Rep Frame" && (frame[16] & kRejected) == 0;
  }

 private:
  os::UniqueFd socket_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

// Several of them: for each alone a patient client would wait.
TEST(ToolServersOverTcp, DatperfTurnsFromClientsThatDoNotCompleteTheirConnections) {
  const ScopedEnv env{{{"DAT_WIRE", "tcp"}}};
  ToolServer server({"datperf", "serve", "--qual", "0", "--patience", "0.3"});
  const DAT_CONN_QUAL qualifier = server.qualifier();
  std::vector<HalfConnected> strangers;
  for (std::uint64_t run = 1; run <= 4; ++run) {
    RunRequest request;
    request.run = run;
    strangers.emplace_back(qualifier, request);
  }
  EXPECT_TRUE(strangers.front().accepted());
  EXPECT_EQ(run_tool(fmt::format("datperf lat --size 64 --iters 50 --wait block --to 127.0.0.1:{}", qualifier)), 0);
}

TEST_P(ToolServers, DatpingOutlivesAClientForWhomItHasNoMemory) {
  ToolServer server({"datping", "--serve", "--qual", "0", "--ia", GetParam().ia_name, "--size", "64MiB"});
  const DAT_CONN_QUAL qualifier = server.qualifier();
  // Its address space ends a little above what it has: less than four messages of that size.
  std::ifstream status(fmt::format("/proc/{}/statm", server.pid()));
  std::uint64_t pages = 0;
  status >> pages;
  const rlim_t most = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + (std::uint64_t{160} << 20);
  const rlimit limit{most, most};
  ASSERT_EQ(prlimit(server.pid(), RLIMIT_AS, &limit, nullptr), 0);
  EXPECT_EQ(
      run_tool(fmt::format("datping --count 1 --size 64MiB --to 127.0.0.1:{} --ia {}", qualifier, GetParam().ia_name)),
      1);
  EXPECT_TRUE(server.lives());
  EXPECT_EQ(
      run_tool(fmt::format("datping --count 3 --size 64 --to 127.0.0.1:{} --ia {}", qualifier, GetParam().ia_name)), 0);
}

// What datping says of itself.
struct PingRequest {
  std::uint64_t magic = 0x64617470696e6731;
  std::uint64_t size = 64;
};

// The server finds requests of clients that have gone.
TEST_P(ToolServers, DatpingOutlivesClientsThatDoNotWaitForAnAnswer) {
  ToolServer server({"datping", "--serve", "--qual", "0", "--ia", GetParam().ia_name});
  const DAT_CONN_QUAL qualifier = server.qualifier();
  // Over shared memory the others have its link.
  const Ep first = ask(qualifier, PingRequest{}, sizeof(PingRequest));
  EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_ESTABLISHED);
  ASSERT_EQ(kill(server.pid(), SIGSTOP), 0);
  for (int i = 0; i < 3; ++i) {
    const Ep ep = ask(qualifier, PingRequest{}, sizeof(PingRequest));
    expect_no_event(side.connect.get());  // meanwhile the request is on its way
    require(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
    EXPECT_EQ(answer(), DAT_CONNECTION_EVENT_DISCONNECTED);
  }
  ASSERT_EQ(kill(server.pid(), SIGCONT), 0);
  EXPECT_EQ(
      run_tool(fmt::format("datping --count 3 --size 64 --to 127.0.0.1:{} --ia {}", qualifier, GetParam().ia_name)), 0);
  EXPECT_TRUE(server.lives());
}

INSTANTIATE_TEST_SUITE_P(Wires, ToolServers, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
