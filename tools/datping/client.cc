// SPDX-License-Identifier: BSD-3-Clause
// The asking half: one message at a time, each different from all others, each compared byte for byte with its echo.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "common/error.h"
#include "common/summary.h"
#include "common/ticks.h"
#include "datping/ping.h"

namespace datping {
namespace {

constexpr DAT_COUNT kReceives = 4;

// Byte i of message m. Every byte depends on both, so data that is stale, shifted or torn does not compare equal.
void fill(std::vector<std::byte>& message, std::uint64_t number) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < message.size(); ++i) {
    if (i % 8 == 0) {
      word = (number + 1) * 0x9e3779b97f4a7c15u + i / 8;
      word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
      word ^= word >> 27;
    }
    message[i] = static_cast<std::byte>(word >> (i % 8 * 8));
  }
}

class Client {
 public:
  Client(const Options& options, const tools::Peer& peer)
      : options_(options),
        stride_(options.size == 0 ? 1 : options.size),
        adapter_(options.ia),
        evd_(adapter_.make_evd(64, DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG)),
        region_(adapter_, (kReceives + 1) * stride_) {
    if (options.srq) {
      srq_ = adapter_.make_srq(kReceives);
      ep_ = adapter_.make_ep_with_srq(evd_.get(), evd_.get(), evd_.get(), srq_.get(), 1);
    } else {
      ep_ = adapter_.make_ep(evd_.get(), evd_.get(), evd_.get(), kReceives, 1);
    }
    for (DAT_COUNT i = 0; i < kReceives; ++i) post_receive(static_cast<std::uint64_t>(i));
    Request request;
    request.size = options.size;
    tools::connect(ep_.get(), evd_.get(), peer, timeout(), std::as_bytes(std::span(&request, 1)));
  }

  int run(const std::string& server) {
    fmt::print("datping: {} messages of {} to {} through {}{}\n", options_.count, tools::size_text(options_.size),
               server, options_.ia, options_.srq ? ", shared receive queues at both ends" : "");
    std::vector<std::uint32_t> round_trips_ns;
    std::vector<std::byte> message(options_.size);
    std::uint64_t sent = 0;
    std::uint64_t damaged = 0;
    std::string trouble;
    try {
      for (; sent < options_.count;) {
        if (sent > 0 && options_.interval_s > 0)
          std::this_thread::sleep_for(std::chrono::duration<double>(options_.interval_s));
        fill(message, sent);
        if (!message.empty()) std::memcpy(region_.data(), message.data(), message.size());
        ++sent;
        const Echo echo = exchange();
        round_trips_ns.push_back(echo.round_trip_ns);
        const std::byte* came_back = region_.data() + receive_offset(echo.buffer);
        if (echo.bytes != message.size() || !std::equal(message.begin(), message.end(), came_back)) {
          ++damaged;
          report_damage(sent, echo, message, came_back);
        }
        post_receive(echo.buffer);
      }
      leave();
    } catch (const tools::Error& error) {
      trouble = error.what();
    }
    const std::uint64_t answered = round_trips_ns.size();
    fmt::print("{} sent, {} came back verified, {} damaged, {} lost\n", sent, answered - damaged, damaged,
               sent - answered);
    if (answered > 0) {
      const tools::Summary rtt = tools::summarize(round_trips_ns, 1.0);
      fmt::print("round trip: min {}, median {}, mean {}, 99% {}, max {}\n", tools::time_text(rtt.min),
                 tools::time_text(rtt.median), tools::time_text(rtt.mean), tools::time_text(rtt.p99),
                 tools::time_text(rtt.max));
    }
    if (!trouble.empty()) fmt::print(stderr, "datping: {}\n", trouble);
    return trouble.empty() && damaged == 0 && answered == options_.count ? tools::kExitOk : tools::kExitFailed;
  }

 private:
  struct Echo {
    std::uint64_t buffer = 0;
    std::uint64_t bytes = 0;
    std::uint32_t round_trip_ns = 0;
  };

  static constexpr std::uint64_t kSendCookie = ~std::uint64_t{0};

