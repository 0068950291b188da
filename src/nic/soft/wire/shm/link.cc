// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/link.h"

#include <sys/epoll.h>
#include <time.h>

#include <array>

#include "base/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"
#include "os/passed_descriptors.h"

namespace anydat::nic::soft::shm {

namespace {

constexpr int kDatagramsPerTurn = 64;

}  // namespace

Link::Link(Fabric& fabric, Parts parts)
    : receiver_(*this, fabric, parts.inbound, parts.fences),
      fabric_(fabric),
      inbound_(std::move(parts.inbound)),
      outbound_(std::move(parts.outbound)),
      regions_(std::move(parts.regions)),
      mappings_(*this, fabric),
      hazards_(*this, fabric.engine()),
      peer_(parts.peer),
      initiated_(parts.initiated),
      users_(*this, fabric.engine()),
      end_timer_([this] { look_whether_let_go(); }),
      sender_(*this, fabric.engine(), outbound_, std::move(parts.socket), std::move(parts.marks), parts.fences),
      peer_death_(*this, fabric.engine(), doorbell().socket().get()),
      hazard_slots_(fabric.engine(), outbound_.header(), parts.fences, sender_.lock()),
      leaves_(inbound_.header(), sender_.lock()) {
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
  receiver_.forget(stream);
  sender_.forget(stream);
  hazard_slots_.give_back(stream.rdma().slot());
  users_.remove(stream);
}

// The next pass finds it by the mark. Whoever sets it after that has marked it anew.
void Link::something_is_to_go() {
  if (!something_waits_.exchange(true)) fabric_.link_set().wake(place_.slot);
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
  if (dead()) return;
  fabric_.adapter().batch().flush();
  const std::shared_ptr<Link> keep = shared_from_this();
  if (why) {
    warn("a local peer is cut off", why);
  } else {
    receiver_.drain();
    if (dead()) return;
  }
  receiver_.stop();
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
