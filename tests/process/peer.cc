// SPDX-License-Identifier: BSD-3-Clause
#include "peer.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "payload.h"
#include "srq_server.h"

namespace anydat::test {
namespace {

constexpr DAT_VLEN kLongest = 64u << 20;

// The other process: one method for each command. What it returns is the answer.
class Player {
 public:
  Player(const Wire& wire, std::uint64_t seed) : wire_(wire), seed_(seed) {}

  std::string connect(std::istream& in) {
    DAT_CONN_QUAL qualifier = 0;
    in >> qualifier;
    side_.emplace(wire_);
    DAT_EP_ATTR attr = default_ep_attr();
    attr.max_message_size = kLongest;
    own_ep_.emplace(*side_, attr);
    require(dat_ep_connect(own_ep_->get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    return {};
  }

  std::string post_receives(std::istream& in) {
    int count = 0;
    std::size_t bytes = 0;
    in >> count >> bytes;
    const Lmr& memory = memory_.emplace_back(side_->ia, side_->pz, static_cast<std::size_t>(count) * bytes);
    for (int i = 0; i < count; ++i) {
      DAT_LMR_TRIPLET segment = memory.triplet(static_cast<std::size_t>(i) * bytes, bytes);
      require(dat_ep_post_recv(ep(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    }
    return {};
  }

  std::string serve(std::istream& in) {
    int buffers = 0;
    std::size_t bytes = 0;
    in >> buffers >> bytes;
    server_.emplace(wire_, buffers, bytes);
    return {};
  }

  std::string listen(std::istream&) { return std::to_string(server_->qualifier()); }

  std::string await_request(std::istream&) {
    request_ = server_->request();
    return {};
  }

  std::string accept(std::istream& in) {
    std::uint64_t seed = 0;
    in >> seed;
    if (request_ == DAT_HANDLE_NULL) {
      request_ = server_->request();
    }
    end_ = &server_->accept(std::exchange(request_, DAT_HANDLE_NULL), seed);
    return {};
  }

  std::string receive(std::istream& in) {
    std::uint64_t total = 0;
    in >> total;
    if (!server_->receive(*end_, total)) {
      throw std::runtime_error("not everything was received");
    }
    return {};
  }

  std::string stop_within_receive(std::istream& in) {
    if (!server_->message_has_begun(*end_)) {
      throw std::runtime_error("no message began");
    }
    return stop(in);
  }

  std::string connection_event(std::istream&) {
    const auto event = wait_event(end_ != nullptr ? end_->connect.get() : side_->connect.get());
    return event ? event_name(event->event_number) : "nothing";
  }

  std::string send(std::istream& in) {
    int count = 0;
    std::size_t bytes = 0;
    in >> count >> bytes;
    if (end_ != nullptr) {
      server_->send(*end_, count, bytes);
      return {};
    }
    // Each has its place, and the memory of earlier ones, which may still be on their way, stays registered.
    const Lmr& memory = memory_.emplace_back(side_->ia, side_->pz, std::max<std::size_t>(1, count * bytes));
    for (int i = 0; i < count; ++i) {
      const std::size_t offset = static_cast<std::size_t>(i) * bytes;
      fill_message(memory.bytes().subspan(offset, bytes), seed_, next_number_++);
      DAT_LMR_TRIPLET segment = memory.triplet(offset, bytes);
      require(dat_ep_post_send(ep(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    }
    return {};
  }

  std::string await_sent(std::istream& in) {
    int count = 0;
    in >> count;
    expect_completions(end_ != nullptr ? end_->request.get() : side_->request.get(), count);
    return {};
  }

  std::string disconnect(std::istream& in) {
    int flags = 0;
    in >> flags;
    require(dat_ep_disconnect(ep(), static_cast<DAT_CLOSE_FLAGS>(flags)), "dat_ep_disconnect");
    return {};
  }

  std::string stop(std::istream&) {
    ::raise(SIGSTOP);
    return {};
  }

  std::string finish(std::istream& in) {
    if (ep() != DAT_HANDLE_NULL && state_of(ep()) == DAT_EP_STATE_CONNECTED) {
      require(dat_ep_disconnect(ep(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
      const std::string event = connection_event(in);
      if (event != event_name(DAT_CONNECTION_EVENT_DISCONNECTED)) {
        throw std::runtime_error("the disconnect ended in " + event);
      }
    }
    return {};
  }

 private:
  DAT_EP_HANDLE ep() const {
    if (end_ != nullptr) {
      return end_->ep.get();
    }
    return own_ep_ ? own_ep_->get() : DAT_HANDLE_NULL;
  }

  const Wire& wire_;
  const std::uint64_t seed_;
  std::uint64_t next_number_ = 0;

  // A server has these,
  std::optional<SrqServer> server_;
  DAT_CR_HANDLE request_ = DAT_HANDLE_NULL;
  ServerEnd* end_ = nullptr;
  // and a client these.
  std::optional<Side> side_;
  std::list<Lmr> memory_;
  std::optional<Ep> own_ep_;
};

void play_peer(RoleContext& context) {
  using Command = std::string (Player::*)(std::istream&);
  const std::map<std::string, Command> commands{
      {"connect", &Player::connect},
      {"post_receives", &Player::post_receives},
      {"serve", &Player::serve},
      {"listen", &Player::listen},
      {"await_request", &Player::await_request},
      {"accept", &Player::accept},
      {"receive", &Player::receive},
      {"stop_within_receive", &Player::stop_within_receive},
      {"connection_event", &Player::connection_event},
      {"send", &Player::send},
      {"await_sent", &Player::await_sent},
      {"disconnect", &Player::disconnect},
      {"stop", &Player::stop},
      {"finish", &Player::finish},
  };
  Player player(context.wire, std::stoull(context.arguments.at(0)));
  while (true) {
    // The test may be busy elsewhere for long. If it dies, so do we.
    std::istringstream in(context.parent.hear(std::chrono::hours(1)));
    std::string name;
    in >> name;
    const std::string answer = (player.*commands.at(name))(in);
    context.parent.say("ok " + answer);
    if (name == "finish") {
      return;
    }
  }
}

const Role kPeer("peer", play_peer);

}  // namespace

Peer::Peer(const Wire& wire, std::uint64_t seed) : process_("peer", wire, {std::to_string(seed)}) {}

std::string Peer::tell(const std::string& command) {
  process_.channel().say(command);
  const std::string answer = process_.channel().hear();
  if (!answer.starts_with("ok ")) {
    throw std::runtime_error(fmt::format("told to {}, the peer answered {}", command, answer));
  }
  return answer.substr(3);
}

void Peer::tell_to_stop(const std::string& command) {
  process_.channel().say(command);
  process_.wait_until_stopped();
}

void Peer::connect(DAT_CONN_QUAL qualifier) {
  tell(fmt::format("connect {}", static_cast<unsigned long long>(qualifier)));
}

void Peer::post_receives(int count, std::size_t bytes) {
  tell(fmt::format("post_receives {} {}", count, bytes));
}

void Peer::serve(int buffers, std::size_t bytes) {
  tell(fmt::format("serve {} {}", buffers, bytes));
}

DAT_CONN_QUAL Peer::listen() {
  return std::stoull(tell("listen"));
}

void Peer::await_request() {
  tell("await_request");
}

void Peer::accept(std::uint64_t seed_of_client) {
  tell(fmt::format("accept {}", seed_of_client));
}

void Peer::receive(int total) {
  tell(fmt::format("receive {}", total));
}

void Peer::stop_within_receive() {
  tell_to_stop("stop_within_receive");
}

std::string Peer::connection_event() {
  return tell("connection_event");
}

void Peer::send(int count, std::size_t bytes) {
  tell(fmt::format("send {} {}", count, bytes));
}

void Peer::await_sent(int count) {
  tell(fmt::format("await_sent {}", count));
}

void Peer::disconnect(DAT_CLOSE_FLAGS flags) {
  tell(fmt::format("disconnect {}", static_cast<int>(flags)));
}

void Peer::stop() {
  tell_to_stop("stop");
}

void Peer::resume() {
  process_.resume();
  process_.channel().hear();  // what it says when the step that stopped it is over
}

void Peer::finish() {
  tell("finish");
  if (const int status = process_.wait_exit(); status != 0) {
    throw std::runtime_error(fmt::format("the peer ended with status {}", status));
  }
}

}  // namespace anydat::test
