// SPDX-License-Identifier: BSD-3-Clause
// What processes do that has nothing to do with DAT (docs/process-life.md): each is a process of its own, with an
// adapter open and connected to itself.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/child.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

// Both ends of a connection.
struct Pair {
  explicit Pair(const Wire& wire)
      : server(wire),
        client(wire),
        source(client.ia, client.pz, 64),
        sink(server.ia, server.pz, 64),
        ends(connect_pair(server, client)) {}

  void exchange() {
    DAT_LMR_TRIPLET to = sink.triplet(), from = source.triplet();
    require(dat_ep_post_recv(ends.server.get(), 1, &to, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    require(dat_ep_post_send(ends.client.get(), 1, &from, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    expect_completion(client.request.get());
    expect_completion(server.recv.get());
  }

  Side server;
  Side client;
  Lmr source;
  Lmr sink;
  Connection ends;
};

class ProcessLife : public testing::TestWithParam<Wire> {
 protected:
  void play(const std::string& role) { EXPECT_EQ(PeerProcess(role, GetParam()).wait_exit(), 0); }
};
INSTANTIATE_TEST_SUITE_P(Wires, ProcessLife, testing::ValuesIn(all_wires()), wire_name);

// An agent of a CNO that is called now, in the thread of the library that is for agents.
class Called {
 public:
  Called(const Ia& ia, DAT_AGENT_FUNC function, void* data) : evd_(ia, DAT_EVD_SOFTWARE_FLAG, 4) {
    require(dat_cno_create(ia.get(), {data, function}, &cno_), "dat_cno_create");
    require(dat_evd_modify_cno(evd_.get(), cno_), "dat_evd_modify_cno");
  }
  ~Called() {
    dat_evd_modify_cno(evd_.get(), DAT_HANDLE_NULL);
    dat_cno_free(cno_);
  }
  Called(const Called&) = delete;
  Called& operator=(const Called&) = delete;
  void call() {
    DAT_EVENT event{};
    event.event_number = DAT_SOFTWARE_EVENT;
    require(dat_evd_post_se(evd_.get(), &event), "dat_evd_post_se");
  }
  void set_again(DAT_AGENT_FUNC function, void* data) {
    require(dat_cno_modify_agent(cno_, {data, function}), "dat_cno_modify_agent");
  }

 private:
  Evd evd_;
  DAT_CNO_HANDLE cno_ = DAT_HANDLE_NULL;
};

// ---- signals that are sent

std::atomic<int> signals_handled{0};
std::atomic<pthread_t> handled_by{};
void note_signal(int) {
  handled_by = ::pthread_self();
  ++signals_handled;
}

// How many threads of this process would take the signal.
int threads_that_take(int signal) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream in(task.path() / "status");
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with("SigBlk:")) continue;
      const std::uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
      count += (blocked >> (signal - 1) & 1) == 0 ? 1 : 0;
    }
  }
  return count;
}

void play_signalled(RoleContext& context) {
  ::signal(SIGUSR1, note_signal);
  // Threads that are started in between would inherit a mask.
  Pair pair(context.wire);
  std::atomic<bool> called = false;
  Called agent(
      pair.server.ia, [](DAT_PVOID data, DAT_EVD_HANDLE) { *static_cast<std::atomic<bool>*>(data) = true; }, &called);
  agent.call();
  EXPECT_TRUE(eventually([&] { return called.load(); }));
  pair.exchange();
  EXPECT_EQ(threads_that_take(SIGUSR1), 1);

  sigset_t one, pending;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &one, nullptr);
  ::kill(::getpid(), SIGUSR1);
  for (int i = 0; i < 20; ++i) pair.exchange();
  EXPECT_EQ(signals_handled, 0);
  ::sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGUSR1), 1) << "nobody has taken it";
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  EXPECT_EQ(signals_handled, 1);
  EXPECT_TRUE(::pthread_equal(handled_by, ::pthread_self()));
}
const Role kSignalled("process-life-signalled", play_signalled);

TEST_P(ProcessLife, SignalsThatAreSentAreTakenByThreadsOfTheProgram) {
  play("process-life-signalled");
}

// ---- fork in an agent

struct ForkingAgent {
  std::atomic<pid_t> child = 0;
  std::atomic<int> calls = 0;
  static void call(DAT_PVOID data, DAT_EVD_HANDLE) {
    auto* const own = static_cast<ForkingAgent*>(data);
    if (const pid_t child = ::fork(); child != 0) own->child = child;
    ++own->calls;
  }
};

