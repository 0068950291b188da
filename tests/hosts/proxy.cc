// SPDX-License-Identifier: BSD-3-Clause
#include "proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <stdexcept>
#include <string>
#include <system_error>

namespace anydat::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kHeldMax = 256 * 1024;  // no more is read until some of it has gone
constexpr std::chrono::milliseconds kJoinPatience(2);

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), std::string("proxy: ") + what);
}

sockaddr_in loopback_port(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

void send_at_once(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

// One connection through the proxy: two sockets, and what is held for each.
class Proxy::Course {
 public:
  Course(os::UniqueFd client, os::UniqueFd server, const ProxyPlan& plan, std::array<std::uint64_t, 2>& passed)
      : plan_(plan),
        random_(plan.seed),
        passed_(passed),
        flows_{Flow{client.get(), server.get()}, {server.get(), client.get()}},
        client_(std::move(client)),
        server_(std::move(server)) {
    passed_ = {};
    cut_if_due();
  }

  bool over() const { return over_; }
  bool frozen() const { return frozen_; }

  // What to wait for: the sockets of both flows, each for what it can do next; and how long at most.
  void add_to(std::vector<pollfd>& polled, Clock::time_point& until) const {
    for (const Flow& flow : flows_) {
      const bool may_read = !frozen_ && !flow.ended && flow.held.size() < kHeldMax;
      const bool may_write = !frozen_ && !flow.held.empty() && flow.due <= Clock::now() && ready(flow);
      polled.push_back({may_read ? flow.from : -1, POLLIN, 0});
      polled.push_back({may_write ? flow.to : -1, POLLOUT, 0});
      if (frozen_ || flow.held.empty() || may_write) continue;
      until = std::min(until, std::max(flow.due, plan_.join_bytes > 0 ? flow.last_read + kJoinPatience : flow.due));
    }
  }

  // `polled` is the four that add_to() added.
  void move(const pollfd* polled) {
    for (std::size_t i = 0; i < 2 && !over_ && !frozen_; ++i) {
      if (polled[2 * i].revents != 0) read_into(flows_[i]);
      if (!over_ && polled[2 * i + 1].revents != 0) pass_on(i);
    }
  }

 private:
  struct Flow {
    int from;
    int to;
    std::deque<std::byte> held{};
    bool ended = false;  // no more comes
    Clock::time_point due{};
    Clock::time_point last_read{};
  };

  bool ready(const Flow& flow) const {
    return flow.held.size() >= plan_.join_bytes || flow.ended || Clock::now() - flow.last_read >= kJoinPatience;
  }

  void read_into(Flow& flow) {
    std::array<std::byte, 65536> bytes;
    const ssize_t count = recv(flow.from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) end(Cut::reset);
      return;
    }
    flow.last_read = Clock::now();
    if (count == 0) {
      flow.ended = true;
      if (closing_) over_ = flows_[0].ended && flows_[1].ended;
      if (!closing_ && flow.held.empty()) pass_end_on(flow);
      return;
    }
    if (closing_) return;  // what comes now is too late
    if (flow.held.empty()) delay(flow);
    flow.held.insert(flow.held.end(), bytes.begin(), bytes.begin() + count);
  }

  void pass_on(std::size_t index) {
    Flow& flow = flows_[index];
    std::size_t count = flow.held.size();
    if (plan_.piece_max > 0) count = std::min(count, 1 + random_() % plan_.piece_max);
    if (plan_.cut != Cut::none && index == static_cast<std::size_t>(plan_.direction))
      count = std::min<std::size_t>(count, plan_.after_bytes - passed_[index]);
    const std::vector<std::byte> piece(flow.held.begin(), flow.held.begin() + static_cast<std::ptrdiff_t>(count));
    const ssize_t sent = send(flow.to, piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) end(Cut::reset);
      return;
    }
    flow.held.erase(flow.held.begin(), flow.held.begin() + sent);
    passed_[index] += static_cast<std::uint64_t>(sent);
    delay(flow);
    cut_if_due();
    if (!over_ && flow.held.empty() && flow.ended) pass_end_on(flow);
  }

  void pass_end_on(const Flow& flow) {
    shutdown(flow.to, SHUT_WR);
    over_ = flows_[0].ended && flows_[1].ended && flows_[0].held.empty() && flows_[1].held.empty();
  }

  void delay(Flow& flow) {
    if (plan_.delay_max.count() > 0)
      flow.due =
          Clock::now() + std::chrono::microseconds(random_() % static_cast<std::uint64_t>(plan_.delay_max.count()));
  }

  void cut_if_due() {
    if (!closing_ && plan_.cut != Cut::none && passed_[static_cast<std::size_t>(plan_.direction)] == plan_.after_bytes)
      end(plan_.cut);
  }

  void end(Cut how) {
    if (how == Cut::freeze) {
      frozen_ = true;
      return;
    }
    if (how == Cut::close) {
      // Both are read until they end, or the system would reset them because of what has not been read.
      closing_ = true;
      for (Flow& flow : flows_) {
        flow.held.clear();
        shutdown(flow.to, SHUT_WR);
      }
      return;
    }
    over_ = true;
    const linger at_once{.l_onoff = 1, .l_linger = 0};  // close() resets then
    for (const int fd : {client_.get(), server_.get()}) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }

  const ProxyPlan plan_;
  std::mt19937_64 random_;
  std::array<std::uint64_t, 2>& passed_;
  std::array<Flow, 2> flows_;  // in the order of Direction
  os::UniqueFd client_;
  os::UniqueFd server_;
  bool over_ = false;
  bool closing_ = false;
  bool frozen_ = false;
};

