// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/evd.h"

#include <algorithm>
#include <new>
#include <numeric>

#include "dapl/cno.h"
#include "dapl/cr.h"
#include "dapl/ep.h"
#include "dapl/ia.h"
#include "dapl/instances.h"
#include "os/processor.h"

namespace anydat::dapl {

std::uint32_t StreamCounts::all() const {
  return std::accumulate(receives.begin(), receives.end(), 0u) + std::accumulate(requests.begin(), requests.end(), 0u) +
         others;
}

bool StreamCounts::permitted(bool software) const {
  const std::uint32_t thresholds = receives[kThreshold] + requests[kThreshold];
  const std::uint32_t unsignalled = receives[kUnsignalled] + requests[kUnsignalled];
  const std::uint32_t solicited = receives[kSolicited];
  const std::uint32_t foreign = others + (software ? 1 : 0);
  if (solicited > 0) return thresholds + unsignalled + requests[kSolicited] + foreign == 0;
  if (unsignalled > 0) return thresholds + foreign == 0;
  return true;
}

bool StreamCounts::mixed_with_solicited() const {
  return receives[kSolicited] > 0 &&
         receives[kSolicited] < receives[kThreshold] + receives[kUnsignalled] + receives[kSolicited];
}

// UNSIGNALLED streams share an EVD with SOLICITED ones only by habit.
EvdState StreamCounts::configuration() const {
  if (receives[kUnsignalled] + requests[kUnsignalled] > 0) return evd_state::kConfigNotify;
  if (receives[kSolicited] > 0) return evd_state::kConfigSolicited;
  return evd_state::kConfigThreshold;
}

Evd::Evd(Ia& ia, EvdFlags flags)
    : Object(ia, kType),
      engine_(ia.engine()),
      flags_(flags),
      mixes_flags_(ia.habits().mixed_completion_flags),
      grows_(ia.habits().growing_evds),
      queue_empty_(Error::everyday(Code::queue_empty, !ia.habits().codes_without_class)),
      timed_out_(Error::everyday(Code::timeout_expired, !ia.habits().codes_without_class)) {}

Evd::~Evd() = default;

bool Evd::init(Count capacity) {
  os::Guard guard(lock_);
  return ring_.reserve(static_cast<std::uint32_t>(capacity));
}

Error Evd::create(Ia& ia, Count min_qlen, Cno* cno, EvdFlags flags, Handle* handle) {
  if (!handle) return fail(Argument::evd_handle, "dat_evd_create: evd_handle is NULL");
  const EvdFlags all = evd_flag::kAll | (ia.description().abilities() != 0 ? evd_flag::kExtension : 0);
  if (flags == 0 || (flags & ~all) != 0) {
    return fail(Argument::evd_flags, "dat_evd_create: evd_flags {:#x} are not a union of {:#x}", flags, all);
  }
  if (min_qlen <= 0) {
    return fail(Argument::evd_min_qlen, "dat_evd_create: evd_min_qlen {} is not positive", min_qlen);
  }
  if (min_qlen > ia.limits().max_evd_qlen) {
    return fail(Code::insufficient_resources, Detail::evd, "dat_evd_create: evd_min_qlen {} exceeds max_evd_qlen {}",
                min_qlen, ia.limits().max_evd_qlen);
  }
  os::Guard guard(ia.engine());
  if (cno && !cno->alive()) return freed_meanwhile("dat_evd_create", "CNO", Detail::handle_cno);
  auto evd = std::make_unique<Evd>(ia, flags);
  if (!evd->init(min_qlen)) {
    return fail(Code::insufficient_resources, Detail::memory, "dat_evd_create: no memory for {} events", min_qlen);
  }
  if (cno) cno->make_room();  // or it throws while there is nothing to take back
  Evd* result = ia.adopt(std::move(evd));
  if (!result) return ia.out_of("dat_evd_create", "EVDs", Detail::evd);
  if (cno) result->modify_cno(cno);
  *handle = result->handle();
  return kSuccess;
}

EvdParameters Evd::query() {
  os::Guard guard(lock_);
  return {ia().handle(), static_cast<Count>(ring_.capacity()),
          (enabled_ ? evd_state::kEnabled : evd_state::kDisabled) |
              (waitable_ ? evd_state::kWaitable : evd_state::kUnwaitable) | configuration_,
          cno_ ? cno_->handle() : nullptr, flags_};
}

void Evd::modify_cno(Cno* cno) {
  if (cno) cno->attach();  // before it can be triggered, which needs room
  Cno* old = nullptr;
  {
    os::Guard guard(lock_);
    old = cno_;
    cno_ = cno;
    note_watched_locked();
  }
  if (old && old != cno) old->forget(*this);
  if (old) old->detach(false);
}

void Evd::set_enabled(bool enabled) {
  os::Guard guard(lock_);
  enabled_ = enabled;
}

void Evd::set_waitable(bool waitable) {
  os::Guard guard(lock_);
  waitable_ = waitable;
  if (!waitable && waiter_) {
    turned_away_ = true;
    waiter_->notify();
  }
}

StreamCounts Evd::streams() const {
  os::Guard guard(lock_);
  return streams_;
}

void Evd::note_streams_locked() {
  configuration_ = streams_.configuration();
  unsolicited_.store(streams_.receives[StreamCounts::kSolicited] == 0 ? Unsolicited::notify
                     : streams_.mixed_with_solicited()                ? Unsolicited::ask_stream
                                                                      : Unsolicited::silent);
}

// ---- arrivals

namespace {

nic::QueuedEvent to_event(const nic::Completion& completion) {
  nic::QueuedEvent queued;
  Event& event = queued.event;
  event.kind = completion.kind == nic::WorkKind::bind ? EventKind::bind_completion : EventKind::dto_completion;
  event.status = completion.status;
  event.operation = completion.kind;
  event.notice = 0;
  event.detail = completion.value;
  event.object = completion.owner;
  event.cookie = completion.cookie;
  event.length = completion.length;
  queued.reaped = completion.reaped;
  return queued;
}

}  // namespace

bool Evd::notifies(const nic::Completion& completion) const {
  if (completion.status != nic::WorkStatus::success) return true;  // EVM-34
  if (completion.unsignalled) return false;
  // EVM-31. The configuration changes only while no stream that cares is connected.
  if (!nic::is_receive(completion.kind) || completion.solicited) return true;
  const Unsolicited unsolicited = unsolicited_.load(std::memory_order_relaxed);
  if (unsolicited != Unsolicited::ask_stream) return unsolicited == Unsolicited::notify;
  // An endpoint whose handle has died already still is there: its queue pair is what reports.
  const Ep* ep = lookup<Ep>(completion.owner);
  return !ep || !ep->posts().receives_solicited();
}

std::size_t Evd::push(std::span<const nic::Completion> completions) {
  std::size_t kept = 0;
  bool report = false;
  {
    os::Guard guard(lock_);
    for (const nic::Completion& completion : completions) {
      if (ring_.full() && !grow_locked()) [[unlikely]] {
        report = note_overflow_locked(completions.size() - kept);
        break;
      }
      ring_.append(to_event(completion));
      ++kept;
      if ((waiter_ || cno_) && notifies(completion)) [[unlikely]]
        notify_locked();
    }
  }
  if (report) ia().post_async(*this, EventKind::evd_overflow, async_reason::kEvdOverflow);
  return kept;
}

bool Evd::push(const Event& event) {
  return append(event, true);
}

bool Evd::push_request(const Event& event) {
  return append(event, false);
}

namespace {

bool is_of_connection(EventKind kind) {
  switch (kind) {
    case EventKind::established:
    case EventKind::peer_rejected:
    case EventKind::non_peer_rejected:
    case EventKind::accept_completion_error:
    case EventKind::disconnected:
    case EventKind::broken:
    case EventKind::timed_out:
    case EventKind::unreachable:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool Evd::append(const Event& event, bool overflows) {
  bool report = false;
  {
    os::Guard guard(lock_);
    if (!ring_.full() || (overflows && grow_locked())) {
      ring_.append({event, nullptr});
      counting_.others_queued.publish(counting_.others_queued.get() + 1);
      if (is_of_connection(event.kind)) counting_.connection_queued.add();
      if (waiter_ || cno_) notify_locked();
      return true;
    }
    if (overflows) report = note_overflow_locked(1);
  }
  if (report) ia().post_async(*this, EventKind::evd_overflow, async_reason::kEvdOverflow);
  return false;
}

// EVM-51. Of a full queue. It doubles, so that this happens a few times only, however much is queued.
bool Evd::grow_locked() {
  const auto most = static_cast<std::uint32_t>(ia().limits().max_evd_qlen);
  const std::uint32_t capacity = ring_.capacity();
  if (!grows_ || dead_ || capacity >= most) return false;
  return ring_.reserve(capacity > most / 2 ? most : capacity * 2);
}

// True if it is to be reported: once, until an event has been dequeued (EVM-50).
bool Evd::note_overflow_locked(std::size_t lost) {
  if (dead_) return false;
  counting_.overflows.add(lost);
  const bool report = !overflowed_;
  overflowed_ = true;
  return report;
}

void Evd::notify_locked() {
  if (waiter_) {
    if (ring_.queued() >= threshold_) waiter_->notify();
  } else if (enabled_) {
    cno_->trigger(*this);
  }
}

// A part is read before the whole that it is taken from, and is written after it: so it is never the larger of the two.
Evd::Counters Evd::counters() const {
  const std::uint64_t taken_by_waits = counting_.taken_by_waits.seen();
  const std::uint64_t others = counting_.others_queued.seen();
  return {ring_.ever_queued(),
          counting_.overflows.get(),
          counting_.waits.get(),
          ring_.most_queued(),
          counting_.wait_calls.get(),
          counting_.wake_ups.get(),
          ring_.ever_dropped() - taken_by_waits,
          counting_.not_found.get(),
          counting_.poll_found.get(),
          counting_.connection_queued.get(),
          ring_.ever_queued() - others};
}

Error Evd::post_software(const void* pointer) {
  if (!carries(evd_flag::kSoftware)) {
    return fail(Argument::evd_handle, "dat_evd_post_se: the EVD's flags {:#x} do not contain DAT_EVD_SOFTWARE_FLAG",
                flags_);
  }
  Event event{};
  event.kind = EventKind::software;
  event.pointer = pointer;
  const bool queued = append(event, false);
  engine_.run_tasks_if_free();
  return queued ? kSuccess : Error(Code::queue_full);
}

Error evd_is_waited_on(const char* call) {
  return fail(Code::invalid_state, Detail::evd_waiter, "{}: another thread is blocked in dat_evd_wait on this EVD",
              call);
}

void Evd::poll_borrowers() {
  Instances::get().poll_borrowers(*this);
}

// ---- size and end

Error Evd::resize(Count min_qlen) {
  if (min_qlen <= 0 || min_qlen > ia().limits().max_evd_qlen) {
    return fail(Argument::evd_min_qlen, "dat_evd_resize: evd_min_qlen {} is not between 1 and {}", min_qlen,
                ia().limits().max_evd_qlen);
  }
  const auto capacity = static_cast<std::uint32_t>(min_qlen);
  std::unique_ptr<nic::QueuedEvent[]> ring(new (std::nothrow) nic::QueuedEvent[nic::EventRing::slots_for(capacity)]);
  if (!ring) {
    return fail(Code::insufficient_resources, Detail::memory, "dat_evd_resize: no memory for {} events", min_qlen);
  }
  os::Guard guard(lock_);
  if (waiter_) return evd_is_waited_on("dat_evd_resize");
  const std::uint32_t count = ring_.queued();
  if (count > capacity) {
    return fail(Code::invalid_state, Detail::none, "dat_evd_resize: {} events are queued, more than {}", count,
                min_qlen);
  }
  ring_.take_over(std::move(ring), capacity);
  return kSuccess;
}

// What is queued counts as reaped: the EVD is about to go, and the SRQs may go before it.
void Evd::count_as_reaped() {
  os::Guard guard(lock_);
  ring_.for_each([](nic::QueuedEvent& queued) {
    if (queued.reaped) std::exchange(queued.reaped, nullptr)->add();
  });
}

void Evd::forget(const nic::ReceiveQueue& queue) {
  os::Guard guard(lock_);
  ring_.for_each([&queue](nic::QueuedEvent& queued) {
    if (queued.reaped && &queued.reaped->queue == &queue) queued.reaped = nullptr;
  });
}

Error Evd::free() {
  if (const std::uint32_t streams = this->streams().all(); streams > 0) {
    return fail(Code::invalid_state, Detail::evd_in_use, "dat_evd_free: {} event streams still feed the EVD", streams);
  }
  Instances::get().forget(*this);
  Ia& ia = this->ia();
  ia.retire(*this);
  return kSuccess;
}

void Evd::shut_down() {
  nic::EventRing::Rest left;
  Cno* cno = nullptr;
  {
    os::Guard guard(lock_);
    dead_ = true;
    if (waiter_) waiter_->notify();
    cno = cno_;
    cno_ = nullptr;
    note_watched_locked();
  }
  ia().forget_evd(handle());
  if (cno) {
    cno->forget(*this);
    cno->detach(true);
  }
  for (;;) {
    {
      os::Guard guard(lock_);
      if (!waiter_ && about_to_wait_ == 0) {
        left = ring_.close();
        break;
      }
    }
    os::step_aside();
  }
  left.for_each([this](const nic::QueuedEvent& queued) {
    if (queued.reaped) queued.reaped->add();  // SRQ-ACC-11
    if (queued.event.kind == EventKind::connection_request) {
      // EVD-FREE-11: no program will ever answer it.
      if (Cr* cr = lookup<Cr>(queued.event.object)) ia().retire(*cr);
    }
  });
}

}  // namespace anydat::dapl
