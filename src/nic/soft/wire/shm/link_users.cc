// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/link_users.h"

#include <algorithm>
#include <utility>

#include "nic/soft/wire/shm/connection_request.h"
#include "nic/soft/wire/shm/link.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

namespace {

constexpr os::Nanoseconds kUnusedLife = os::kNsPerSecond;

}  // namespace

LinkUsers::LinkUsers(Link& link, Engine& engine)
    : link_(link), engine_(engine), unused_timer_([this] {
        // Only the side that made the link opens connections on it, so it alone can know that none is coming.
        if (streams_.empty()) link_.end().cut();
      }) {}

void LinkUsers::add(ShmStream& stream) {
  streams_.push_back(&stream);
  stream.link_index_ = streams_.size() - 1;
  engine_.cancel_timer(unused_timer_);
}

void LinkUsers::remove(ShmStream& stream) {
  streams_.back()->link_index_ = stream.link_index_;
  std::swap(streams_[stream.link_index_], streams_.back());
  streams_.pop_back();
  if (streams_.empty() && link_.initiated() && !link_.dead()) {
    engine_.set_timer(unused_timer_, os::now_ns() + kUnusedLife);
  }
}

void LinkUsers::add(ShmRequest& request) {
  requests_[request.remote_connection()] = &request;
}

void LinkUsers::remove(ShmRequest& request) {
  const auto found = requests_.find(request.remote_connection());
  if (found != requests_.end() && found->second == &request) requests_.erase(found);
}

bool LinkUsers::serves_scope(ZoneId scope) const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [&](ShmStream* stream) { return stream->queue_pair().scope() == scope; });
}

void LinkUsers::cancelled(std::uint32_t remote_connection) {
  if (const auto found = requests_.find(remote_connection); found != requests_.end()) {
    found->second->requester_gone();
    requests_.erase(found);
    return;
  }
  const auto accepted = std::find_if(streams_.begin(), streams_.end(), [&](ShmStream* stream) {
    return stream->negotiation().awaits_ready_from(remote_connection);
  });
  if (accepted != streams_.end()) (*accepted)->disconnection().arrived(CloseReason::abrupt);
}

void LinkUsers::schedule_turn() {
  for (ShmStream* const stream : streams_) link_.sender().schedule_turn(*stream);
}

void LinkUsers::await_posts() {
  for (ShmStream* const stream : streams_) stream->queue_pair().connection().await_posts();
}

void LinkUsers::requesters_gone() {
  for (auto& [connection, request] : requests_) request->requester_gone();
  requests_.clear();
}

void LinkUsers::link_lost(WorkStatus status) {
  for (std::size_t i = 0; i < streams_.size(); ++i) streams_[i]->disconnection().link_lost(status);
}

}  // namespace anydat::nic::soft::shm
