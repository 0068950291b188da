// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/link.h"

#include <sys/epoll.h>
#include <time.h>

#include <array>

#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"
#include "os/passed_descriptors.h"

namespace anydat::nic::soft::shm {

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
      end_(*this, fabric),
      sender_(*this, fabric.engine(), outbound_, std::move(parts.socket), std::move(parts.marks), parts.fences),
      peer_death_(*this, fabric.engine(), doorbell().socket().get()),
      hazard_slots_(fabric.engine(), outbound_.header(), parts.fences, sender_.lock()),
      grants_(inbound_.header(), sender_.lock()) {
  if (fabric_.adapter().config().cross_copy) {
    peer_memory_.attach(doorbell().socket().get(), process(), outbound_.header(), fabric_.adapter().engine().ticks());
  }
  within_process_ = peer_memory_.reachable() && process().is_this_process();
}

Link::~Link() = default;

bool Link::start() {
  Engine& engine = fabric_.engine();
  fabric_.link_set().add(*this);
  engine.wake_if_armed();  // what it holds already was not announced to anybody
  if (engine.watch(doorbell().socket().get(), EPOLLIN, *this)) {
    if (peer_death_.watch()) return true;
    engine.unwatch(doorbell().socket().get(), *this);
  }
  fabric_.link_set().remove(*this);
  return false;
}

void Link::stop() {
  fabric_.engine().unwatch(doorbell().socket().get(), *this);
  peer_death_.stop_watching();
  fabric_.link_set().remove(*this);
  users_.stop();
  hazard_slots_.stop();
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

// The next pass finds the link by its mark. A thread that sets the flag again after that has marked the link anew.
void Link::something_is_to_go() {
  if (!something_waits_.exchange(true)) fabric_.link_set().wake(place_.slot);
}

void Link::want_room_again() {
  if (something_waits_.load()) outbound_.header().room_wanted.store(1);
}

void Link::ready(std::uint32_t) {
  std::array<std::byte, 64> datagram;
  bool rung = false;
  for (int i = 0; i < budget::kDatagramsPerTurn; ++i) {
    std::array<os::PassedFd, 1> fd;
    const os::Arrived arrived = os::receive_with_descriptors(doorbell().socket(), datagram, fd);
    if (arrived.what == os::Arrival::nothing_yet) break;
    if (arrived.what == os::Arrival::hangup) {
      end_.cut();
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

}  // namespace anydat::nic::soft::shm
