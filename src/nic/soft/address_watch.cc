// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/address_watch.h"

#include <sys/epoll.h>

#include "base/log.h"
#include "os/address_news.h"

namespace anydat::nic::soft {

void AddressWatch::add(Follower& follower) {
  followers_.push_back(follower);
  if (news_) return;
  news_ = os::open_address_news();
  if (news_ && !engine_.watch(news_.get(), EPOLLIN, *this)) news_.reset();
  if (!news_) base::log(base::LogLevel::warn, "addresses that come later are not listened at: nobody tells of them");
}

void AddressWatch::remove(Follower& follower) {
  followers_.remove(follower);
  if (!followers_.empty() || !news_) return;
  engine_.unwatch(news_.get(), *this);
  news_.reset();
}

void AddressWatch::ready(std::uint32_t) {
  os::drain_address_news(news_.get());
  // No follower comes or goes because of it.
  for (Follower* one = followers_.front(); one; one = followers_.after(*one)) one->addresses_changed();
}

}  // namespace anydat::nic::soft