void play_forking_agent(RoleContext& context) {
  Pair pair(context.wire);
  ForkingAgent forking;
  Called agent(pair.server.ia, ForkingAgent::call, &forking);
  for (int i = 1; i <= 2; ++i) {
    forking.child = 0;
    agent.set_again(ForkingAgent::call, &forking);
    agent.call();
    ASSERT_TRUE(eventually([&] { return forking.calls == i && forking.child > 0; })) << forking.child;
    const int status = end_of(forking.child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    pair.exchange();
  }
}
const Role kForkingAgent("process-life-forking-agent", play_forking_agent);

TEST_P(ProcessLife, AForkInAnAgentWhoseChildReturnsEndsTheChild) {
  play("process-life-forking-agent");
}

// ---- vfork, and processes without fork handlers

// In a function of its own, since its frame is what the child uses.
[[gnu::noinline]] pid_t start_by_vfork(const char* program) {
  const pid_t child = ::vfork();
  if (child == 0) {
    if (program != nullptr) ::execl(program, program, nullptr);
    ::_exit(program != nullptr ? 127 : 0);
  }
  return child;
}

void play_vforking(RoleContext& context) {
  Pair pair(context.wire);
  for (const char* program : {"/bin/true", static_cast<const char*>(nullptr)}) {
    const pid_t child = start_by_vfork(program);
    ASSERT_GT(child, 0);
    pair.exchange();
    const int status = end_of(child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    pair.exchange();
  }
}
const Role kVforking("process-life-vforking", play_vforking);

TEST_P(ProcessLife, VforkHarmsNothing) {
  play("process-life-vforking");
}

// clone(2) by hand. The child has the descriptors, and ends: the connection is the parent's, and stands.
void play_cloning(RoleContext& context) {
  Pair pair(context.wire);
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
  if (child == 0) ::syscall(SYS_exit_group, 0);
  ASSERT_GT(child, 0);
  end_of(child);
  pair.exchange();
  EXPECT_EQ(pair.ends.client.state(), DAT_EP_STATE_CONNECTED);
}
const Role kCloning("process-life-cloning", play_cloning);

TEST_P(ProcessLife, ACloneByHandThatEndsHarmsNothing) {
  play("process-life-cloning");
}

// ---- a filter for system calls that comes late

// From now on membarrier(2) is refused to all threads that there are.
bool refuse_membarrier() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof program[0], program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

// Two threads take turns with one connection, whose locks have long been the first one's alone.
void play_filtering(RoleContext& context) {
  Pair pair(context.wire);
  for (int i = 0; i < 200; ++i) pair.exchange();
  if (!refuse_membarrier()) {
    context.parent.say("this system gives no filters");
    return;
  }
  context.parent.say("filtered");
  for (int turn = 0; turn < 4; ++turn) {
    pair.exchange();
    std::thread([&] {
      for (int i = 0; i < 50; ++i) pair.exchange();
    }).join();
  }
  // And at the same time: what is connected cannot be reset, which the lock of all calls has to be taken for.
  std::atomic<int> refused = 0;
  const auto ask = [&] {
    for (int i = 0; i < 200; ++i) refused += dat_ep_reset(pair.ends.client.get()) != DAT_SUCCESS ? 1 : 0;
  };
  std::thread other(ask);
  ask();
  other.join();
  EXPECT_EQ(refused, 400);
  pair.exchange();
}
const Role kFiltering("process-life-filtering", play_filtering);

TEST_P(ProcessLife, AFilterThatComesLateSlowsThreadsDownOnly) {
  PeerProcess process("process-life-filtering", GetParam());
  const std::string line = process.channel().hear();
  EXPECT_EQ(process.wait_exit(), 0);
  if (line != "filtered") GTEST_SKIP() << line;
}

// ---- daemon(3)

// Argument: the qualifier of the peer.
void play_daemon(RoleContext& context) {
  const auto qualifier = std::stoull(context.arguments.at(0));
  Side side(context.wire);
  Ep ep(side);
  require(dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  if (::daemon(1, 1) != 0) throw std::runtime_error("daemon");
  // From here on another process, which has lost its parent.
  DAT_EP_STATE state{};
  DAT_BOOLEAN idle{};
  EXPECT_THAT(dat_ep_get_status(ep.release(), &state, &idle, &idle), HasType(DAT_INVALID_HANDLE));
  Pair(context.wire).exchange();
  context.parent.say(testing::Test::HasFailure() ? "failed" : "a daemon");
  context.parent.hear();
  ::_exit(0);  // what the parent had is not to be freed here
}
const Role kDaemon("process-life-daemon", play_daemon);

TEST_P(ProcessLife, ADaemonBeginsAnewAndThePeerSeesTheEndOfItsParent) {
  Side side(GetParam());
  const Ep ep(side);
  PeerProcess process("process-life-daemon", GetParam(), {std::to_string(side.listen())});
  const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(process.wait_exit(), 0);
  const auto event = wait_event(side.connect.get());
  ASSERT_TRUE(event) << "the daemon keeps the connection";
  EXPECT_THAT(event->event_number, testing::AnyOf(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED));
  EXPECT_EQ(process.channel().hear(), "a daemon");
  process.channel().say("enough");
}

}  // namespace
}  // namespace anydat::test
