// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nic/engine.h"
#include "nic/types.h"
#include "os/clock.h"

namespace anydat::nic::soft::shm {

class Fabric;
class Link;

// How a link ends. It is dead at once: nothing is sent by it or taken out of its ring any more. Its connections end,
// and its socket is closed, when the peer has let go of this side's memory (Hazards), or has had its time for that.
//
// With the engine held. Lives and dies with its link.
class LinkEnd {
 public:
  LinkEnd(Link& link, Fabric& fabric);
  LinkEnd(const LinkEnd&) = delete;
  LinkEnd& operator=(const LinkEnd&) = delete;

  void cut() { fail(nullptr); }
  void fail(const char* why);  // what the peer did wrong; null: it is over
  // Says what the peer did wrong, the first time: the log is not its to fill.
  void warn(const char* outcome, const char* offence);

  // ---- of a link that is dead
  // Until then the peer may use regions of ours.
  os::Nanoseconds at() const { return end_at_; }
  os::Nanoseconds begun() const { return begun_; }
  // Asked when the socket was given up: since then Link::peer_gone() cannot tell.
  bool peer_was_gone() const { return peer_was_gone_; }
  // Whether the peer uses no memory of ours any more, or has had its time. Then finish() is due, which a timer sees to
  // as well.
  bool let_go() const;
  void finish();

 private:
  void look_whether_let_go();

  Link& link_;
  Fabric& fabric_;
  Timer end_timer_;
  os::Nanoseconds begun_ = 0;
  os::Nanoseconds end_at_ = 0;
  bool peer_was_gone_ = false;
  WorkStatus status_ = WorkStatus::transport;  // of what ends with it
  bool warned_ = false;
};

}  // namespace anydat::nic::soft::shm
