// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/link_sender.h"

#include <algorithm>
#include <new>
#include <utility>

#include "nic/budget.h"
#include "nic/soft/wire/shm/link.h"
#include "nic/soft/wire/shm/stream.h"

namespace anydat::nic::soft::shm {

LinkSender::LinkSender(Link& link, Engine& engine, const Segment& outbound, os::LocalSocket socket, MarkTable marks,
                       bool fences)
    : link_(link),
      engine_(engine),
      header_(outbound.header()),
      doorbell_(engine, std::move(socket), header_, std::move(marks), fences) {
  os::Guard guard(lock_);
  ring_.attach(outbound);
}

void LinkSender::send_control(CellKind kind, std::uint32_t connection, std::uint32_t aux,
                              std::span<const std::byte> body) {
  if (link_.dead()) return;
  if (kind == CellKind::close) link_.hazards().shut_gate();
  {
    os::Guard guard(lock_);
    if (!waiting_controls_.empty() || !write_control(kind, connection, aux, body)) {
      try {
        waiting_controls_.push_back({kind, connection, aux, {body.begin(), body.end()}});
      } catch (const std::bad_alloc&) {
        starved_ = true;
      }
      want_room();
    }
  }
  doorbell_.attract();
}

bool LinkSender::write_control(CellKind kind, std::uint32_t connection, std::uint32_t aux,
                               std::span<const std::byte> body) {
  const std::uint32_t cells = cells_for(body.size());
  std::byte* place = ring_.begin(cells);
  if (!place) return false;
  std::copy(body.begin(), body.end(), place);
  ring_.publish(place, kind, 0, cells, static_cast<std::uint32_t>(body.size()), connection, aux);
  ++sent_;
  return true;
}

void LinkSender::block(ShmStream& stream) {
  if (!stream.turn_.place.listed()) blocked_.push_back(stream.turn_);
  want_room();
}

void LinkSender::schedule_turn(ShmStream& stream) {
  {
    os::Guard guard(lock_);
    if (!stream.turn_.place.listed()) blocked_.push_back(stream.turn_);
    link_.something_is_to_go();
  }
  // Who comes back from within a pass has moved something, so the pass is repeated.
  if (!engine_.held() || !link_.in_turn()) engine_.wake_if_armed();
}

void LinkSender::want_room() {
  const bool asked_before = header_.room_wanted.exchange(1) != 0;
  link_.something_is_to_go();
  // The room may have come just before we asked. A pass over the sources sees to that by itself: it is repeated, or the
  // peer knew when the pass began that room is wanted. Else a thread of ours has to look, and is woken should all be
  // asleep.
  if (engine_.held() && link_.in_turn()) {
    link_.note_progress(!asked_before);
  } else {
    engine_.wake_if_armed();
  }
}

bool LinkSender::retry_blocked() {
  const std::size_t most = budget::kAnswersUntaken + budget::kAnswersUntakenOfConnection * link_.users().connections();
  std::uint64_t before = 0;
  std::size_t turns = 0;
  {
    os::Guard guard(lock_);
    before = sent_;
    while (!waiting_controls_.empty()) {
      const Control& next = waiting_controls_.front();
      if (!write_control(next.kind, next.connection, next.aux, next.body)) break;
      waiting_controls_.pop_front();
    }
    if (waiting_controls_.empty()) {
      link_.nothing_is_to_go();
      turns = ring_.sane() ? blocked_.size() : 0;
    } else {
      deaf_ = waiting_controls_.size() > most;
      want_room();
    }
  }
  doorbell_.attract();
  bool sane = true;
  bool progress = false;
  for (std::size_t i = 0; i < turns; ++i) {
    Turn* next = nullptr;
    {
      os::Guard guard(lock_);
      next = blocked_.pop_front();
    }
    if (!next) break;
    progress |= next->stream.take_turn();
  }
  {
    os::Guard guard(lock_);
    sane = ring_.sane();
    progress |= sent_ != before;
  }
  if (turns > 0 && !link_.dead()) link_.hazard_slots().look_for_shared();
  if (!sane) link_.end().fail("it claims to have read what was never sent");
  return progress;
}

void LinkSender::send_what_waits() {
  link_.note_progress(retry_blocked());
  if (starved_) link_.end().fail("no memory is left for messages to it");
  if (deaf_) link_.end().fail("it takes nothing of what it is told");
}

void LinkSender::forget(ShmStream& stream) {
  os::Guard guard(lock_);
  blocked_.remove(stream.turn_);
}

}  // namespace anydat::nic::soft::shm
