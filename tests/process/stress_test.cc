// SPDX-License-Identifier: BSD-3-Clause
// 64 endpoints in 8 processes send to one SRQ: random sizes from nothing to 1 MiB, connections that end in order or
// abruptly and start over, processes that are killed and replaced. Every message arrives once, in order within its
// connection, unchanged (INV-5); what does not arrive is the end of a connection that was cut. At the end no buffer is
// missing (INV-1, INV-7) and nothing is left behind (INV-8).
//
// ANYDAT_STRESS_SECONDS: how long (default 5). ANYDAT_TEST_SEED: repeats a run, as far as timing lets it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "footprint.h"
#include "seed.h"
#include "stress_traffic.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"
#include "support/watchdog.h"

namespace anydat::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBuffers = 48;  // fewer than endpoints

struct StressConnection {
  StressConnection(const Side& side, const Evd& events, const Srq& srq, const StressPlan& its_plan)
      : plan(its_plan),
        ep(side.ia, side.pz, {.recv = events.get(), .request = events.get(), .connect = events.get()}, srq,
           default_srq_ep_attr()) {}

  StressPlan plan;
  std::uint32_t received = 0;
  Ep ep;
};

class Stress : public testing::TestWithParam<Wire> {
 protected:
  const Wire& wire() const { return GetParam(); }

  struct Client {
    std::unique_ptr<PeerProcess> process;
    std::uint32_t life = 0;
  };

  void start(std::uint32_t number) {
    Client& client = clients_[number];
    ++client.life;
    client.process = std::make_unique<PeerProcess>(
        "stress_client", wire(),
        std::vector<std::string>{std::to_string(psp_->qualifier()), std::to_string(number), std::to_string(client.life),
                                 std::to_string(random_->number())});
  }

  void kill_one() {
    const auto number = static_cast<std::uint32_t>(random_->below(kStressProcesses));
    killed_.insert({number, clients_[number].life});
    clients_[number].process->kill();
    start(number);
  }

  void post(std::uint64_t buffer) {
    DAT_LMR_TRIPLET segment = memory_->triplet(buffer * kStressLongest, kStressLongest);
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = buffer;
    require(dat_srq_post_recv(srq_->get(), 1, &segment, cookie), "dat_srq_post_recv");
  }

