// SPDX-License-Identifier: BSD-3-Clause
#include "nic/loop.h"

#include <algorithm>
#include <array>

#include "nic/run_safely.h"
#include "os/cancel.h"
#include "os/uncancelled.h"

namespace anydat::nic {

bool Loop::start(int wake_fd) {
  epoll_fd_ = base::UniqueFd::of([] { return epoll_create1(EPOLL_CLOEXEC); });
  if (!epoll_fd_) return false;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  return epoll_ctl(epoll_fd_.get(), EPOLL_CTL_ADD, wake_fd, &event) == 0;
}

void Loop::add_source(PollSource& source) {
  sources_.push_back(&source);
  if (armed()) source.arm();
}

void Loop::remove_source(PollSource& source) {
  if (std::erase(sources_, &source) != 0 && armed()) source.disarm();
}

bool Loop::watch(int fd, std::uint32_t events, FdHandler& handler) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &handler;
  return epoll_ctl(epoll_fd_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Loop::change_watch(int fd, std::uint32_t events, FdHandler& handler) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &handler;
  epoll_ctl(epoll_fd_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::unwatch(int fd, FdHandler& handler) {
  epoll_ctl(epoll_fd_.get(), EPOLL_CTL_DEL, fd, nullptr);
  // It may go away before its turn comes.
  for (epoll_event& event : ready_) {
    if (event.data.ptr == &handler) event.data.ptr = nullptr;
  }
}

bool Loop::set_timer(Timer& timer, base::Nanoseconds deadline) {
  cancel_timer(timer);
  timer.place_.key() = deadline;
  timer.where_ = timers_.insert(std::move(timer.place_));
  if (deadline >= next_timer_.load(std::memory_order_relaxed)) return false;
  next_timer_.store(deadline);
  return true;
}

void Loop::cancel_timer(Timer& timer) {
  if (!timer.pending()) return;
  timer.place_ = timers_.extract(timer.where_);
  next_timer_.store(timers_.empty() ? base::kForever : timers_.begin()->first);
}

bool Loop::run_timers() {
  if (timers_.empty() || timers_.begin()->first > base::now_ns()) return false;
  const os::CancelOff off;  // they may call what we have not written
  while (!timers_.empty() && timers_.begin()->first <= base::now_ns()) {
    Timer& timer = *timers_.begin()->second;
    cancel_timer(timer);
    run_safely(timer.action_);
  }
  return true;
}

bool Loop::run_descriptors() {
  std::array<epoll_event, 64> events;
  const int count = os::uncancelled::epoll_wait(epoll_fd_.get(), events.data(), events.size(), 0);
  bool progress = false;
  if (count <= 0) return false;
  const os::CancelOff off;  // the handlers may call what we have not written
  ready_ = std::span(events).first(static_cast<std::size_t>(count));
  while (!ready_.empty()) {
    const epoll_event event = ready_.front();
    ready_ = ready_.subspan(1);
    // The one that ends sleeps is for the sleeper alone. Were it taken here, a thread that has just been woken by it
    // would find nothing and go back to sleep. What another handler has unwatched meanwhile looks the same.
    if (event.data.ptr == nullptr) continue;
    run_safely([&] { static_cast<FdHandler*>(event.data.ptr)->ready(event.events); });
    progress = true;
  }
  return progress;
}

// An idle look is a large part of the time in which a message lies unseen.
bool Loop::poll_sources(int rounds) {
  bool progress = false;
  int done = 0;
  do {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      run_safely([&] { progress |= sources_[i]->poll(); });
    }
  } while (++done < rounds && !progress);
  polls_.add(static_cast<std::uint64_t>(done));
  return progress;
}

// Apart, for those who count what a call costs: whether it also does this is a matter of chance.
[[gnu::noinline]] bool Loop::poll_by_time() {
  bool progress = false;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    run_safely([&] { progress |= sources_[i]->look_by_time(); });
  }
  progress |= run_descriptors();
  progress |= run_timers();
  return progress;
}

void Loop::arm() {
  armed_.store(true);
  for (PollSource* source : sources_) source->arm();
}

void Loop::disarm() {
  if (!armed_hint()) return;
  armed_.store(false);
  for (PollSource* source : sources_) source->disarm();
}

}  // namespace anydat::nic
