// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/inquiry.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "nic/refusal.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/fabric.h"
#include "nic/soft/wire/iwarp/sockets.h"
#include "nic/soft/wire/iwarp/stream.h"
#include "os/socket.h"
#include "os/tcp_socket.h"

namespace anydat::nic::soft::iwarp {

namespace {

// A service point answers at once, whatever its program does. From the last question on.
constexpr os::Nanoseconds kPatience = os::kNsPerSecond;
// The kernel tries to connect for two minutes where nothing comes back, as from a listener whose backlog is full. A
// host that is there refuses or accepts at once, or at the second or third try if a segment is lost.
constexpr os::Nanoseconds kPatienceToConnect = 3 * os::kNsPerSecond;

}  // namespace

Inquiry::Inquiry(Fabric& fabric, TcpStream& stream, ConnQual qual)
    : fabric_(fabric),
      stream_(&stream),
      qual_(qual),
      silence_([this] { give_up(true); }),
      unanswered_([this] { give_up(false); }),
      report_([this] { report(); }) {}

Status Inquiry::begin(const Address& remote, Address& local) {
  const std::array<std::uint16_t, kPortsOfQualifier> ports = derived_ports(qual_);
  std::size_t out_of_reach = 0;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Asked& asked = asked_[i];
    asked.inquiry = this;
    asked.port = ports[i];
    auto [status, socket] = call(fabric_.adapter(), with_port(remote, asked.port));
    if (status == Status::no_memory) return status;
    // A filter of this host, say, that forbids calls at this one port.
    if (status != Status::ok) {
      ++out_of_reach;
      continue;
    }
    if (!socket) {
      why_ = ConnectFailure::refused;
      continue;
    }
    local = local_end(socket.get());
    if (!fabric_.engine().watch(socket.get(), EPOLLOUT, asked)) return Status::no_memory;
    asked.socket = std::move(socket);
  }
  if (out_of_reach == ports.size()) return Status::unreachable;
  if (!any_left()) {
    fabric_.engine().set_timer(report_, os::now_ns());
  } else if (why_ == ConnectFailure::refused) {
    host_has_answered();
  }
  return Status::ok;
}

void Inquiry::abandon() {
  stop();
  fabric_.setups_and_ends().finished(*this);
}

void Inquiry::stop() {
  stream_ = nullptr;
  for (Asked& asked : asked_) close(asked);
  fabric_.engine().cancel_timer(silence_);
  fabric_.engine().cancel_timer(unanswered_);
  fabric_.engine().cancel_timer(report_);
}

void Inquiry::close(Asked& asked) {
  if (!asked.socket) return;
  fabric_.engine().unwatch(asked.socket.get(), asked);
  // What the kernel would keep of it for a minute stands in the way of the connection itself, where both come from the
  // only port of DAT_PORT_RANGE.
  if (fabric_.engine().descriptor_loss().descriptors_are_ours()) os::reset_on_close(asked.socket);
  asked.socket.reset();
}

void Inquiry::descriptors_lost() {
  why_ = ConnectFailure::refused;
  if (stream_) fabric_.engine().set_timer(report_, os::now_ns());
}

void Inquiry::ready(Asked& asked, std::uint32_t events) {
  if (!asked.socket) return;
  if (asked.connected) {
    hear(asked);
  } else if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
    ask(asked);
  }
}

void Inquiry::ask(Asked& asked) {
  if (const int error = os::take_error(asked.socket.get()); error != 0) return is_stranger(asked, failure_of(error));
  asked.connected = true;
  host_has_answered();
  const auto wanted = write_wanted({Wanted::Kind::whose, qual_, {}});
  StartUp frame;
  frame.revision = 2;
  frame.private_data = wanted;
  std::array<std::byte, kStartUpBytesMax> bytes;
  const std::size_t count = write_start_up(frame, bytes);
  // A frame of this size always fits into a socket that nothing has been written to.
  if (os::send_now(asked.socket.get(), std::span(bytes).first(count)) != static_cast<ssize_t>(count)) {
    return is_stranger(asked, ConnectFailure::refused);
  }
  fabric_.engine().change_watch(asked.socket.get(), EPOLLIN, asked);
  fabric_.engine().set_timer(silence_, os::now_ns() + kPatience);
}

void Inquiry::hear(Asked& asked) {
  while (asked.count < asked.heard.size()) {
    const ssize_t count = os::receive_now(asked.socket.get(), std::span(asked.heard).subspan(asked.count));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) break;
    asked.count += static_cast<std::size_t>(count);
    StartUp answer;
    std::size_t frame_bytes = 0;
    const Parsed parsed = parse_start_up(std::span(asked.heard).first(asked.count), true, answer, frame_bytes);
    if (parsed == Parsed::incomplete) continue;
    if (parsed == Parsed::whole && answer.rejected) {
      const std::optional<Refusal> refusal = parse_refusal(answer.private_data);
      if (refusal && refusal->why == Refusal::Why::here && refusal->qual == qual_) {
        found_ = asked.port;
        return report();
      }
    }
    break;
  }
  is_stranger(asked, ConnectFailure::refused);
}

void Inquiry::host_has_answered() {
  if (std::exchange(host_is_there_, true)) return;
  fabric_.engine().set_timer(unanswered_, os::now_ns() + kPatienceToConnect);
}

void Inquiry::give_up(bool connected) {
  for (Asked& asked : asked_) {
    if (asked.socket && asked.connected == connected) {
      is_stranger(asked, connected ? ConnectFailure::refused : ConnectFailure::unreachable);
    }
    if (!stream_) return;
  }
}

bool Inquiry::any_left() const {
  return std::any_of(asked_.begin(), asked_.end(), [](const Asked& one) { return static_cast<bool>(one.socket); });
}

void Inquiry::is_stranger(Asked& asked, ConnectFailure why) {
  close(asked);
  if (why == ConnectFailure::refused) {
    why_ = why;
    host_has_answered();
  }
  if (!any_left()) report();
}

void Inquiry::report() {
  TcpStream* const stream = stream_;
  abandon();
  stream->negotiation().inquired(found_, why_);
}

}  // namespace anydat::nic::soft::iwarp
