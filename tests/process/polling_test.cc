// SPDX-License-Identifier: BSD-3-Clause
// Programs that poll: with pauses, on one processor with their peer, and under real-time scheduling.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr int kRoundTrips = 200;

// Polls until there is an event; nothing else runs meanwhile in this thread. Or sleeps until then.
enum class Way { poll, sleep };
DAT_EVENT await(Way way, DAT_EVD_HANDLE evd) {
  DAT_EVENT event;
  if (way == Way::sleep) {
    if (const auto slept_for = wait_event(evd)) return *slept_for;
    throw std::runtime_error("slept in vain");
  }
  const auto give_up = std::chrono::steady_clock::now() + patience();
  for (unsigned i = 0;; ++i) {
    if (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) return event;
    if (i % 1024 == 0 && std::chrono::steady_clock::now() > give_up) throw std::runtime_error("polled in vain");
  }
}

int last_processor() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int last = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) last = i;
  }
  return last;
}

// All threads that are started from now on, too.
void confine(const std::string& policy) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last_processor(), &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) throw std::runtime_error("sched_setaffinity");
  sched_param parameter{};
  parameter.sched_priority = 5;
  if (policy == "fifo" && sched_setscheduler(0, SCHED_FIFO, &parameter) != 0) throw std::runtime_error("no SCHED_FIFO");
}

// One end of a connection that does nothing but poll, or sleep where the other kind polls.
class Poller {
 public:
  Poller(const Wire& wire, Way way) : way_(way), side_(wire), memory_(side_.ia, side_.pz, 2 * kBytes), ep_(side_) {
    post_receive();
  }

