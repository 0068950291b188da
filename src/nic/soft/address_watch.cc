// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/address_watch.h"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/log.h"
#include "nic/run_safely.h"
#include "nic/soft/addresses.h"
#include "os/address_news.h"

namespace anydat::nic::soft {

void AddressWatch::add(Follower& follower) {
  followers_.push_back(follower);
  if (news_) return;
  news_ = os::open_address_news();
  if (news_ && !engine_.watch(news_.get(), EPOLLIN, *this)) news_.reset();
  if (news_ || warned_) return;
  warned_ = true;
  base::log(base::LogLevel::warn, "addresses that come later are not listened at: nobody tells of them");
}

void AddressWatch::remove(Follower& follower) {
  followers_.remove(follower);
  if (!followers_.empty() || !news_) return;
  engine_.unwatch(news_.get(), *this);
  news_.reset();
}

void AddressWatch::ready(std::uint32_t) {
  os::drain_address_news(news_.get());
  const std::optional<std::vector<Address>> now = addresses_of(scope_);
  if (!now) {  // which does not mean that all have gone
    base::log(base::LogLevel::warn, "addresses have changed, and cannot be looked up: {}", std::strerror(errno));
    return;
  }
  for (Follower* one = followers_.front(); one; one = followers_.after(*one)) {
    run_safely([&] { one->addresses_changed(*now); });
  }
}

}  // namespace anydat::nic::soft
