// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/link_end.h"

#include <memory>

#include "env/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/link.h"

namespace anydat::nic::soft::shm {

LinkEnd::LinkEnd(Link& link, Fabric& fabric)
    : link_(link), fabric_(fabric), end_timer_([this] { look_whether_let_go(); }) {}

void LinkEnd::warn(const char* outcome, const char* offence) {
  if (!warned_) env::log(env::LogLevel::warn, "{}: {}", outcome, offence);
  warned_ = true;
}

// What arrived before is delivered first, as far as there are buffers for it.
void LinkEnd::fail(const char* why) {
  if (link_.dead()) return;
  fabric_.adapter().batch().flush();
  const std::shared_ptr<Link> keep = link_.shared_from_this();
  if (why) {
    warn("a local peer is cut off", why);
  } else {
    link_.receiver().drain();
    if (link_.dead()) return;
  }
  link_.receiver().stop();
  begun_ = os::now_ns();
  end_at_ = link_.hazards().end();
  status_ = why ? WorkStatus::bad_response : WorkStatus::transport;
  link_.stop();
  look_whether_let_go();
}

bool LinkEnd::let_go() const {
  return !link_.hazards().uses_any() || os::now_ns() >= end_at_;
}

// The peer may have been stopped in the middle of a stretch. Only the connections of its link wait for it.
void LinkEnd::look_whether_let_go() {
  if (let_go()) return finish();
  fabric_.engine().set_timer(end_timer_, os::now_ns() + Hazards::kBetweenLooks);
}

void LinkEnd::finish() {
  const std::shared_ptr<Link> keep = link_.shared_from_this();
  fabric_.engine().cancel_timer(end_timer_);
  peer_was_gone_ = link_.peer_gone();
  // No RDMA of ours begins any more, and none is under way, when the peer learns that the link is over.
  link_.outbound().header().rdma_gate.fetch_or(kGateLinkOver);
  link_.users().await_posts();
  link_.doorbell().hang_up();
  link_.users().requesters_gone();
  link_.users().link_lost(status_);
  fabric_.forget(link_);
}

}  // namespace anydat::nic::soft::shm
