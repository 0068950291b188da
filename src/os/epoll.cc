// SPDX-License-Identifier: BSD-3-Clause
#include "os/epoll.h"

#include <algorithm>
#include <cstddef>

#include "base/random.h"
#include "os/uncancelled.h"

namespace anydat::os {

bool Epoll::control(int operation, int fd, std::uint32_t events, void* data) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = mark_ | reinterpret_cast<std::uintptr_t>(data);
  return epoll_ctl(fd_.get(), operation, fd, &event) == 0;
}

bool Epoll::open() {
  mark_ = (base::random_number<std::uint64_t>() | 1) << kAddressBits;
  fd_ = base::UniqueFd::of([] { return epoll_create1(EPOLL_CLOEXEC); });
  return is_open();
}

bool Epoll::watch(int fd, std::uint32_t events, void* data) const {
  return control(EPOLL_CTL_ADD, fd, events, data);
}

bool Epoll::change(int fd, std::uint32_t events, void* data) const {
  return control(EPOLL_CTL_MOD, fd, events, data);
}

void Epoll::forget(int fd) const {
  epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

int Epoll::ready(std::span<epoll_event> events) const {
  const int count = uncancelled::epoll_wait(fd_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (epoll_event& event : events.first(static_cast<std::size_t>(std::max(count, 0)))) {
    if ((event.data.u64 ^ mark_) >> kAddressBits != 0) return kSetOfAnother;
    event.data.u64 ^= mark_;
  }
  return count;
}

}  // namespace anydat::os
