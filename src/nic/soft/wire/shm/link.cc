// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/link.h"

#include <sys/epoll.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <new>

#include "base/log.h"
#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"
#include "os/passed_descriptors.h"

namespace anydat::nic::soft::shm {

namespace {

constexpr int kMessagesPerTurn = 64;
constexpr int kDatagramsPerTurn = 64;
// How far reading may run ahead of telling the sender, in cells.
constexpr std::uint64_t kPublishEvery = kCellCount / 8;

// Of which a program has a completion, now or when the rest has come.
constexpr bool is_message(CellKind kind) {
  return kind == CellKind::send || kind == CellKind::send_invalidate || kind == CellKind::announce ||
         kind == CellKind::immediate;
}

}  // namespace

Link::Link(Fabric& fabric, Parts parts)
    : fabric_(fabric),
      batch_(fabric.adapter().batch()),
      inbound_(std::move(parts.inbound)),
      outbound_(std::move(parts.outbound)),
      regions_(std::move(parts.regions)),
      mappings_(*this, fabric),
      hazards_(*this, fabric.engine()),
      peer_(parts.peer),
      initiated_(parts.initiated),
      fences_(parts.fences),
      users_(*this, fabric.engine()),
      end_timer_([this] { look_whether_let_go(); }),
      sender_(*this, fabric.engine(), outbound_, std::move(parts.socket), std::move(parts.marks), parts.fences),
      peer_death_(*this, fabric.engine(), doorbell().socket().get()),
      hazard_slots_(fabric.engine(), outbound_.header(), fences_, sender_.lock()),
      leaves_(inbound_.header(), sender_.lock()) {
  rx_.attach(inbound_);
  if (fabric_.adapter().config().cross_copy) {
    peer_memory_.attach(doorbell().socket().get(), process(), outbound_.header(), fabric_.adapter().engine().ticks());
  }
  within_process_ = reaches_peer() && process().pid() == getpid();
}

Link::~Link() = default;

bool Link::start() {
  Engine& engine = fabric_.engine();
  fabric_.link_set().add(*this);
  engine.nudge();  // what it holds already was not announced to anybody
  if (engine.watch(doorbell().socket().get(), EPOLLIN, *this)) {
    if (peer_death_.watch()) return true;
    engine.unwatch(doorbell().socket().get(), *this);
  }
  fabric_.link_set().remove(*this);
  return false;
}

void Link::add(ShmStream& stream) {
  users_.add(stream);
}

void Link::remove(ShmStream& stream) {
  if (latest_ == &stream) latest_ = nullptr;
  if (owing_ == &stream) owing_ = nullptr;
  sender_.forget(stream);
  hazard_slots_.give_back(stream.rdma().slot());
  users_.remove(stream);
}

// The next pass finds it by the mark. Whoever sets it after that has marked it anew.
void Link::something_is_to_go() {
  if (!something_waits_.exchange(true)) fabric_.link_set().wake(place_.slot);
}

// ---- receiving

bool Link::receive() {
  int count = 0;
  for (; count < kMessagesPerTurn && !dead_; ++count) {
    CellView view;
    const ReadResult result = rx_.peek(view);
    if (result == ReadResult::empty) break;
    const bool small = result == ReadResult::message && view.kind == CellKind::send;
    ShmStream* const to = small ? stream(view.connection) : nullptr;
    if (to && to->arrived_straight(view, [&] { return rx_.is_last(view); })) [[likely]] {
      rx_.take_of_row(view);
    } else if (!receive_otherwise()) {
      return true;
    }
    if (rx_.unpublished() >= kPublishEvery) [[unlikely]]
      publish_consumed();
  }
  batch_.flush();
  if (owing_) [[unlikely]]
    tell_done();
  if (rx_.unpublished() > 0) {
    publish_consumed();
    rx_.prefetch_next();
  }
  return count > 0;
}

// By the general way, so that the straight one has one place only, and stays short. What comes before it and is none
// goes by: answers, credit, RDMA.
void Link::take_first_message() {
  std::size_t bytes = 0;
  for (int left = kMessagesPerTurn; left > 0 && bytes < budget::kReadWhileOthersWait && !dead_; --left) {
    CellView view;
    if (rx_.peek(view) == ReadResult::empty) break;
    progress_ = true;
    if (!receive_otherwise() || is_message(view.kind)) break;
    bytes += view.length;
  }
  batch_.flush();
}

// The peer may have changed the message since it was looked at, so it is looked at anew.
[[gnu::noinline]] bool Link::receive_otherwise() {
  CellView view;
  try {
    if (rx_.peek(view) != ReadResult::message || !dispatch(view)) {
      fail("it sent a malformed message");
      return false;
    }
  } catch (const std::bad_alloc&) {
    fail("no memory is left for what it sends");
    return false;
  }
  rx_.take(view);
  return true;
}

void Link::tell_done() {
  std::exchange(owing_, nullptr)->writes().tell_done();
}

void Link::publish_consumed() {
  rx_.publish();
  base::compiler_fence();  // as in Doorbell::attract()
  if (fences_) base::full_fence();
  SegmentHeader& header = inbound_.header();
  if (header.room_wanted.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  header.room_wanted.store(0);
  doorbell().attract();
}

inline ShmStream* Link::stream(std::uint32_t connection) {
  if (!latest_ || latest_->name() != connection) [[unlikely]]
    latest_ = fabric_.find(connection, *this);
  return latest_;
}

bool Link::dispatch(const CellView& view) {
  if (view.kind != CellKind::send) batch_.flush();
  switch (view.kind) {
    case CellKind::pad:
      return true;
    case CellKind::connect:
      return fabric_.connect_arrived(*this, view);
    case CellKind::map:
      mappings_.show(view.aux);
      return true;
    case CellKind::unmap:
      mappings_.taken_back(view.aux);
      return true;
    case CellKind::cancel:
      users_.cancelled(view.aux);
      return true;
    case CellKind::piece:
    case CellKind::put:
    case CellKind::got: {
      PieceBody body;
      if (view.length == 0 || view.length > kPieceBytesMax) return false;
      std::memcpy(&body, view.body, sizeof body);
      const std::byte* bytes = rx_.bulk(body.position, view.length);
      if (!bytes) return false;
      if (ShmStream* stream = this->stream(view.connection); stream && !stream->piece_arrived(view, bytes))
        return false;
      rx_.take_bulk(body.position, view.length);
      return true;
    }
    case CellKind::accept: {
      if (ShmStream* stream = this->stream(view.connection)) return stream->negotiation().accept_arrived(view);
      // Ours is gone; tell the one that was accepted for it.
      AcceptBody body;
      if (view.body_room < sizeof body) return false;
      std::memcpy(&body, view.body, sizeof body);
      sender_.send_control(CellKind::close, body.connection, static_cast<std::uint32_t>(CloseReason::abrupt));
      return true;
    }
    default: {
      // Messages to a connection that has ended here meanwhile mean nothing.
      ShmStream* const stream = this->stream(view.connection);
      const bool sane = !stream || stream->arrived(view);
      if (view.kind == CellKind::close && hazards_.open_gate()) users_.come_back();
      return sane;
    }
  }
}

void Link::want_room_again() {
  if (something_waits_.load()) outbound_.header().room_wanted.store(1);
}

void Link::ready(std::uint32_t) {
  std::array<std::byte, 64> datagram;
  bool rung = false;
  for (int i = 0; i < kDatagramsPerTurn; ++i) {
    std::array<os::PassedFd, 1> fd;
    const os::Arrived arrived = os::receive_with_descriptors(doorbell().socket(), datagram, fd);
    if (arrived.what == os::Arrival::nothing_yet) break;
    if (arrived.what == os::Arrival::hangup) {
      fail(nullptr);
      return;
    }
    if (fd[0]) {
      mappings_.arrived(std::span(datagram).first(arrived.bytes), fd[0].get());
    } else {
      rung = true;
    }
  }
  if (rung) fabric_.link_set().rung(*this);
}

void Link::warn(const char* outcome, const char* offence) {
  if (!warned_) base::log(base::LogLevel::warn, "{}: {}", outcome, offence);
  warned_ = true;
}

// The link is over. What arrived before is delivered first, as far as there are buffers for it.
void Link::fail(const char* why) {
  if (dead_) return;
  batch_.flush();
  const std::shared_ptr<Link> keep = shared_from_this();
  if (why) {
    warn("a local peer is cut off", why);
  } else {
    // Bounded, since a peer that is cut off but alive could go on writing.
    for (std::uint32_t cells = 0; cells < kCellCount && !dead_ && receive(); cells += kMessagesPerTurn) {
    }
    if (dead_) return;
  }
  dead_ = true;
  end_at_ = hazards_.end();
  end_status_ = why ? WorkStatus::bad_response : WorkStatus::transport;
  Engine& engine = fabric_.engine();
  engine.unwatch(doorbell().socket().get(), *this);
  peer_death_.stop_watching();
  fabric_.link_set().remove(*this);
  users_.stop();
  hazard_slots_.stop();
  look_whether_let_go();
}

bool Link::let_go() const {
  return !hazards_.uses_any() || base::now_ns() >= end_at_;
}

// The peer may have been stopped in the middle of a stretch. Nobody else waits for it with its connections.
void Link::look_whether_let_go() {
  if (let_go()) return finish();
  fabric_.engine().set_timer(end_timer_, base::now_ns() + Hazards::kBetweenLooks);
}

void Link::finish() {
  const std::shared_ptr<Link> keep = shared_from_this();
  fabric_.engine().cancel_timer(end_timer_);
  if (peer_gone()) end_at_ = base::now_ns();  // once the socket has been given up, it cannot be asked any more
  // No RDMA of ours begins any more, and none is under way, when the peer learns that the link is over.
  outbound_.header().rdma_gate.fetch_or(kGateLinkOver);
  users_.let_posts_end();
  doorbell().hang_up();
  users_.requesters_gone();
  users_.link_lost(end_status_);
  fabric_.forget(*this);
}

}  // namespace anydat::nic::soft::shm
