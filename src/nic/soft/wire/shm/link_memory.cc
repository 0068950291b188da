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

bool Link::let_go() const {
  return !hazards_.uses(0) || base::now_ns() >= end_at_;
}

// The peer may have been stopped in the middle of a stretch. Nobody else waits for it with its connections.
void Link::look_whether_let_go() {
  if (let_go()) return finish();
  fabric_.engine().set_timer(end_timer_, base::now_ns() + Hazards::kBetweenLooks);
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
