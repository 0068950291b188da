// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/caller.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/big_endian.h"
#include "env/log.h"
#include "nic/qualifier_ports.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/fabric.h"
#include "nic/soft/wire/iwarp/sockets.h"
#include "nic/soft/wire/iwarp/stream.h"
#include "nic/soft/wire/iwarp/terms.h"
#include "nic/soft/wire/iwarp/transmitter.h"
#include "os/socket.h"

namespace anydat::nic::soft::iwarp {

namespace {

// From the call to the request.
constexpr os::Nanoseconds kPatience = 10 * os::kNsPerSecond;

}  // namespace

// A frame of this size always fits into a socket that nothing has been written to.
void send_rejection(int fd, const StartUp& asked, std::span<const std::byte> private_data) {
  StartUp frame = answer_to(asked, {});
  frame.rejected = true;
  frame.private_data = private_data;
  std::array<std::byte, kStartUpBytesMax> bytes;
  os::send_now(fd, std::span(bytes).first(write_start_up(frame, bytes)));
}

// ---- a peer that has called

Caller::Caller(Fabric& fabric, os::UniqueFd socket, const Address& source, ConnQual qual)
    : Stranger(fabric.adapter().strangers(), source, Stage::silent),
      fabric_(fabric),
      socket_(std::move(socket)),
      source_(source),
      qual_(qual),
      patience_([this] { fabric_.setups_and_ends().finished(*this); }) {}

Caller::~Caller() {
  if (watched_ && socket_) fabric_.engine().unwatch(socket_.get(), *this);
  fabric_.engine().cancel_timer(patience_);
}

bool Caller::begin() {
  prepare(socket_.get(), fabric_.adapter());
  watched_ = fabric_.engine().watch(socket_.get(), EPOLLIN, *this);
  if (!watched_) return false;
  fabric_.engine().set_timer(patience_, os::now_ns() + kPatience);
  // Who has said what it wants already is not one of those that are turned out for the next caller.
  ready(EPOLLIN);
  return true;
}

void Caller::turn_out() {
  fabric_.engine().unwatch(socket_.get(), *this);
  watched_ = false;
  socket_.reset();
  fabric_.setups_and_ends().finished(*this);
}

void Caller::ready(std::uint32_t) {
  if (!hear()) fabric_.setups_and_ends().finished(*this);
}

bool Caller::hear() {
  // Not a byte more than the frame: what follows is for the stream that the connection will belong to.
  StartUp frame;
  std::size_t frame_bytes = 0;
  for (;;) {
    std::size_t wanted = kStartUpHeaderBytes;
    if (count_ >= kStartUpHeaderBytes) {
      wanted = kStartUpHeaderBytes + base::load_big<std::uint16_t>(heard_.data() + kStartUpHeaderBytes - 2);
    }
    const std::span<std::byte> room = std::span(heard_).first(std::min(wanted, heard_.size())).subspan(count_);
    const ssize_t count = os::receive_now(socket_.get(), room);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return true;
    if (count <= 0) return false;
    count_ += static_cast<std::size_t>(count);
    enter(Stage::talking);
    switch (parse_start_up(std::span(heard_).first(count_), false, frame, frame_bytes)) {
      case Parsed::incomplete:
        continue;
      case Parsed::malformed:
        env::log(env::LogLevel::warn, "a caller of service point {} was turned away: it does not speak iWARP", qual_);
        return false;
      case Parsed::whole:
        break;
    }
    try {
      ask(frame);
    } catch (const std::bad_alloc&) {
      env::log(env::LogLevel::warn, "a caller of service point {} was turned away: no memory", qual_);
    }
    return false;
  }
}

void Caller::ask(const StartUp& said) {
  StartUp frame = said;
  Wanted wanted{Wanted::Kind::connection, 0, {}};
  const WantedParsed parsed = parse_wanted(said.private_data, wanted);
  if (parsed == WantedParsed::good) frame.private_data = wanted.private_data;
  fabric_.engine().unwatch(socket_.get(), *this);
  watched_ = false;
  leave();
  auto request = std::make_unique<TcpRequest>(fabric_, std::move(socket_), source_, qual_, frame);
  if (!request->complete()) return;
  ListenerEvents* to = fabric_.listener(qual_);
  if (frame.markers) {
    // Section 4 of RFC 5044 lets a receiver demand markers of its peer, and a peer refuse.
    env::log(env::LogLevel::warn, "a caller of service point {} was turned away: it wants markers", qual_);
    request->refuse();
  } else if (!is_ours(parsed, wanted, request->local_address())) {
    request->refuse();
  } else if (to && wanted.kind == Wanted::Kind::whose) {
    request->say_here();
  } else if (to) {
    TcpRequest::deliver(std::move(request), *to);
  }
}

// A request that names no qualifier means the port, and a derived port is the qualifier of no service point.
bool Caller::is_ours(WantedParsed parsed, const Wanted& wanted, const Address& local) const {
  if (parsed == WantedParsed::nothing) return is_port(qual_);
  return parsed == WantedParsed::good && wanted.qual == qual_ && fabric_.adapter().serves(qual_, local);
}

// ---- a request

TcpRequest::TcpRequest(Fabric& fabric, os::UniqueFd socket, const Address& source, ConnQual qual, const StartUp& asked)
    : Stranger(fabric.adapter().strangers(), source, Stage::asking),
      fabric_(fabric),
      socket_(std::move(socket)),
      qual_(qual),
      asked_(asked),
      data_bytes_(asked.private_data.size()) {
  std::copy(asked.private_data.begin(), asked.private_data.end(), data_.begin());
  asked_.private_data = {};
  if (!ends_of(socket_.get(), local_, remote_)) socket_.reset();  // it has gone already
}

// The peer may have gone meanwhile: then the socket does not tell any more who it was (CR-HO-1).
TcpRequest::TcpRequest(TcpRequest& handed_off, ConnQual to)
    : Stranger(handed_off.fabric_.adapter().strangers(), handed_off.remote_, Stage::asking),
      fabric_(handed_off.fabric_),
      socket_(std::move(handed_off.socket_)),
      qual_(to),
      asked_(handed_off.asked_),
      local_(handed_off.local_),
      remote_(handed_off.remote_),
      data_(handed_off.data_),
      data_bytes_(handed_off.data_bytes_) {
  handed_off.leave();
  if (!socket_) leave();
}

void TcpRequest::deliver(std::unique_ptr<TcpRequest> given, ListenerEvents& to) {
  std::unique_ptr<ConnectionRequest> request = std::move(given);
  if (!to.on_request(request) && request) static_cast<TcpRequest&>(*request).refuse();
}

TcpRequest::~TcpRequest() {
  if (socket_) refuse();
}

std::uint64_t TcpRequest::remote_port() const {
  return port_of(remote_);
}

// Once the program has closed our descriptors, whatever has the socket's number is not ours to write to.
bool TcpRequest::socket_is_ours() const {
  return fabric_.engine().descriptor_loss().descriptors_are_ours() && socket_.is_ours();
}

void TcpRequest::turn_away(std::span<const std::byte> private_data) {
  if (!socket_) return;
  if (!socket_is_ours()) {
    leave();
    socket_.reset();
    return;
  }
  send_rejection(socket_.get(), asked_, private_data);
  leave();
  fabric_.setups_and_ends().part(std::move(socket_), Transmitter(fabric_.chunks()), Stranger::Stage::leaving, remote_);
}

// The program learns it when it accepts: the peer has gone (CR-ACC-5).
void TcpRequest::turn_out() {
  if (socket_ && socket_is_ours()) {
    send_rejection(socket_.get(), asked_, write_refusal({Refusal::Why::nobody_listens, 0}));
  }
  socket_.reset();
}

void TcpRequest::reject(std::span<const std::byte> private_data) {
  turn_away(write_rejection(private_data));
}

void TcpRequest::refuse() {
  turn_away(write_refusal({Refusal::Why::nobody_listens, 0}));
}

void TcpRequest::say_here() {
  turn_away(write_refusal({Refusal::Why::here, qual_}));
}

Status TcpRequest::hand_off(ConnQual qual) {
  if (ListenerEvents* to = fabric_.listener(qual)) {
    deliver(std::make_unique<TcpRequest>(*this, qual), *to);
    return Status::ok;
  }
  // Another process, or another instance of the adapter: the active side asks there itself, once it is known that a
  // process listens there.
  if (const Status status = fabric_.adapter().probe_service_point(qual); status != Status::ok) return status;
  turn_away(write_refusal({Refusal::Why::elsewhere, qual}));
  return Status::ok;
}

void TcpRequest::accept(QueuePair& queue_pair, std::span<const std::byte> private_data) {
  auto& soft = static_cast<SoftQueuePair&>(queue_pair);
  if (!soft.sends().make_room()) throw std::bad_alloc();
  auto stream = std::make_unique<TcpStream>(fabric_, soft);
  Negotiation& its = stream->negotiation();
  its.prepare_to_accept(asked_, remote_, private_data);
  soft.connection().establishment().accept(std::move(stream), {local_, remote_, qual_, port_of(remote_), {}});
  leave();
  its.accept(std::move(socket_));
}

}  // namespace anydat::nic::soft::iwarp
