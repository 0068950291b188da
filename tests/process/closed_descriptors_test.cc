// SPDX-License-Identifier: BSD-3-Clause
// A program that closes all descriptors, ours among them, and has other files by their numbers: the library does not
// touch those, connections end, and the adapter can be closed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "forked.h"
#include "neighbour.h"
#include "nic/qualifier_ports.h"
#include "raw_peer.h"
#include "support/dat_events.h"
#include "support/dat_fixture.h"
#include "support/dat_matchers.h"
#include "support/patience.h"
#include "support/silent_port.h"
#include "taken_descriptors.h"

namespace anydat::test {
namespace {

using Case = std::tuple<Wire, std::string>;

// How often threads of the process have gone to sleep, all together.
std::size_t sleeps_of(pid_t process) {
  std::size_t sum = 0;
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process))) {
    std::ifstream status(thread.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (constexpr std::string_view kName = "voluntary_ctxt_switches:"; line.starts_with(kName))
        sum += std::stoul(line.substr(kName.size()));
    }
  }
  return sum;
}

// None of its threads has woken up for a while.
bool comes_to_rest(pid_t process) {
  return eventually([process] {
    const std::size_t before = sleeps_of(process);
    std::this_thread::sleep_for(quiet_time());
    return sleeps_of(process) == before;
  });
}

class ClosedDescriptors : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    victim_.emplace(wire());
    other_.emplace(wire());
    other_->connect_to(*victim_);
    other_->send(1);
    victim_->receive(1);
  }
  const Wire& wire() const { return std::get<Wire>(GetParam()); }
  void take() { victim_->tell("take-descriptors " + std::get<std::string>(GetParam())); }
  void expect_untouched() { EXPECT_EQ(victim_->tell("untouched"), "yes"); }

  std::optional<Neighbour> victim_;
  std::optional<Neighbour> other_;
};

TEST_P(ClosedDescriptors, EndConnectionsAndHarmNoFileOfTheProgram) {
  take();
  victim_->tell("attempt");
  expect_untouched();
  EXPECT_EQ(victim_->connection_event(), event_name(DAT_CONNECTION_EVENT_BROKEN));
  // Connection management of a device says of an end only that it came (docs/verbs.md).
  const bool device = wire().ia_name.starts_with("verbs-");
  EXPECT_THAT(other_->connection_event(),
              testing::AnyOf(event_name(DAT_CONNECTION_EVENT_BROKEN),
                             event_name(device ? DAT_CONNECTION_EVENT_DISCONNECTED : DAT_CONNECTION_EVENT_BROKEN)));
  victim_->tell("attempt");
  expect_untouched();
  victim_->tell("begin-anew");
  expect_untouched();
}

// The peer has been asleep since before, and cannot be woken: its bell is out, and it has not heard of the end.
TEST_P(ClosedDescriptors, CarryNoBellToAPeerThatHasSleptSince) {
  ASSERT_TRUE(comes_to_rest(other_->pid()));
  other_->stop();
  take();
  victim_->tell("attempt");
  expect_untouched();
  EXPECT_EQ(victim_->connection_event(), event_name(DAT_CONNECTION_EVENT_BROKEN));
  expect_untouched();
  other_->resume();
}

// A peer has called and not said yet what it wants.
TEST_P(ClosedDescriptors, AreNotReadWhereACallerWasHeardBy) {
  if (!wire().name.starts_with("shm")) GTEST_SKIP() << "callers of another wire are heard by other means";
  const std::string qualifier = victim_->tell("listen");
  RawPeer caller(raw_service_name(std::stoull(qualifier)));
  ASSERT_TRUE(caller.greet(nic::soft::shm::GreetingKind::hello));
  ASSERT_TRUE(caller.hear());
  take();
  victim_->tell("attempt");
  EXPECT_EQ(victim_->connection_event(), event_name(DAT_CONNECTION_EVENT_BROKEN));
  expect_untouched();
}

// A qualifier whose ports are all to be had, and say nothing.
class SilentQualifier {
 public:
  SilentQualifier() {
    for (qualifier_ = 1ULL << 40; ports_.size() < nic::kPortsOfQualifier; ++qualifier_) {
      if (claim()) break;
      ports_.clear();
    }
  }
  DAT_CONN_QUAL value() const { return qualifier_; }

 private:
  bool claim() try {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (const std::uint16_t port : nic::derived_ports(qualifier_)) {
      at.sin_port = htons(port);
      ports_.push_back(std::make_unique<SilentPort>(at));
    }
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }

  DAT_CONN_QUAL qualifier_ = 0;
  std::vector<std::unique_ptr<SilentPort>> ports_;
};

// EP-CONN-7: whose a port is has been asked, and no service point has said anything.
TEST_P(ClosedDescriptors, EndAnAttemptThatHasNotFoundItsPortYet) {
  if (wire().name != "tcp") GTEST_SKIP() << "only over TCP a qualifier stands for several ports";
  const SilentQualifier silent;
  Neighbour caller(wire());
  caller.tell(fmt::format("connect {}", silent.value()));
  caller.tell("take-descriptors " + std::get<std::string>(GetParam()));
  EXPECT_EQ(caller.connection_event(), event_name(DAT_CONNECTION_EVENT_NON_PEER_REJECTED));
  EXPECT_EQ(caller.tell("untouched"), "yes");
}

