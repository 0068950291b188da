// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/ready_sockets.h"

#include <algorithm>

#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

namespace {

constexpr std::uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

}  // namespace

bool ReadySockets::add(TcpStream& stream, int fd) {
  return !lost_ && epoll_.watch(fd, kEvents, &stream);
}

void ReadySockets::remove(TcpStream& stream, int fd) {
  if (!lost_) epoll_.forget(fd);
  for (epoll_event& event : told_next_) {
    if (event.data.ptr == &stream) event.data.ptr = nullptr;
  }
}

void ReadySockets::tell_arrivals(TcpStream& stream, bool on) {
  if (lost_) return;
  epoll_.change(stream.socket(), on ? kEvents : kEvents & ~static_cast<std::uint32_t>(EPOLLIN), &stream);
}

bool ReadySockets::fetch() {
  std::copy(told_next_.begin(), told_next_.end(), events_.begin());
  const std::size_t known = told_next_.size();
  const std::span<epoll_event> room = std::span(events_).subspan(known);
  const int count = room.empty() ? 0 : epoll_.ready(room);
  const bool ours = count >= 0 || (count != os::Epoll::kSetOfAnother && epoll_.is_ours());
  std::size_t all = known;
  for (const epoll_event& event : room.first(static_cast<std::size_t>(std::max(count, 0)))) {
    const auto end = events_.begin() + static_cast<std::ptrdiff_t>(known);
    const auto same =
        std::find_if(events_.begin(), end, [&](const epoll_event& one) { return one.data.ptr == event.data.ptr; });
    if (same != end) {
      same->events |= event.events;
    } else {
      events_[all++] = event;
    }
  }
  told_next_ = std::span(events_).first(all);
  return ours;
}

ReadySockets::Word ReadySockets::take_first() {
  const epoll_event first = told_next_.front();
  told_next_ = told_next_.subspan(1);
  return {static_cast<TcpStream*>(first.data.ptr), first.events};
}

bool ReadySockets::any_of_others(const TcpStream& than) const {
  return std::any_of(told_next_.begin(), told_next_.end(),
                     [&](const epoll_event& event) { return event.data.ptr && event.data.ptr != &than; });
}

bool ReadySockets::others_before(const TcpStream& its) const {
  for (const epoll_event& event : told_next_) {
    if (event.data.ptr == &its && (event.events & EPOLLIN) != 0) return false;
    if (event.data.ptr && event.data.ptr != &its) return true;
  }
  return false;
}

}  // namespace anydat::nic::soft::iwarp