Proxy::Proxy(std::uint16_t target_port)
    : target_port_(target_port),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sockaddr_in address = loopback_port(0);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (wake_.get() < 0 || bind(listener_.get(), generic, length) != 0 || listen(listener_.get(), 64) != 0 ||
      getsockname(listener_.get(), generic, &length) != 0)
    fail("listening");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

Proxy::~Proxy() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void Proxy::set_plan(const ProxyPlan& plan) {
  const std::lock_guard lock(mutex_);
  plan_ = plan;
}

std::uint64_t Proxy::passed(Direction direction) const {
  const std::lock_guard lock(mutex_);
  return passed_[static_cast<std::size_t>(direction)];
}

std::size_t Proxy::open() const {
  const std::lock_guard lock(mutex_);
  return courses_.size();
}

void Proxy::drop_frozen() {
  const std::lock_guard lock(mutex_);
  std::erase_if(courses_, [](const auto& course) { return course->frozen(); });
}

void Proxy::accept_one() {
  os::UniqueFd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (client.get() < 0) return;
  os::UniqueFd server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in target = loopback_port(target_port_);
  // On the loopback device this is answered at once, one way or the other.
  if (connect(server.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target) != 0) return;
  send_at_once(client.get());
  send_at_once(server.get());
  courses_.push_back(std::make_unique<Course>(std::move(client), std::move(server), plan_, passed_));
}

void Proxy::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    std::erase_if(courses_, [](const auto& course) { return course->over(); });
    std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    auto until = Clock::now() + std::chrono::seconds(1);
    for (const auto& course : courses_) course->add_to(polled, until);
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now());
    const std::int64_t ns = std::max<std::int64_t>(left.count(), 0);
    const timespec time{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    std::vector<Course*> waited_for;
    for (const auto& course : courses_) waited_for.push_back(course.get());
    lock.unlock();
    const int spoken = ppoll(polled.data(), polled.size(), &time, nullptr);
    lock.lock();
    if (spoken <= 0) continue;
    // drop_frozen() may have taken some away meanwhile; those left are in the same order.
    for (std::size_t i = 0, at = 0; i < waited_for.size() && at < courses_.size(); ++i) {
      if (courses_[at].get() != waited_for[i]) continue;
      courses_[at]->move(&polled[2 + 4 * i]);
      ++at;
    }
    if (polled[1].revents != 0) accept_one();
  }
  courses_.clear();
}

}  // namespace anydat::test
