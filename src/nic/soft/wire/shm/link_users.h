// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "nic/engine.h"
#include "nic/types.h"

namespace anydat::nic::soft::shm {

class Link;
class ShmRequest;
class ShmStream;

// Who uses a link: the streams of its connections, and the connection requests that came by it and have no answer yet.
// A link that no connection uses is cut by and by.
//
// With the engine held. Lives and dies with its link.
class LinkUsers {
 public:
  LinkUsers(Link& link, Engine& engine);
  LinkUsers(const LinkUsers&) = delete;
  LinkUsers& operator=(const LinkUsers&) = delete;

  void add(ShmStream& stream);  // may throw std::bad_alloc
  void remove(ShmStream& stream);
  void add(ShmRequest& request);
  void remove(ShmRequest& request);

  std::size_t connections() const { return streams_.size(); }
  bool serves_scope(ZoneId scope) const;  // one of the connections has it
  // The peer's side of a connection, which has this name there, gives up before it is connected.
  void cancelled(std::uint32_t remote_connection);
  void schedule_turn();  // all streams

  // ---- the link is over
  void stop() { engine_.cancel_timer(unused_timer_); }
  void await_posts();
  void requesters_gone();
  // A stream stays on the link until its queue pair gives it up.
  void link_lost(WorkStatus status);

 private:
  Link& link_;
  Engine& engine_;
  std::vector<ShmStream*> streams_;
  std::unordered_map<std::uint32_t, ShmRequest*> requests_;  // by the peer's name for the connection
  Timer unused_timer_;
};

}  // namespace anydat::nic::soft::shm
