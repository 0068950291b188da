// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/disconnection.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/fabric.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

namespace {

// How long a peer that is in the middle of writing is given before the next look at it, at first and at last. It writes
// for microseconds, unless it has been stopped.
constexpr os::Nanoseconds kLetGoDelayMin = 20'000;
constexpr os::Nanoseconds kLetGoDelayMax = 50'000'000;

}  // namespace

Disconnection::Disconnection(ShmStream& stream) : stream_(stream), let_go_timer_([this] { let_go_again(); }) {}

Disconnection::~Disconnection() {
  stream_.fabric().engine().cancel_timer(let_go_timer_);
}

void Disconnection::close(CloseReason reason) {
  if (stream_.over()) return;
  stream_.set_over();
  if (stream_.queue_pair().state() == ConnectionState::connecting) {
    if (stream_.link()) {
      stream_.link()->sender().send_control(CellKind::cancel, 0, stream_.name());
    } else {
      stream_.fabric().cancel_attempt(stream_);
    }
  } else {
    // The peer's memory is not used any more when the peer hears of the end.
    stream_.queue_pair().connection().stop_sending();
    stream_.writes().tell_done();
    const bool in_order = reason == CloseReason::graceful || reason == CloseReason::abrupt;
    const CloseReason told = in_order ? reason : blame_message(reason);
    const std::size_t bodies = refused_.what == Refused::the_oldest ? 0 : 1;
    stream_.link()->sender().send_control(CellKind::close, stream_.remote(), static_cast<std::uint32_t>(told),
                                          std::as_bytes(std::span(&refused_, bodies)));
    gate_ = stream_.link()->hazards().fence_at_gate();
  }
  drop_undelivered();
}

// If a message ends the connection on its own account, the peer is told which. A message that has completed at its
// sender is not named: no request is left there to blame.
CloseReason Disconnection::blame_message(CloseReason reason) {
  if (stream_.receiver().delivers_completed()) return CloseReason::request_failed;
  if (const auto at_fault = stream_.rendezvous_receiver().at_fault()) {
    refused_ = {Refused::a_message, *at_fault};
  } else if (reason == CloseReason::receiver_not_ready && stream_.receiver().has_backlog()) {
    const auto first = stream_.receiver().announced_first();
    if (!first) return CloseReason::request_failed;
    refused_ = {Refused::a_message, *first};
  }
  return reason;
}

void Disconnection::refuse(const CloseBody& what, CloseReason reason) {
  refused_ = what;
  stream_.queue_pair().connection().break_off(WorkStatus::flushed, reason);
}

void Disconnection::violated(const char* what) {
  stream_.fabric().adapter().batch().flush();  // what came before is delivered
  stream_.link()->end().warn("a connection with a local peer is cut", what);
  stream_.queue_pair().connection().break_off(WorkStatus::bad_response, CloseReason::abrupt);
}

void Disconnection::drop_undelivered() {
  stream_.receiver().drop();
  stream_.writes().drop();
}

bool Disconnection::let_go() {
  stream_.set_over();
  drop_undelivered();
  stream_.rendezvous_sender().drop();
  stream_.responder().drop();
  if (stream_.rendezvous_receiver().take_back() && past_gate()) return true;
  // A stopped peer may stay stopped for long, and others must not wait for it with us.
  out_of_patience();  // it begins now at the latest
  let_go_delay_ = std::clamp(2 * let_go_delay_, kLetGoDelayMin, kLetGoDelayMax);
  stream_.fabric().engine().set_timer(let_go_timer_, os::now_ns() + let_go_delay_);
  return false;
}

bool Disconnection::out_of_patience() {
  const os::Nanoseconds now = os::now_ns();
  if (let_go_patience_ == 0)
    let_go_patience_ = (stream_.link()->dead() ? stream_.link()->end().begun() : now) + Hazards::kPatience;
  return now >= let_go_patience_;
}

bool Disconnection::past_gate() {
  if (!gate_ || stream_.link()->hazards().past_gate(*gate_, stream_)) return true;
  return stream_.link()->dead() && out_of_patience();
}

// A peer that is stopped in the middle of RDMA, or of a message that it pushes, has half a second to let go, as where a
// window is taken back.
void Disconnection::let_go_again() {
  // What else the end waited for may have come meanwhile, and the end been told.
  if (stream_.queue_pair().state() != ConnectionState::ending) return;
  if (!let_go()) {
    if (out_of_patience()) stream_.link()->hazards().never_lets_go();
    return;
  }
  stream_.fabric().engine().cancel_timer(let_go_timer_);
  stream_.queue_pair().connection().let_go_finished();
}

void Disconnection::arrived(CloseReason reason, const CloseBody& refused) {
  if (stream_.over()) return;
  const WorkStatus status = Connection::status_of(reason);
  switch (refused.what) {
    case Refused::the_oldest:
      break;
    case Refused::a_write:
      if (stream_.queue_pair().outcomes().request_refused(is_write, 0, status)) reason = CloseReason::request_failed;
      break;
    case Refused::a_read:
      if (stream_.queue_pair().outcomes().request_refused(is_read, refused.which, status))
        reason = CloseReason::request_failed;
      break;
    case Refused::a_message:
      // A message that has completed leaves no request to blame.
      if (const auto number = stream_.rendezvous_sender().number_of(refused.which))
        stream_.queue_pair().outcomes().request_refused(*number, status);
      reason = CloseReason::request_failed;
      break;
  }
  // What has not come about yet has nothing left to deliver, and no answer behind this one means anything.
  if (reason != CloseReason::graceful || !stands(stream_.queue_pair().state())) {
    stream_.set_over();
    drop_undelivered();
  } else {
    stream_.writes().drop();  // it has given up the Write that it left undone, and with that what came behind
    stream_.queue_pair().sends().with_posts_ended([this] { stream_.rdma().end_with_peer(); });
  }
  stream_.queue_pair().connection().peer_closed(reason);
}

bool Disconnection::arrived(const CellView& view) {
  if (view.aux > static_cast<std::uint32_t>(CloseReason::request_failed)) return false;
  CloseBody body{};
  if (view.length != 0) {
    if (view.length != sizeof body || view.body_room < sizeof body) return false;
    std::memcpy(&body, view.body, sizeof body);
    if (body.what > Refused::a_message) return false;
  }
  arrived(static_cast<CloseReason>(view.aux), body);
  return true;
}

void Disconnection::link_lost(WorkStatus why) {
  if (stream_.over() && stream_.queue_pair().state() == ConnectionState::ending &&
      (stream_.rendezvous_receiver().any() || gate_)) {
    let_go_again();
    return;
  }
  // A peer that closed in order may be gone before we have had buffers for all it sent: that is still to be delivered.
  if (stream_.queue_pair().connection().orderly_end().peer_closing() && stream_.holds_messages() &&
      stream_.rendezvous_receiver().all_have_come())
    return;
  stream_.set_over();
  drop_undelivered();
  stream_.queue_pair().connection().peer_lost(why);
}

}  // namespace anydat::nic::soft::shm
