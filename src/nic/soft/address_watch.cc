// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/address_watch.h"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "env/log.h"
#include "nic/run_safely.h"
#include "nic/soft/addresses.h"
#include "os/address_news.h"
#include "os/clock.h"

namespace anydat::nic::soft {

namespace {

// Until what could not be done is tried again: a lock that another process has, or a descriptor that is not to be had.
constexpr os::Nanoseconds kAgain = 50'000'000;

}  // namespace

void AddressWatch::add(Follower& follower) {
  followers_.push_back(follower);
  if (news_) return;
  news_ = os::open_address_news();
  if (news_ && !engine_.watch(news_.get(), EPOLLIN, *this)) news_.reset();
  if (news_ || warned_) return;
  warned_ = true;
  env::log(env::LogLevel::warn, "addresses that come later are not listened at: nobody tells of them");
}

void AddressWatch::remove(Follower& follower) {
  followers_.remove(follower);
  if (!followers_.empty()) return;
  engine_.cancel_timer(again_timer_);
  if (!news_) return;
  engine_.unwatch(news_.get(), *this);
  news_.reset();
}

void AddressWatch::look_again(Follower& follower) {
  follower.wants_another_look_ = true;
  engine_.set_timer(again_timer_, os::now_ns() + kAgain);
}

void AddressWatch::ready(std::uint32_t) {
  os::drain_address_news(news_.get());
  for (Follower* one = followers_.front(); one; one = followers_.after(*one)) one->wants_another_look_ = true;
  tell();
}

void AddressWatch::tell() {
  std::optional<std::vector<Address>> now;
  run_safely([&] { now = addresses_of(scope_); });
  if (!now) {  // which does not mean that all have gone
    if (!blind_) env::log(env::LogLevel::warn, "the addresses cannot be looked up for now: {}", std::strerror(errno));
    blind_ = true;
    engine_.set_timer(again_timer_, os::now_ns() + kAgain);
    return;
  }
  blind_ = false;
  for (Follower* one = followers_.front(); one; one = followers_.after(*one)) {
    if (!std::exchange(one->wants_another_look_, false)) continue;
    bool told = false;
    run_safely([&] {
      one->addresses_changed(*now);
      told = true;
    });
    if (!told) look_again(*one);  // for want of memory
  }
}

}  // namespace anydat::nic::soft
