// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/peer_death.h"

#include <sys/epoll.h>

#include "nic/soft/wire/shm/link.h"

namespace anydat::nic::soft::shm {

bool PeerDeath::watch() {
  return process_.descriptor() < 0 || engine_.watch(process_.descriptor(), EPOLLIN, *this);
}

void PeerDeath::stop_watching() {
  if (process_.descriptor() >= 0) engine_.unwatch(process_.descriptor(), *this);
}

bool PeerDeath::has_come(int socket) const {
  return os::peer_has_hung_up(socket, process_.descriptor());
}

void PeerDeath::ready(std::uint32_t) {
  link_.end().cut();
}

}  // namespace anydat::nic::soft::shm
