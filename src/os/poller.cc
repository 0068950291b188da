// SPDX-License-Identifier: BSD-3-Clause
#include "os/poller.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "base/random.h"
#include "os/uncancelled.h"

namespace anydat::os {

epoll_event Poller::event_of(std::uint32_t events, void* data) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = mark_ | reinterpret_cast<std::uintptr_t>(data);
  return event;
}

bool Poller::open() {
  mark_ = (base::random_number<std::uint64_t>() | 1) << kAddressBits;
  epoll_ = base::UniqueFd::of([] { return epoll_create1(EPOLL_CLOEXEC); });
  bell_ = base::UniqueFd::of([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  epoll_event silent = event_of(0, nullptr);
  return epoll_ && bell_ && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.get(), &silent) == 0;
}

bool Poller::watch(int fd, std::uint32_t events, void* data) {
  epoll_event event = event_of(events, data);
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Poller::change(int fd, std::uint32_t events, void* data) {
  epoll_event event = event_of(events, data);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::forget(int fd) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

int Poller::ready(std::span<epoll_event> events) const {
  const int count = uncancelled::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (epoll_event& event : events.first(static_cast<std::size_t>(std::max(count, 0)))) {
    if ((event.data.u64 ^ mark_) >> kAddressBits != 0) return kSetOfAnother;
    event.data.u64 ^= mark_;
  }
  return count;
}

// No other file has this descriptor in its set by this number, so nothing but ours takes the change.
bool Poller::set_bell(std::uint32_t events) const {
  epoll_event bell = event_of(events, nullptr);
  return epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, bell_.get(), &bell) == 0;
}

// The set that has the bell already is ours. Another that takes it gives it back.
bool Poller::is_ours() const {
  epoll_event silent = event_of(0, nullptr);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.get(), &silent) == 0) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, bell_.get(), nullptr);
    return false;
  }
  return errno == EEXIST;
}

}  // namespace anydat::os
