// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/doorbell.h"

#include <cerrno>
#include <span>

#include "os/socket.h"

namespace anydat::nic::soft::shm {

// The mark comes first: who wakes up by the bell looks for it.
void Doorbell::call_attention() {
  marks_.mark(header_.slot.load(std::memory_order_relaxed));
  auto bell = static_cast<std::uint32_t>(Attention::bell);
  if (!header_.attention.compare_exchange_strong(bell, static_cast<std::uint32_t>(Attention::mark))) return;
  const std::uint8_t ring = 0;
  os::Guard guard(bell_lock_);
  if (!socket_) return;
  // A post may come here without the engine, whose look at the descriptors is too old for this: the peer may have been
  // asleep, and its bell out, since before the program closed them.
  if (!socket_.is_ours()) return engine_.descriptor_loss().note();
  // A socket that is full of bells wakes the peer all the same. If the system has no room for this one, the next is
  // rung.
  if (os::send_now(socket_.get(), std::as_bytes(std::span(&ring, 1))) == 1 || errno == EAGAIN) return;
  auto mark = static_cast<std::uint32_t>(Attention::mark);
  header_.attention.compare_exchange_strong(mark, static_cast<std::uint32_t>(Attention::bell));
}

void Doorbell::hang_up() {
  os::LocalSocket socket;  // closed without the lock
  os::Guard guard(bell_lock_);
  socket = std::move(socket_);
}

}  // namespace anydat::nic::soft::shm
