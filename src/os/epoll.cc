// SPDX-License-Identifier: BSD-3-Clause
#include "os/epoll.h"

#include "os/uncancelled.h"

namespace anydat::os {

namespace {

bool control(int set, int operation, int fd, std::uint32_t events, void* data) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = data;
  return epoll_ctl(set, operation, fd, &event) == 0;
}

}  // namespace

bool Epoll::open() {
  fd_ = base::UniqueFd::of([] { return epoll_create1(EPOLL_CLOEXEC); });
  return is_open();
}

bool Epoll::watch(int fd, std::uint32_t events, void* data) const {
  return control(fd_.get(), EPOLL_CTL_ADD, fd, events, data);
}

bool Epoll::change(int fd, std::uint32_t events, void* data) const {
  return control(fd_.get(), EPOLL_CTL_MOD, fd, events, data);
}

void Epoll::forget(int fd) const {
  epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

int Epoll::ready(std::span<epoll_event> events) const {
  return uncancelled::epoll_wait(fd_.get(), events.data(), static_cast<int>(events.size()), 0);
}

}  // namespace anydat::os
