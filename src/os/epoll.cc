// SPDX-License-Identifier: BSD-3-Clause
#include "os/epoll.h"

#include <algorithm>
#include <cstddef>

#include "os/random.h"
#include "os/uncancelled.h"

namespace anydat::os {

namespace {

std::uint16_t next_mark() {
  static std::atomic<std::uint16_t> last{random_number<std::uint16_t>()};
  std::uint16_t mark = 0;
  while (mark == 0) mark = static_cast<std::uint16_t>(last.fetch_add(1) + 1);
  return mark;
}

}  // namespace

bool Epoll::control(int operation, int fd, std::uint32_t events, void* data) const {
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(data);
  if (address >> kAddressBits != 0) [[unlikely]]
    tagged_.store(true, std::memory_order_relaxed);
  epoll_event event{};
  event.events = events;
  event.data.u64 = mark_ ^ address;
  return epoll_ctl(fd_.get(), operation, fd, &event) == 0;
}

bool Epoll::open() {
  mark_ = std::uint64_t{next_mark()} << kAddressBits;
  fd_ = UniqueFd::of([] { return epoll_create1(EPOLL_CLOEXEC); });
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
    event.data.u64 ^= mark_;
    if (event.data.u64 >> kAddressBits != 0 && tells_sets_apart()) return kSetOfAnother;
  }
  return count;
}

}  // namespace anydat::os