// The child of a fork closes what the library has open.
TEST_P(ClosedDescriptors, AreNotClosedInAChildWhereTheyAreTheProgramsNow) {
  take();
  EXPECT_EQ(victim_->tell("untouched-in-a-child"), "yes");
  expect_untouched();
}

// EVT-35: nothing is asked of the adapter in between. Another one is opened first, which may get the numbers.
TEST_P(ClosedDescriptors, LeaveAnAdapterThatCanBeClosedAndAnotherOpened) {
  take();
  victim_->tell("begin-anew");
  expect_untouched();
  Neighbour third(wire());
  third.connect_to(*victim_);
  third.send(2);
  victim_->receive(2);
  victim_->send(3);
  third.receive(3);
  expect_untouched();
}

INSTANTIATE_TEST_SUITE_P(Wires, ClosedDescriptors,
                         testing::Combine(testing::ValuesIn(all_wires()),
                                          testing::Values("none", "files", "counters", "sockets", "sets")),
                         [](const testing::TestParamInfo<Case>& each) {
                           return fmt::format("{}_{}", std::get<Wire>(each.param).name,
                                              std::get<std::string>(each.param));
                         });

sockaddr_in loopback_port() {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return any;
}

// The choice of DAT_WIRE, and what is taken; "nothing" if nothing is, and a connection is asked for at once.
using Attempt = std::tuple<std::string, std::string>;

// From now on connect(2) finds at once that nothing listens, as it may be told by a filter or another host's answer.
bool refuse_connections() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ECONNREFUSED),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof program[0], program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

class AttemptsAfterALoss : public testing::TestWithParam<Attempt> {
 protected:
  // Whether a connection that is asked for without a time-out comes to nothing, in a child whose descriptors are taken.
  static bool comes_to_nothing(DAT_CONN_QUAL port, bool refused_at_once = false) {
    const auto& [choice, kind] = GetParam();
    return holds_in_child([&choice = choice, &kind = kind, port, refused_at_once] {
      const Side side({.name = choice, .ia_name = "soft", .env = {{"DAT_WIRE", choice}}});
      TakenDescriptors taken(STDERR_FILENO);
      if (kind != "nothing") taken.take(kind);
      if (refused_at_once && !refuse_connections()) return true;  // this system gives no filters
      const Ep ep(side);
      if (kind == "nothing") ::closefrom(STDERR_FILENO + 1);
      const DAT_RETURN rc = dat_ep_connect(ep.get(), loopback(), port, DAT_TIMEOUT_INFINITE, 0, nullptr,
                                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
      if (rc == DAT_SUCCESS) {
        expect_event(side.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
      } else {
        EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));
      }
      EXPECT_EQ(taken.untouched(), "yes");
      return true;
    });
  }
};

// CR-REJ-1: the active side hears nothing, as of a peer that is gone; what has its socket's number hears nothing
// either.
TEST_P(AttemptsAfterALoss, ARequestThatHasComeBeforeIsTurnedAwayInSilence) {
  const auto& [choice, kind] = GetParam();
  if (kind == "nothing") GTEST_SKIP() << "nothing has the socket's number";
  EXPECT_TRUE(holds_in_child([&choice = choice, &kind = kind] {
    const Wire wire{.name = choice, .ia_name = "soft", .env = {{"DAT_WIRE", choice}}};
    const Side active(wire);
    Side passive(wire);
    TakenDescriptors taken(STDERR_FILENO);
    const Ep ep(active);
    require(dat_ep_connect(ep.get(), loopback(), passive.listen(), DAT_TIMEOUT_INFINITE, 0, nullptr,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    const DAT_EVENT request = expect_event(passive.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    taken.take(kind);
    EXPECT_THAT(dat_cr_reject(request.event_data.cr_arrival_event_data.cr_handle), Succeeds());
    EXPECT_EQ(taken.untouched(), "yes");
    return true;
  }));
}

TEST_P(AttemptsAfterALoss, EndWhereNothingListens) {
  const DAT_CONN_QUAL closed = SilentPort(loopback_port()).port();
  EXPECT_TRUE(comes_to_nothing(closed));
}

TEST_P(AttemptsAfterALoss, EndWhereThePortRefusesAtOnce) {
  EXPECT_TRUE(comes_to_nothing(9, true));
}

// The socket of such an attempt lasts: a set of the program's would be found to have it.
TEST_P(AttemptsAfterALoss, EndWhereNothingAnswers) {
  if (std::get<0>(GetParam()) == "shm") GTEST_SKIP() << "a port is of TCP";
  const SilentPort port(loopback_port());
  EXPECT_TRUE(comes_to_nothing(port.port()));
}

INSTANTIATE_TEST_SUITE_P(Choices, AttemptsAfterALoss,
                         testing::Combine(testing::Values("auto", "shm", "tcp"),
                                          testing::Values("nothing", "none", "files", "sockets", "sets")),
                         [](const testing::TestParamInfo<Attempt>& each) {
                           return fmt::format("{}_{}", std::get<0>(each.param), std::get<1>(each.param));
                         });

}  // namespace
}  // namespace anydat::test
