// SPDX-License-Identifier: BSD-3-Clause
#include "nic/loop.h"

#include <algorithm>
#include <array>

#include "env/log.h"
#include "os/cancel.h"

namespace anydat::nic {

void note_no_memory() {
  env::log(env::LogLevel::error, "no memory for something that has arrived");
}

void Loop::add_source(PollSource& source) {
  sources_.push_back(&source);
  if (armed()) source.arm();
}

void Loop::remove_source(PollSource& source) {
  if (std::erase(sources_, &source) != 0 && armed()) source.disarm();
}

bool Loop::watch(int fd, std::uint32_t events, FdHandler& handler) {
  return poller_->watch(fd, events, &handler);
}

void Loop::change_watch(int fd, std::uint32_t events, FdHandler& handler) {
  if (!lost_) poller_->change(fd, events, &handler);
}

void Loop::unwatch(int fd, FdHandler& handler) {
  if (!lost_) poller_->forget(fd);
  // It may go away before its turn comes.
  for (epoll_event& event : ready_) {
    if (event.data.ptr == &handler) event.data.ptr = nullptr;
  }
}

bool Loop::run_descriptors() {
  if (lost_) return false;
  std::array<epoll_event, 64> events;
  const int count = poller_->ready(events);
  bool progress = false;
  // What is ready in a set of the program's is not for us.
  lost_ = count == os::Epoll::kSetOfAnother || (count < 0 && !poller_->is_ours());
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

bool Loop::poll_sources(int rounds) {
  return poll_sources_here(rounds);
}

// Apart, for those who count what a call costs: whether it also does this is a matter of chance.
[[gnu::noinline]] bool Loop::poll_by_time() {
  bool progress = false;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    run_safely([&] { progress |= sources_[i]->look_by_time(); });
  }
  progress |= run_descriptors();
  progress |= timers_.run();
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
