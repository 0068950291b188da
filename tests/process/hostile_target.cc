// SPDX-License-Identifier: BSD-3-Clause
#include "hostile_target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <utility>

#include "payload.h"

namespace anydat::test {
namespace {

// Commands from the test, which come at any time.
class Inbox {
 public:
  explicit Inbox(LineChannel& channel) {
    // Not joined: it listens until the process ends.
    std::thread([this, &channel] {
      while (true) {
        std::string line = channel.hear(std::chrono::hours(24));
        const std::lock_guard guard(mutex_);
        line_ = std::move(line);
      }
    }).detach();
  }
  std::optional<std::string> take() {
    const std::lock_guard guard(mutex_);
    return std::exchange(line_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::optional<std::string> line_;
};

class Target {
 public:
  explicit Target(const Wire& wire)
      : side_(wire),
        memory_(side_.ia, side_.pz, HostileTarget::kBuffers * HostileTarget::kBytes),
        answer_(side_.ia, side_.pz, HostileTarget::kAnswerBytes),
        events_(side_.ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG),
                8192),
        srq_(side_.ia, side_.pz, HostileTarget::kBuffers),
        psp_(side_.ia, events_) {
    for (std::uint64_t i = 0; i < HostileTarget::kBuffers; ++i) {
      post(i);
    }
  }

  DAT_CONN_QUAL qualifier() const { return psp_.qualifier(); }

  void step() {
    const auto event = wait_event(events_.get(), std::chrono::milliseconds(2));
    if (!event) {
      return;
    }
    switch (event->event_number) {
      case DAT_CONNECTION_REQUEST_EVENT:
        accept(event->event_data.cr_arrival_event_data.cr_handle);
        break;
      case DAT_DTO_COMPLETION_EVENT:
        completed(event->event_data.dto_completion_event_data);
        break;
      case DAT_CONNECTION_EVENT_ESTABLISHED:
        break;
      default: {  // all others are ends
        const DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;
        connections_.erase(ep);
        attempts_.erase(ep);
      }
    }
  }

  void connect_to(DAT_CONN_QUAL qualifier) {
    auto ep = std::make_unique<Ep>(side_.ia, side_.pz, evds(), srq_, default_srq_ep_attr());
    require(dat_ep_connect(ep->get(), loopback(), qualifier, 300'000, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    const DAT_EP_HANDLE handle = ep->get();
    attempts_[handle] = std::move(ep);
  }

  std::string state() {
    const DAT_SRQ_PARAM param = srq_.query();
    const Footprint footprint = Footprint::here();
    return fmt::format("{} {} {} {} {} {} {} {}", footprint.descriptors, footprint.segments, footprint.threads,
                       connections_.size(), attempts_.size(), param.available_dto_count, param.outstanding_dto_count,
                       wrong_messages_);
  }

 private:
  struct Connection {
    std::optional<std::uint64_t> seed;
    std::uint64_t received = 0;
    int unsent_answers = 0;
    std::unique_ptr<Ep> ep;
  };

  EpEvds evds() const { return {.recv = events_.get(), .request = events_.get(), .connect = events_.get()}; }

  void post(std::uint64_t buffer) {
    DAT_LMR_TRIPLET segment = memory_.triplet(buffer * HostileTarget::kBytes, HostileTarget::kBytes);
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = buffer;
    require(dat_srq_post_recv(srq_.get(), 1, &segment, cookie), "dat_srq_post_recv");
  }

  void accept(DAT_CR_HANDLE request) {
    DAT_CR_PARAM param{};
    require(dat_cr_query(request, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
    Connection connection;
    FriendlyHello hello;
    if (param.private_data_size >= static_cast<DAT_COUNT>(sizeof hello)) {
      std::memcpy(&hello, param.private_data, sizeof hello);
      if (hello.magic == FriendlyHello{}.magic) {
        connection.seed = hello.seed;
      }
    }
    connection.ep = std::make_unique<Ep>(side_.ia, side_.pz, evds(), srq_, default_srq_ep_attr());
    const DAT_EP_HANDLE ep = connection.ep->get();
    connections_[ep] = std::move(connection);
    require(dat_cr_accept(request, ep, 0, nullptr), "dat_cr_accept");
  }

  void completed(const DAT_DTO_COMPLETION_EVENT_DATA& dto) {
    const std::uint64_t buffer = dto.user_cookie.as_64;
    const auto found = connections_.find(dto.ep_handle);
    if (buffer == kAnswer) {
      if (found != connections_.end()) {
        --found->second.unsent_answers;
      }
      return;
    }
    if (found != connections_.end() && dto.status == DAT_DTO_SUCCESS) {
      Connection& connection = found->second;
      const auto message = memory_.bytes().subspan(buffer * HostileTarget::kBytes, dto.transfered_length);
      if (connection.seed && !is_message(message, *connection.seed, connection.received++)) {
        ++wrong_messages_;
      }
      answer(connection);
    }
    post(buffer);
  }

  // A peer that takes no answers gets no more of them after a while.
  void answer(Connection& connection) {
    if (connection.unsent_answers == 32 || connection.ep->state() != DAT_EP_STATE_CONNECTED) {
      return;
    }
    DAT_LMR_TRIPLET segment = answer_.triplet();
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = kAnswer;
    require(dat_ep_post_send(connection.ep->get(), 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_send");
    ++connection.unsent_answers;
  }

  static constexpr std::uint64_t kAnswer = HostileTarget::kBuffers;

  Side side_;
  Lmr memory_;
  Lmr answer_;
  Evd events_;
  Srq srq_;
  Psp psp_;
  std::unordered_map<DAT_EP_HANDLE, Connection> connections_;
  std::unordered_map<DAT_EP_HANDLE, std::unique_ptr<Ep>> attempts_;
  int wrong_messages_ = 0;
};

void play_target(RoleContext& context) {
  // The test reads what is printed here through /proc, also when we die of it.
  const int text = ::memfd_create("stderr", MFD_CLOEXEC);
  ::fcntl(text, F_SETFL, O_APPEND);
  ::dup2(text, STDERR_FILENO);
  ::close(text);
  ::setenv("DAT_LOG", "warn", 1);

  Target target(context.wire);
  Inbox inbox(context.parent);
  context.parent.say(std::to_string(target.qualifier()));
  while (true) {
    target.step();
    const auto line = inbox.take();
    if (!line) {
      continue;
    }
    std::istringstream in(*line);
    std::string command;
    in >> command;
    if (command == "state") {
      context.parent.say(target.state());
    } else if (command == "connect") {
      DAT_CONN_QUAL qualifier = 0;
      in >> qualifier;
      target.connect_to(qualifier);
      context.parent.say("ok");
    } else {
      return;
    }
  }
}

const Role kTarget("hostile_target", play_target);

}  // namespace

HostileTarget::HostileTarget(const Wire& wire) : process_("hostile_target", wire) {
  qualifier_ = std::stoull(process_.channel().hear());
  its_stderr_ = Fd(::open(fmt::format("/proc/{}/fd/2", process_.pid()).c_str(), O_RDONLY | O_CLOEXEC));
}

HostileTarget::~HostileTarget() {
  if (testing::Test::HasFailure() || std::uncaught_exceptions() > 0) {
    fmt::print(stderr, "the target printed:\n{}\n", printed());
  }
}

std::string HostileTarget::ask(const std::string& command) {
  process_.channel().say(command);
  return process_.channel().hear();
}

HostileTarget::State HostileTarget::state() {
  std::istringstream in(ask("state"));
  State state;
  in >> state.footprint.descriptors >> state.footprint.segments >> state.footprint.threads >> state.connections >>
      state.pending_attempts >> state.available >> state.outstanding >> state.wrong_messages;
  return state;
}

std::ostream& operator<<(std::ostream& out, const HostileTarget::State& state) {
  return out << state.footprint << ", " << state.connections << " connections, " << state.pending_attempts
             << " attempts, " << state.available << " buffers available, " << state.outstanding << " outstanding, "
             << state.wrong_messages << " wrong messages";
}

void HostileTarget::expect_back_to(const State& before, Caller caller) {
  State now;
  // A silent peer is given up after a few seconds.
  if (!eventually([&] { return (now = state()) == before; }, 3 * patience())) {
    ADD_FAILURE_AT(caller.file, caller.line) << "now: " << now << "\nbefore: " << before;
  }
}

void HostileTarget::stop() {
  ::kill(process_.pid(), SIGSTOP);
  process_.wait_until_stopped();
}

void HostileTarget::connect_to(DAT_CONN_QUAL qualifier) {
  ask(fmt::format("connect {}", static_cast<unsigned long long>(qualifier)));
}

std::string HostileTarget::printed() {
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t got = 0;
       (got = ::pread(its_stderr_.get(), part.data(), part.size(), static_cast<off_t>(text.size()))) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

int HostileTarget::warnings() {
  std::istringstream in(printed());
  int count = 0;
  for (std::string line; std::getline(in, line);) {
    // A message that waits for a buffer, in vain perhaps, because this machine is busy, is no peer's doing.
    const bool waits = line.find(" has waited ") != std::string::npos || line.find(" loses ") != std::string::npos;
    count += line.find("] warn: ") != std::string::npos && !waits ? 1 : 0;
  }
  return count;
}

void HostileTarget::finish() {
  process_.channel().say("finish");
  if (const int status = process_.wait_exit(); status != 0) {
    throw std::runtime_error(fmt::format("the target ended with status {}", status));
  }
}

Friend::Friend(const Wire& wire, DAT_CONN_QUAL qualifier, std::uint64_t seed)
    : seed_(seed),
      side_(wire),
      outgoing_(side_.ia, side_.pz, HostileTarget::kBytes),
      incoming_(side_.ia, side_.pz, HostileTarget::kAnswerBytes),
      ep_(side_) {
  FriendlyHello hello;
  hello.seed = seed;
  require(dat_ep_connect(ep_.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, sizeof hello, &hello,
                         DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
}

void Friend::pass_message(std::size_t bytes) {
  DAT_LMR_TRIPLET incoming = incoming_.triplet();
  require(dat_ep_post_recv(ep_.get(), 1, &incoming, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  fill_message(outgoing_.bytes().first(bytes), seed_, number_++);
  DAT_LMR_TRIPLET segment = outgoing_.triplet(0, bytes);
  require(dat_ep_post_send(ep_.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  expect_completion(side_.request.get());
  expect_completion(side_.recv.get());
}

void Friend::leave() {
  require(dat_ep_disconnect(ep_.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

}  // namespace anydat::test
