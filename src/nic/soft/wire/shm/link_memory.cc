// SPDX-License-Identifier: BSD-3-Clause
// A link: what the peer does in memory of this side, and when that is over; and the regions that are shown to it.
#include <algorithm>
#include <new>

#include "base/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/link.h"
#include "nic/soft/wire/shm/stream.h"
#include "os/own_files.h"
#include "os/passed_descriptors.h"
#include "os/shareable.h"

namespace anydat::nic::soft::shm {

// Does the peer use what is meant, and goes on using it for longer than a look takes?
template <typename InUse>
bool Link::persists(InUse&& in_use) const {
  for (unsigned tries = 0; in_use(); ++tries) {
    if (tries == 100) return !peer_gone();  // one that has gone has written all it ever will
    base::cpu_relax();
  }
  return false;
}

// The region, or with 0 any.
bool Link::uses(std::uint32_t key) const {
  return persists([&] { return in_rdma_use(inbound_, key); });
}

std::uint32_t Link::take_rdma_lane() {
  if (fences_) return 0;  // a fence of one's own each time costs what a shared slot does
  base::Guard guard(tx_lock_);
  const std::uint32_t slot = lanes_.take();
  if (slot >= kSharedRdmaSlots) {
    outbound_.header().rdma_lanes.store(1);
    base::full_fence();  // an owner that has not seen it has taken its key out before we look for it
  }
  return slot;
}

void Link::shut_gate() {
  inbound_.header().rdma_gate.fetch_add(kGateStep);
  ++gates_shut_;
}

std::uint32_t Link::fence_at_gate() const {
  fence_rdma_users(inbound_.header(), 0);
  return gates_shut_;
}

bool Link::past_gate(std::uint32_t number, const ShmStream& stream) const {
  // Nothing is heard by a link that is dead; but no RDMA begins on it.
  const std::uint32_t unheard = inbound_.header().rdma_gate.load() / kGateStep;
  if (!dead_ && static_cast<std::int32_t>(gates_shut_ - unheard - number) >= 0) return true;
  if (!persists([&] { return connection_in_rdma_use(inbound_, stream.name()); })) return true;
  return dead_ && base::now_ns() >= end_at_;
}

void Link::never_lets_go() {
  if (dead_) return;
  base::log(
      base::LogLevel::warn,
      "process {} was stopped while it used memory that is not its any more; what it still does cannot be prevented",
      process_.pid());
  out_of_patience_ = true;
  fail("it does not let go of memory");
}

// The peer's word of an end has been dealt with, so that nothing is under way that it was meant for.
void Link::open_gate() {
  std::atomic<std::uint32_t>& gate = outbound_.header().rdma_gate;
  if (gate.load() < kGateStep) return;  // it says so without having shut it
  if (gate.fetch_sub(kGateStep) >= 2 * kGateStep || !somebody_at_gate_.exchange(false)) return;
  for (ShmStream* const stream : streams_) come_back(*stream);
}

bool Link::wait_at_gate() {
  somebody_at_gate_.store(true);
  return outbound_.header().rdma_gate.load() != 0;  // it may have been opened before anybody knew
}

bool Link::press(std::uint32_t key) {
  if (!uses(key)) return false;
  const base::Nanoseconds now = base::now_ns();
  if (dead_) return now < end_at_;
  if (pressed_ != 0) return true;
  pressed_ = key;
  pressed_until_ = now + kStretchPatience;
  fabric_.engine().set_timer(press_timer_, now + kStretchLook);
  return true;
}

bool Link::lets_go_of(std::uint32_t key) {
  fence_rdma_users(inbound_.header(), key);
  return !press(key);
}

void Link::look_whether_pressed() {
  const base::Nanoseconds now = base::now_ns();
  if (!uses(pressed_)) {
    pressed_ = 0;
  } else if (now < pressed_until_) {
    fabric_.engine().set_timer(press_timer_, now + kStretchLook);
  } else {
    never_lets_go();
  }
}

bool Link::let_go() const {
  return !uses(0) || base::now_ns() >= end_at_;
}

// The peer may have been stopped in the middle of a stretch. Nobody else waits for it with its connections.
void Link::look_whether_let_go() {
  if (let_go()) return finish();
  fabric_.engine().set_timer(end_timer_, base::now_ns() + kStretchLook);
}

// ---- regions that are shown

void Link::hear(std::span<const std::byte> datagram, int fd) {
  MappingBody body;
  if (datagram.size() != sizeof body) return;
  std::memcpy(&body, datagram.data(), sizeof body);
  mapped_.add(body, fd, peer_regions());
}

// Shows the peer the memory of a region of ours, if it can be shown. Once: the answer would be the same.
void Link::show(std::uint32_t key) {
  const auto region = fabric_.adapter().regions().find(key);
  const std::uint32_t remote = access::kRemoteRead | access::kRemoteWrite;
  const auto place = std::lower_bound(shown_.begin(), shown_.end(), key);
  if (!region || (region->rights & remote) == 0 || (place != shown_.end() && *place == key)) return;
  // What is for one connection alone is shown to no other peer.
  if (region->zone > kZoneMax && std::none_of(streams_.begin(), streams_.end(), [&](ShmStream* stream) {
        return stream->queue_pair().scope() == region->zone;
      })) {
    return;
  }
  try {
    shown_.insert(place, key);
  } catch (const std::bad_alloc&) {
    return;  // the peer does without
  }
  if (const auto own = os::find_allocation(region->address, region->length)) {
    show_file(key, {own->fd.get(), own->device, own->inode, own->offset});
  } else {
    fabric_.files().find(key, *region, shared_from_this());
  }
}

bool Link::show_file(std::uint32_t key, const ProgramFile& file) {
  const auto region = fabric_.adapter().regions().find(key);
  if (!region) return true;
  if (!os::is_file(file.descriptor, file.device, file.inode)) return false;
  const MappingBody body{
      region->address, region->length, file.offset, key, (region->rights & access::kRemoteWrite) != 0 ? 1u : 0u,
      file.device,     file.inode};
  // If the socket is full, the peer does without.
  os::send_with_descriptors(socket_, std::as_bytes(std::span(&body, 1)), std::span(&file.descriptor, 1));
  return true;
}

void Link::region_gone(std::uint32_t key) {
  const auto place = std::lower_bound(shown_.begin(), shown_.end(), key);
  if (place == shown_.end() || *place != key) return;
  shown_.erase(place);
  send_control(CellKind::unmap, 0, key);
}

}  // namespace anydat::nic::soft::shm
