// SPDX-License-Identifier: BSD-3-Clause
// A client process of the stress test: eight endpoints that connect, send what their plans say, disconnect, and start
// over with new plans until the test says stop.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <list>
#include <stdexcept>
#include <thread>

#include "stress_traffic.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr int kAtOnce = 3;  // sends of one endpoint

// One endpoint and its connections, one after the other.
class Sender {
 public:
  Sender(const Side& side, const Evd& events, DAT_CONN_QUAL qualifier)
      : qualifier_(qualifier),
        memory_(side.ia, side.pz, kAtOnce * kStressLongest),
        ep_(side.ia, side.pz, {.recv = side.recv.get(), .request = events.get(), .connect = events.get()},
            default_ep_attr()) {}

  DAT_EP_HANDLE handle() const { return ep_.get(); }
  bool idle() const { return phase_ == Phase::idle; }

  void start(const StressPlan& plan) {
    plan_ = plan;
    posted_ = completed_ = pending_ = 0;
    phase_ = Phase::connecting;
    require(dat_ep_connect(ep_.get(), loopback(), qualifier_, DAT_TIMEOUT_INFINITE, sizeof plan_, &plan_,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
  }

  void established() {
    phase_ = Phase::sending;
    go_on();
  }

  void completed(DAT_DTO_COMPLETION_STATUS status) {
    --pending_;
    if (status == DAT_DTO_SUCCESS) {
      ++completed_;
    } else if (phase_ != Phase::disconnecting) {
      throw std::runtime_error(fmt::format("a send failed with status {}", static_cast<int>(status)));
    }
    if (phase_ == Phase::sending) {
      go_on();
    }
    become_idle_if_done();
  }

  void disconnected() {
    if (phase_ != Phase::disconnecting) {
      throw std::runtime_error("disconnected unasked");
    }
    over_ = true;
    become_idle_if_done();
  }

 private:
  enum class Phase { idle, connecting, sending, disconnecting };

  void go_on() {
    while (posted_ < plan_.total && pending_ < kAtOnce) {
      post();
    }
    // In the middle of what it sends, or when all has arrived.
    if (posted_ == plan_.total && (plan_.ends_abruptly != 0 || pending_ == 0)) {
      phase_ = Phase::disconnecting;
      over_ = false;
      require(dat_ep_disconnect(ep_.get(), plan_.ends_abruptly != 0 ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG),
              "dat_ep_disconnect");
    }
  }

  void post() {
    const std::size_t length = plan_.length(posted_);
    const std::size_t place = posted_ % kAtOnce * kStressLongest;
    fill_message(memory_.bytes().subspan(place, length), plan_.seed, posted_);
    // In one to three segments.
    const auto parts = static_cast<std::size_t>(1 + mixed(plan_.seed, posted_) % 3);
    std::array<DAT_LMR_TRIPLET, 3> segments;
    for (std::size_t i = 0; i < parts; ++i) {
      const std::size_t from = length * i / parts;
      segments[i] = memory_.triplet(place + from, length * (i + 1) / parts - from);
    }
    require(
        dat_ep_post_send(ep_.get(), static_cast<DAT_COUNT>(parts), segments.data(), {}, DAT_COMPLETION_DEFAULT_FLAG),
        "dat_ep_post_send");
    ++posted_;
    ++pending_;
  }

  void become_idle_if_done() {
    if (phase_ == Phase::disconnecting && over_ && pending_ == 0) {
      require(dat_ep_reset(ep_.get()), "dat_ep_reset");
      phase_ = Phase::idle;
    }
  }

  const DAT_CONN_QUAL qualifier_;
  Lmr memory_;
  Ep ep_;
  StressPlan plan_{};
  Phase phase_ = Phase::idle;
  std::uint32_t posted_ = 0;
  std::uint32_t completed_ = 0;
  std::uint32_t pending_ = 0;
  bool over_ = false;
};

// Arguments: qualifier, number of the process, which of that number it is, seed.
void play_stress_client(RoleContext& context) {
  const DAT_CONN_QUAL qualifier = std::stoull(context.arguments.at(0));
  const auto process = static_cast<std::uint32_t>(std::stoul(context.arguments.at(1)));
  const auto life = static_cast<std::uint32_t>(std::stoul(context.arguments.at(2)));
  std::uint64_t seed = std::stoull(context.arguments.at(3));

  static std::atomic<bool> stopping{false};
  // Not joined: if something fails here, the process ends while this thread still listens.
  std::thread([&parent = context.parent] {
    parent.hear(std::chrono::hours(24));
    stopping = true;
  }).detach();

  Side side(context.wire);
  const Evd events(side.ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG));
  std::list<Sender> senders;
  for (int i = 0; i < kStressEndpoints; ++i) {
    senders.emplace_back(side, events, qualifier);
  }
  const auto sender_of = [&](DAT_EP_HANDLE ep) -> Sender& {
    return *std::find_if(senders.begin(), senders.end(), [&](const Sender& sender) { return sender.handle() == ep; });
  };
  bool busy = true;
  while (busy || !stopping) {
    busy = false;
    for (Sender& sender : senders) {
      if (sender.idle() && !stopping) {
        sender.start(StressPlan::make(seed = mixed(seed, 1), process, life));
      }
      busy = busy || !sender.idle();
    }
    const auto event = wait_event(events.get(), std::chrono::milliseconds(100));
    if (!event) {
      continue;
    }
    switch (event->event_number) {
      case DAT_DTO_COMPLETION_EVENT: {
        const auto& dto = event->event_data.dto_completion_event_data;
        sender_of(dto.ep_handle).completed(dto.status);
        break;
      }
      case DAT_CONNECTION_EVENT_ESTABLISHED:
        sender_of(event->event_data.connect_event_data.ep_handle).established();
        break;
      case DAT_CONNECTION_EVENT_DISCONNECTED:
        sender_of(event->event_data.connect_event_data.ep_handle).disconnected();
        break;
      default:
        throw std::runtime_error("unexpected event " + event_name(event->event_number));
    }
  }
}

const Role kStressClient("stress_client", play_stress_client);

}  // namespace
}  // namespace anydat::test