  DAT_CONN_QUAL listen() { return side_.listen(); }
  void accept() {
    const DAT_EVENT request = await(way_, side_.requests.get());
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep_.get(), 0, nullptr), "dat_cr_accept");
    await(way_, side_.connect.get());
  }
  void connect(DAT_CONN_QUAL qualifier) {
    require(dat_ep_connect(ep_.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    await(way_, side_.connect.get());
  }
  void send() {
    DAT_LMR_TRIPLET segment = memory_.triplet(0, kBytes);
    require(dat_ep_post_send(ep_.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  }
  void receive() {
    await(way_, side_.recv.get());
    post_receive();
    drain(side_.request.get());
  }

 private:
  static constexpr std::size_t kBytes = 8;

  void post_receive() {
    DAT_LMR_TRIPLET segment = memory_.triplet(kBytes, kBytes);
    require(dat_ep_post_recv(ep_.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  }

  Way way_;
  Side side_;
  Lmr memory_;
  Ep ep_;
};

// Arguments of both: the policy, and how they wait.
Poller confined_poller(const RoleContext& context) {
  confine(context.arguments.at(0));
  return {context.wire, context.arguments.at(1) == "poll" ? Way::poll : Way::sleep};
}

void play_answering_poller(RoleContext& context) {
  Poller poller = confined_poller(context);
  context.parent.say(std::to_string(poller.listen()));
  poller.accept();
  for (int i = 0; i < kRoundTrips; ++i) {
    poller.receive();
    poller.send();
  }
  context.parent.hear();
}

// Says how much of the processor's time it has used for a round trip, in nanoseconds.
void play_asking_poller(RoleContext& context) {
  Poller poller = confined_poller(context);
  poller.connect(std::stoull(context.arguments.at(2)));
  timespec before, after;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  for (int i = 0; i < kRoundTrips; ++i) {
    poller.send();
    poller.receive();
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const long used = (after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec;
  context.parent.say(std::to_string(used / kRoundTrips));
  context.parent.hear();
}

const Role kAnsweringPoller("answering_poller", play_answering_poller);
const Role kAskingPoller("asking_poller", play_asking_poller);

class Polling : public testing::TestWithParam<Wire> {
 protected:
  long round_trip_on_one_processor(const std::string& policy, const std::string& way) {
    PeerProcess answering("answering_poller", GetParam(), {policy, way});
    PeerProcess asking("asking_poller", GetParam(), {policy, way, answering.channel().hear()});
    const long used = std::stol(asking.channel().hear());
    for (PeerProcess* process : {&answering, &asking}) {
      process->channel().say("enough");
      EXPECT_EQ(process->wait_exit(), 0);
    }
    return used;
  }

  // The processor's time is counted, not the clock's, so that other programs matter little, and the control is the same
  // by sleeping. Who never yields uses up his time slice, of some milliseconds, for each message that he waits for.
  void expect_that_polling_is_not_much_dearer(const std::string& policy) {
    std::vector<long> polling, sleeping;
    for (int round = 0; round < kRounds; ++round) {
      polling.push_back(round_trip_on_one_processor(policy, "poll"));
      sleeping.push_back(round_trip_on_one_processor(policy, "sleep"));
    }
    RecordProperty("processor_ns_polling", static_cast<int>(median(polling)));
    RecordProperty("processor_ns_sleeping", static_cast<int>(median(sleeping)));
    EXPECT_LT(median(polling), 3 * median(sleeping)) << "ns, where sleeping takes " << median(sleeping);
  }

  // The processor's time, again, which a busy machine gives in pieces: until both ends are connected, when the program
  // does something else for so long between its looks.
  long us_to_connect(std::chrono::microseconds pause) {
    Side server(GetParam());
    Side client(GetParam());
    Ep server_ep(server);
    Ep client_ep(client);
    const DAT_CONN_QUAL qualifier = server.listen();
    const long begun = thread_us();
    require(dat_ep_connect(client_ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    int established = 0;
    const auto give_up = std::chrono::steady_clock::now() + patience();
    while (established < 2 && std::chrono::steady_clock::now() < give_up) {
      for (const Side* side : {&server, &client}) {
        if (poll_event(side->connect.get())) ++established;
      }
      if (const auto request = poll_event(server.requests.get())) {
        require(dat_cr_accept(request->event_data.cr_arrival_event_data.cr_handle, server_ep.get(), 0, nullptr),
                "dat_cr_accept");
      }
      if (established == 2) break;
      for (const long end = thread_us() + pause.count(); thread_us() < end;) {
      }
    }
    EXPECT_EQ(established, 2);
    return thread_us() - begun;
  }

  static long thread_us() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1'000'000 + time.tv_nsec / 1000;
  }
  static long median(std::vector<long> all) {
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    return all[all.size() / 2];
  }

  static constexpr int kRounds = 5;
};

TEST_P(Polling, YieldsToAPeerOnTheSameProcessor) {
  expect_that_polling_is_not_much_dearer("other");
}

// There are no time slices: who does not give way keeps the processor.
TEST_P(Polling, GivesWayToAPeerOnTheSameProcessorUnderFifo) {
  sched_param parameter{};
  parameter.sched_priority = 1;
  bool allowed = false;
  std::thread([&] { allowed = sched_setscheduler(0, SCHED_FIFO, &parameter) == 0; }).join();
  if (!allowed) GTEST_SKIP() << "SCHED_FIFO is not for this user";
  expect_that_polling_is_not_much_dearer("fifo");
}

// Descriptors are looked at by time, so each round of a program that does something else in between brings the
// connection on.
TEST_P(Polling, ConnectsWithinAFewMillisecondsWhateverThePauses) {
  for (const int pause : {100, 300, 600, 900}) {
    std::vector<long> took;
    for (int attempt = 0; attempt < 9; ++attempt) took.push_back(us_to_connect(std::chrono::microseconds(pause)));
    RecordProperty("us_with_pauses_of_" + std::to_string(pause), static_cast<int>(median(took)));
    EXPECT_LT(median(took), 5000) << "with pauses of " << pause << " us";
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, Polling, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
