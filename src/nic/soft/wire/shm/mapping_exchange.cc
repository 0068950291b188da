// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/mapping_exchange.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/link.h"
#include "os/own_files.h"
#include "os/passed_descriptors.h"
#include "os/shareable.h"

namespace anydat::nic::soft::shm {

void MappingExchange::ask_for(std::uint32_t key) {
  link_.sender().send_control(CellKind::map, 0, key);
}

void MappingExchange::arrived(std::span<const std::byte> datagram, int fd) {
  MappingBody body;
  if (datagram.size() != sizeof body) return;
  std::memcpy(&body, datagram.data(), sizeof body);
  mapped_.add(body, fd, link_.peer_regions());
}

// Not by the marks of the uses, which the peer can write as well.
void MappingExchange::taken_back(std::uint32_t key) {
  if (!mapped_.close(key)) return;
  fabric_.adapter().await_posts();
  mapped_.give_back(key);
}

void MappingExchange::show(std::uint32_t key) {
  const auto region = fabric_.adapter().regions().find(key);
  const std::uint32_t remote = access::kRemoteRead | access::kRemoteWrite;
  const auto place = std::lower_bound(shown_.begin(), shown_.end(), key);
  if (!region || (region->rights & remote) == 0 || (place != shown_.end() && *place == key)) return;
  // What is for one connection alone is shown to no other peer.
  if (region->zone > kZoneMax && !link_.users().serves_scope(region->zone)) return;
  try {
    shown_.insert(place, key);
  } catch (const std::bad_alloc&) {
    return;  // the peer does without
  }
  if (const auto own = os::find_allocation(region->address, region->length)) {
    show_file(key, {own->fd.get(), own->device, own->inode, own->offset});
  } else {
    fabric_.files().find(key, *region, link_.shared_from_this());
  }
}

bool MappingExchange::show_file(std::uint32_t key, const ProgramFile& file) {
  const auto region = fabric_.adapter().regions().find(key);
  if (!region) return true;
  if (!os::is_file(file.descriptor, file.device, file.inode)) return false;
  const MappingBody body{
      region->address, region->length, file.offset, key, (region->rights & access::kRemoteWrite) != 0 ? 1u : 0u,
      file.device,     file.inode};
  // If the socket is full, the peer does without.
  os::send_with_descriptors(link_.doorbell().socket(), std::as_bytes(std::span(&body, 1)),
                            std::span(&file.descriptor, 1));
  return true;
}

void MappingExchange::region_gone(std::uint32_t key) {
  const auto place = std::lower_bound(shown_.begin(), shown_.end(), key);
  if (place == shown_.end() || *place != key) return;
  shown_.erase(place);
  link_.sender().send_control(CellKind::unmap, 0, key);
}

}  // namespace anydat::nic::soft::shm