  tools::Timeout timeout() const {
    return std::chrono::duration_cast<tools::Timeout>(std::chrono::duration<double>(options_.timeout_s));
  }
  std::size_t receive_offset(std::uint64_t buffer) const { return (buffer + 1) * stride_; }

  // Sends the message at the start of the region and waits for its echo and for its own completion, in either order.
  Echo exchange() {
    const std::uint64_t start_ns = tools::now_ns();
    DAT_LMR_TRIPLET source = region_.at(0, options_.size);
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = kSendCookie;
    tools::check(dat_ep_post_send(ep_.get(), 1, &source, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    Echo echo;
    for (bool sent = false, received = false; !sent || !received;) {
      DAT_EVENT event{};
      if (!tools::wait_event(evd_.get(), timeout(), event))
        throw tools::Error(
            fmt::format("no {} within {} s", received ? "completion of the Send" : "echo", options_.timeout_s));
      if (event.event_number != DAT_DTO_COMPLETION_EVENT)
        throw tools::Error(fmt::format("the connection ended with {}", tools::event_name(event.event_number)));
      const auto& completion = event.event_data.dto_completion_event_data;
      const bool is_send = completion.user_cookie.as_64 == kSendCookie;
      if (completion.status != DAT_DTO_SUCCESS)
        throw tools::Error(fmt::format("a {} completed with {}", is_send ? "Send" : "receive",
                                       tools::completion_status_name(completion.status)));
      if (is_send) {
        sent = true;
      } else {
        received = true;
        const std::uint64_t elapsed_ns = tools::now_ns() - start_ns;
        echo = {completion.user_cookie.as_64, completion.transfered_length,
                static_cast<std::uint32_t>(std::min<std::uint64_t>(elapsed_ns, UINT32_MAX))};
      }
    }
    return echo;
  }

  void post_receive(std::uint64_t buffer) {
    DAT_LMR_TRIPLET sink = region_.at(receive_offset(buffer), stride_);
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = buffer;
    if (srq_) {
      tools::check(dat_srq_post_recv(srq_.get(), 1, &sink, cookie), "dat_srq_post_recv");
    } else {
      tools::check(dat_ep_post_recv(ep_.get(), 1, &sink, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    }
  }

  static void report_damage(std::uint64_t number, const Echo& echo, const std::vector<std::byte>& message,
                            const std::byte* came_back) {
    if (echo.bytes != message.size()) {
      fmt::print(stderr, "datping: message {} came back with {} bytes instead of {}\n", number, echo.bytes,
                 message.size());
      return;
    }
    const auto [sent, got] = std::mismatch(message.begin(), message.end(), came_back);
    fmt::print(stderr, "datping: message {} came back changed at byte {}: sent {:#04x}, got {:#04x}\n", number,
               sent - message.begin(), std::to_integer<unsigned>(*sent), std::to_integer<unsigned>(*got));
  }

  void leave() {
    tools::check(dat_ep_disconnect(ep_.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
    DAT_EVENT event{};
    do {
      if (!tools::wait_event(evd_.get(), timeout(), event)) throw tools::Error("the disconnect was not confirmed");
    } while (event.event_number == DAT_DTO_COMPLETION_EVENT);
    if (event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED)
      throw tools::Error(fmt::format("the disconnect ended with {}", tools::event_name(event.event_number)));
  }

  const Options& options_;
  std::size_t stride_;
  tools::Adapter adapter_;
  tools::Evd evd_;
  tools::Region region_;  // one message to send, then kReceives to receive
  tools::Srq srq_;
  tools::Ep ep_;
};

}  // namespace

int ping(const Options& options, const tools::Peer& peer) {
  return Client(options, peer).run(peer.text);
}

tools::Peer peer_on_this_host(const std::string& ia, DAT_CONN_QUAL qualifier) {
  const tools::Adapter adapter(ia);
  const sockaddr* address = adapter.attributes().ia_address_ptr;
  return tools::resolve_peer(tools::address_text(address), qualifier);
}

}  // namespace datping