  void on_request(DAT_CR_HANDLE request) {
    DAT_CR_PARAM param{};
    require(dat_cr_query(request, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
    StressPlan plan{};
    ASSERT_GE(param.private_data_size, static_cast<DAT_COUNT>(sizeof plan));
    std::memcpy(&plan, param.private_data, sizeof plan);
    auto connection = std::make_unique<StressConnection>(*side_, *events_, *srq_, plan);
    const DAT_EP_HANDLE ep = connection->ep.get();
    connections_[ep] = std::move(connection);
    require(dat_cr_accept(request, ep, 0, nullptr), "dat_cr_accept");
  }

  void on_receive(const DAT_DTO_COMPLETION_EVENT_DATA& dto) {
    const std::uint64_t buffer = dto.user_cookie.as_64;
    ASSERT_TRUE(std::exchange(posted_[buffer], false)) << "buffer " << buffer << " came back twice (INV-3)";
    const auto found = connections_.find(dto.ep_handle);
    if (dto.status == DAT_DTO_SUCCESS && found != connections_.end()) {
      StressConnection& connection = *found->second;
      const auto message = memory_->bytes().subspan(buffer * kStressLongest, dto.transfered_length);
      ASSERT_LT(connection.received, connection.plan.total);
      ASSERT_EQ(dto.transfered_length, connection.plan.length(connection.received))
          << "message " << connection.received;
      ASSERT_TRUE(is_message(message, connection.plan.seed, connection.received)) << "message " << connection.received;
      ++connection.received;
      ++messages_;
      bytes_ += dto.transfered_length;
    } else {
      EXPECT_EQ(dto.status, DAT_DTO_ERR_FLUSHED);
      ++flushed_;
    }
    if (reposting_) {
      posted_[buffer] = true;
      post(buffer);
    }
  }

  // Everything that will ever be received has been: its completions come before the end, on the same EVD.
  void on_end(DAT_EP_HANDLE ep, DAT_EVENT_NUMBER number) {
    const auto found = connections_.find(ep);
    ASSERT_NE(found, connections_.end()) << "a second end (INV-4)";
    const StressConnection& connection = *found->second;
    const bool killed = killed_.contains({connection.plan.process, connection.plan.life});
    if (!killed) {
      EXPECT_EQ(number, DAT_CONNECTION_EVENT_DISCONNECTED) << event_name(number);
      if (connection.plan.ends_abruptly == 0) {
        EXPECT_EQ(connection.received, connection.plan.total) << "messages are missing";
      }
    }
    ++ended_;
    connections_.erase(found);
  }

  // Handles one event. False if none came.
  bool step() {
    const auto event = wait_event(events_->get(), std::chrono::milliseconds(20));
    if (!event) {
      return false;
    }
    switch (event->event_number) {
      case DAT_CONNECTION_REQUEST_EVENT:
        on_request(event->event_data.cr_arrival_event_data.cr_handle);
        break;
      case DAT_DTO_COMPLETION_EVENT:
        on_receive(event->event_data.dto_completion_event_data);
        break;
      case DAT_CONNECTION_EVENT_ESTABLISHED:
        break;
      case DAT_CONNECTION_EVENT_DISCONNECTED:
      case DAT_CONNECTION_EVENT_BROKEN:
      case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:
        on_end(event->event_data.connect_event_data.ep_handle, event->event_number);
        break;
      default:
        ADD_FAILURE() << "unexpected " << event_name(event->event_number);
    }
    return true;
  }

  // Runs until `done`; fails if there is nothing to do for long.
  template <typename Predicate>
  void run_until(Predicate&& done) {
    auto last = Clock::now();
    while (!done() && !HasFatalFailure()) {
      const auto now = Clock::now();
      if (step()) {
        last = now;
      }
      ASSERT_LT(now - last, patience()) << "nothing moves; " << connections_.size() << " connections";
    }
  }

  void stop_clients() {
    std::vector<std::future<int>> exits;
    for (Client& client : clients_) {
      client.process->channel().say("stop");
      exits.push_back(std::async(std::launch::async, [&client] { return client.process->wait_exit(); }));
    }
    run_until([&] {
      return connections_.empty() && std::all_of(exits.begin(), exits.end(), [](std::future<int>& exit) {
               return exit.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
             });
    });
    for (std::future<int>& exit : exits) {
      EXPECT_EQ(exit.get(), 0) << "a client has failed";
    }
  }

  // Uses every buffer up, so that nothing is outstanding in the end.
  void empty_srq() {
    DAT_SRQ_PARAM param = srq_->query();
    EXPECT_EQ(param.available_dto_count, kBuffers);
    EXPECT_EQ(param.outstanding_dto_count, kBuffers);
    reposting_ = false;
    Side last(wire());
    const Ep ep(last);
    StressPlan plan = StressPlan::make(0, kStressProcesses, 1);
    plan.total = kBuffers;
    plan.ends_abruptly = 0;
    require(dat_ep_connect(ep.get(), loopback(), psp_->qualifier(), DAT_TIMEOUT_INFINITE, sizeof plan, &plan,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    run_until([&] { return ep.state() == DAT_EP_STATE_CONNECTED; });
    Lmr source(last.ia, last.pz, kBuffers * kStressLongest);
    for (std::uint32_t i = 0; i < kBuffers; ++i) {
      fill_message(source.bytes().subspan(i * kStressLongest, plan.length(i)), plan.seed, i);
      DAT_LMR_TRIPLET segment = source.triplet(i * kStressLongest, plan.length(i));
      require(dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    }
    run_until([&] { return std::none_of(posted_.begin(), posted_.end(), [](bool posted) { return posted; }); });
    require(dat_ep_disconnect(ep.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
    run_until([&] { return connections_.empty(); });
    param = srq_->query();
    EXPECT_EQ(param.available_dto_count, 0);
    EXPECT_EQ(param.outstanding_dto_count, 0);
  }

  std::optional<Random> random_;
  std::optional<Side> side_;
  std::optional<Evd> events_;
  std::optional<Lmr> memory_;
  std::optional<Srq> srq_;
  std::optional<Psp> psp_;
  std::unordered_map<DAT_EP_HANDLE, std::unique_ptr<StressConnection>> connections_;
  std::array<Client, kStressProcesses> clients_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> killed_;  // process and life
  std::array<bool, kBuffers> posted_{};
  bool reposting_ = true;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t flushed_ = 0;
  std::uint64_t ended_ = 0;
};

TEST_P(Stress, EveryMessageArrivesOnceInOrderUnchanged) {
  random_.emplace(announced_seed());
  const auto seconds = number_from_environment("ANYDAT_STRESS_SECONDS", 5);
  give_more_time(std::chrono::seconds(seconds));
  // The first opening makes what stays for the process's life.
  { const Side first(wire()); }
  const Footprint before = Footprint::here();

  side_.emplace(wire());
  events_.emplace(side_->ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG),
                  4096);
  memory_.emplace(side_->ia, side_->pz, kBuffers * kStressLongest);
  srq_.emplace(side_->ia, side_->pz, kBuffers);
  for (std::uint64_t i = 0; i < kBuffers; ++i) {
    posted_[i] = true;
    post(i);
  }
  psp_.emplace(side_->ia, *events_);

  for (std::uint32_t i = 0; i < kStressProcesses; ++i) {
    start(i);
  }
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  while (Clock::now() < end && !HasFatalFailure()) {
    const auto next_kill = Clock::now() + std::chrono::milliseconds(100 + random_->below(600));
    run_until([&] { return Clock::now() >= std::min(next_kill, end); });
    kill_one();
  }
  stop_clients();
  if (HasFatalFailure()) {
    return;
  }
  empty_srq();

  fmt::print("{} messages, {} MiB, {} connections, {} processes killed, {} receives flushed\n", messages_, bytes_ >> 20,
             ended_, killed_.size(), flushed_);
  EXPECT_GT(messages_, 0u);
  psp_.reset();
  srq_.reset();
  memory_.reset();
  events_.reset();
  side_.reset();
  for (Client& client : clients_) {
    client.process.reset();
  }
  expect_back_to(before);
  EXPECT_EQ(files_left(), 0);
}

INSTANTIATE_TEST_SUITE_P(Wires, Stress, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
