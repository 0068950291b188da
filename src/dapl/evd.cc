// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/evd.h"

#include <algorithm>
#include <new>
#include <numeric>

#include "dapl/cno.h"
#include "dapl/cr.h"
#include "dapl/ep.h"
#include "dapl/error.h"
#include "dapl/ia.h"
#include "dapl/ranges.h"
#include "os/cancel.h"
#include "os/processor.h"

namespace anydat::dapl {

namespace {

constexpr DAT_EVD_FLAGS kAllFlags = static_cast<DAT_EVD_FLAGS>(DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG);

DAT_DTO_COMPLETION_STATUS to_dat(nic::WorkStatus status) {
  // The seam numbers them as DAT does; the assertions keep it so.
  static_assert(static_cast<int>(nic::WorkStatus::flushed) == DAT_DTO_ERR_FLUSHED);
  static_assert(static_cast<int>(nic::WorkStatus::remote_access) == DAT_DTO_ERR_REMOTE_ACCESS);
  static_assert(static_cast<int>(nic::WorkStatus::receiver_not_ready) == DAT_DTO_ERR_RECEIVER_NOT_READY);
  static_assert(static_cast<int>(nic::WorkStatus::bind_failed) == DAT_RMR_OPERATION_FAILED);
  return static_cast<DAT_DTO_COMPLETION_STATUS>(status);
}

}  // namespace

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
DAT_EVD_STATE StreamCounts::configuration() const {
  if (receives[kUnsignalled] + requests[kUnsignalled] > 0) return DAT_EVD_STATE_CONFIG_NOTIFY;
  if (receives[kSolicited] > 0) return DAT_EVD_STATE_CONFIG_SOLICITED;
  return DAT_EVD_STATE_CONFIG_THRESHOLD;
}

Evd::Evd(Ia& ia, DAT_EVD_FLAGS flags)
    : Object(ia, kType),
      flags_(flags),
      mixes_flags_(ia.habits().mixed_completion_flags),
      grows_(ia.habits().growing_evds),
      queue_empty_(ia.habits().codes_without_class ? DAT_QUEUE_EMPTY : error_code(DAT_QUEUE_EMPTY)),
      timed_out_(ia.habits().codes_without_class ? DAT_TIMEOUT_EXPIRED : error_code(DAT_TIMEOUT_EXPIRED)) {}

Evd::~Evd() = default;

bool Evd::init(DAT_COUNT capacity) {
  std::unique_ptr<Entry[]> ring(new (std::nothrow) Entry[static_cast<std::size_t>(capacity)]);
  if (!ring) return false;
  base::Guard guard(lock_);
  ring_ = std::move(ring);
  capacity_ = static_cast<std::uint32_t>(capacity);
  return true;
}

DAT_RETURN Evd::create(Ia& ia, DAT_COUNT min_qlen, Cno* cno, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE* handle) {
  if (!handle) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5, "dat_evd_create: evd_handle is NULL");
  if (flags == 0 || (flags & ~kAllFlags) != 0) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, "dat_evd_create: evd_flags {:#x} are not a union of {:#x}",
                static_cast<unsigned>(flags), static_cast<unsigned>(kAllFlags));
  }
  if (min_qlen <= 0) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_evd_create: evd_min_qlen {} is not positive", min_qlen);
  }
  if (min_qlen > ia.limits().max_evd_qlen) {
    return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD,
                "dat_evd_create: evd_min_qlen {} exceeds max_evd_qlen {}", min_qlen, ia.limits().max_evd_qlen);
  }
  base::Guard guard(ia.engine());
  auto evd = std::make_unique<Evd>(ia, flags);
  if (!evd->init(min_qlen)) {
    return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "dat_evd_create: no memory for {} events", min_qlen);
  }
  Evd* result = ia.adopt(std::move(evd));
  if (!result) return ia.out_of("dat_evd_create", "EVDs", DAT_RESOURCE_TEVD);
  if (cno) result->modify_cno(cno);
  *handle = result->handle();
  return DAT_SUCCESS;
}

DAT_RETURN Evd::query(DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM* param) {
  if (const DAT_RETURN rc = check_query("dat_evd_query", mask, DAT_EVD_FIELD_ALL, param)) return rc;
  base::Guard guard(lock_);
  param->ia_handle = ia().handle();
  param->evd_qlen = static_cast<DAT_COUNT>(capacity_);
  param->evd_state =
      static_cast<DAT_EVD_STATE>((enabled_ ? DAT_EVD_STATE_ENABLED : DAT_EVD_STATE_DISABLED) |
                                 (waitable_ ? DAT_EVD_STATE_WAITABLE : DAT_EVD_STATE_UNWAITABLE) | configuration_);
  param->cno_handle = cno_ ? cno_->handle() : DAT_HANDLE_NULL;
  param->evd_flags = flags_;
  return DAT_SUCCESS;
}

DAT_RETURN Evd::modify_cno(Cno* cno) {
  if (cno) cno->attach();  // before it can be triggered, which needs room
  Cno* old = nullptr;
  {
    base::Guard guard(lock_);
    old = cno_;
    cno_ = cno;
  }
  if (old && old != cno) old->forget(*this);
  if (old) old->detach(nullptr);
  return DAT_SUCCESS;
}

DAT_RETURN Evd::set_enabled(bool enabled) {
  base::Guard guard(lock_);
  enabled_ = enabled;
  return DAT_SUCCESS;
}

DAT_RETURN Evd::set_waitable(bool waitable) {
  base::Guard guard(lock_);
  waitable_ = waitable;
  if (!waitable && waiter_) {
    turned_away_ = true;
    waiter_->notify();
  }
  return DAT_SUCCESS;
}

void Evd::set_streams(const StreamCounts& counts) {
  streams_ = counts;
  base::Guard guard(lock_);
  configuration_ = counts.configuration();
  unsolicited_.store(counts.receives[StreamCounts::kSolicited] == 0 ? Unsolicited::notify
                     : counts.mixed_with_solicited()                ? Unsolicited::ask_stream
                                                                    : Unsolicited::silent);
}

// ---- arrivals

void Evd::write(Entry& entry, const nic::Completion& completion) const {
  entry.shared = completion.shared;
  entry.event.evd_handle = handle();
  if (completion.kind == nic::WorkKind::bind) [[unlikely]] {
    entry.event.event_number = DAT_RMR_BIND_COMPLETION_EVENT;
    DAT_RMR_BIND_COMPLETION_EVENT_DATA& data = entry.event.event_data.rmr_completion_event_data;
    data.rmr_handle = completion.owner;
    data.user_cookie.as_64 = completion.cookie;
    data.status = to_dat(completion.status);
    return;
  }
  entry.event.event_number = DAT_DTO_COMPLETION_EVENT;
  DAT_DTO_COMPLETION_EVENT_DATA& data = entry.event.event_data.dto_completion_event_data;
  data.ep_handle = completion.owner;
  data.user_cookie.as_64 = completion.cookie;
  data.status = to_dat(completion.status);
  data.transfered_length = completion.length;
}

bool Evd::notifies(const nic::Completion& completion) const {
  if (completion.status != nic::WorkStatus::success) return true;  // EVM-34
  if (completion.unsignalled) return false;
  // EVM-31. The configuration changes only while no stream that cares is connected.
  if (completion.kind != nic::WorkKind::recv || completion.solicited) return true;
  const Unsolicited unsolicited = unsolicited_.load(std::memory_order_relaxed);
  if (unsolicited != Unsolicited::ask_stream) return unsolicited == Unsolicited::notify;
  // An endpoint whose handle has died already still is there: its queue pair is what reports.
  const Ep* ep = lookup<Ep>(completion.owner);
  return !ep || !ep->receives_solicited();
}

inline Evd::Entry& Evd::next_slot_locked() {
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  std::uint32_t index = head_ + count;
  if (index >= capacity_) index -= capacity_;
  count_.store(count + 1, std::memory_order_release);
  counters_.events.add();
  if (count + 1 > counters_.most_queued.get()) counters_.most_queued.set(count + 1);
  return ring_[index];
}

std::size_t Evd::push(std::span<const nic::Completion> completions) {
  std::size_t kept = 0;
  bool report = false;
  {
    base::Guard guard(lock_);
    for (const nic::Completion& completion : completions) {
      if (count_.load(std::memory_order_relaxed) == capacity_ && !grow_locked()) [[unlikely]] {
        report = note_overflow_locked(completions.size() - kept);
        break;
      }
      write(next_slot_locked(), completion);
      ++kept;
      if ((waiter_ || cno_) && notifies(completion)) [[unlikely]]
        notify_locked();
    }
  }
  if (report) ia().post_async(*this, DAT_ASYNC_ERROR_EVD_OVERFLOW, DAT_EVD_OVERFLOW_ERROR);
  return kept;
}

bool Evd::push(const DAT_EVENT& event) {
  return append(event, true);
}

bool Evd::push_request(const DAT_EVENT& event) {
  return append(event, false);
}

bool Evd::append(const DAT_EVENT& event, bool overflows) {
  bool report = false;
  {
    base::Guard guard(lock_);
    if (count_.load(std::memory_order_relaxed) < capacity_ || (overflows && grow_locked())) {
      Entry& entry = next_slot_locked();
      entry.event = event;
      entry.shared = nullptr;
      if (waiter_ || cno_) notify_locked();
      return true;
    }
    if (overflows) report = note_overflow_locked(1);
  }
  if (report) ia().post_async(*this, DAT_ASYNC_ERROR_EVD_OVERFLOW, DAT_EVD_OVERFLOW_ERROR);
  return false;
}

// EVM-51. Of a full queue. It doubles, so that this happens a few times only, however much is queued.
bool Evd::grow_locked() {
  const auto most = static_cast<std::uint32_t>(ia().limits().max_evd_qlen);
  if (!grows_ || dead_ || capacity_ >= most) return false;
  const std::uint32_t capacity = capacity_ > most / 2 ? most : capacity_ * 2;
  std::unique_ptr<Entry[]> ring(new (std::nothrow) Entry[capacity]);
  if (!ring) return false;
  move_locked(std::move(ring), capacity);
  return true;
}

void Evd::move_locked(std::unique_ptr<Entry[]> ring, std::uint32_t capacity) {
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) ring[i] = ring_[(head_ + i) % capacity_];
  ring_ = std::move(ring);
  capacity_ = capacity;
  head_ = 0;
}

// True if it is to be reported: once, until an event has been dequeued (EVM-50).
bool Evd::note_overflow_locked(std::size_t lost) {
  if (dead_) return false;
  counters_.overflows.add(lost);
  const bool report = !overflowed_;
  overflowed_ = true;
  return report;
}

void Evd::notify_locked() {
  if (waiter_) {
    if (count_.load(std::memory_order_relaxed) >= threshold_) waiter_->notify();
  } else if (enabled_) {
    cno_->trigger(*this);
  }
}

DAT_RETURN Evd::post_se(const DAT_EVENT* event) {
  if (!event) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_evd_post_se: event is NULL");
  if (event->event_number != DAT_SOFTWARE_EVENT) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_evd_post_se: event number {:#x} is not {:#x}",
                static_cast<unsigned>(event->event_number), static_cast<unsigned>(DAT_SOFTWARE_EVENT));
  }
  if (!carries(DAT_EVD_SOFTWARE_FLAG)) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1,
                "dat_evd_post_se: the EVD's flags {:#x} do not contain DAT_EVD_SOFTWARE_FLAG",
                static_cast<unsigned>(flags_));
  }
  DAT_EVENT copy;
  copy.event_number = DAT_SOFTWARE_EVENT;
  copy.evd_handle = handle();
  copy.event_data.software_event_data.pointer = event->event_data.software_event_data.pointer;
  const bool queued = append(copy, false);
  ia().engine().run_tasks_if_free();
  return queued ? DAT_SUCCESS : error_code(DAT_QUEUE_FULL);
}

// ---- departures

inline void Evd::pop_locked(DAT_EVENT* event, nic::ReceiveQueue*& shared) {
  Entry& entry = ring_[head_];
  *event = entry.event;
  shared = entry.shared;
  if (++head_ == capacity_) head_ = 0;
  count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  overflowed_ = false;
}

DAT_RETURN Evd::busy_locked(const char* call) {
  return fail(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER,
              "{}: another thread is blocked in dat_evd_wait on this EVD", call);
}

DAT_RETURN Evd::dequeue(DAT_EVENT* event) {
  if (!event) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_evd_dequeue: event is NULL");
  if (count_.load(std::memory_order_acquire) == 0) ia().engine().poll();
  nic::ReceiveQueue* shared = nullptr;
  {
    base::Guard guard(lock_);
    if (waiter_) return busy_locked("dat_evd_dequeue");
    if (count_.load(std::memory_order_relaxed) == 0) return queue_empty_;
    pop_locked(event, shared);
    // SRQ-ACC-9. Under the lock: a shared queue that goes away makes the queues forget it first.
    if (shared) shared->reaped();
  }
  return DAT_SUCCESS;
}

DAT_RETURN Evd::wait(DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event, DAT_COUNT* nmore) {
  if (!event) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, "dat_evd_wait: event is NULL");
  if (!nmore) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5, "dat_evd_wait: nmore is NULL");
  for (bool polled = false;; polled = true) {
    {
      base::Guard guard(lock_);
      if (threshold <= 0 || static_cast<std::uint32_t>(threshold) > capacity_) {
        return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
                    "dat_evd_wait: threshold {} is not between 1 and the queue length {}", threshold, capacity_);
      }
      if (!waitable_) {
        return fail(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE, "dat_evd_wait: the EVD is unwaitable");
      }
      if (waiter_) return busy_locked("dat_evd_wait");
      if (threshold > 1 && configuration_ != DAT_EVD_STATE_CONFIG_THRESHOLD) {
        const bool notify = configuration_ == DAT_EVD_STATE_CONFIG_NOTIFY;
        return fail(DAT_INVALID_STATE,
                    notify ? DAT_INVALID_STATE_EVD_CONFIG_NOTIFY : DAT_INVALID_STATE_EVD_CONFIG_SOLICITED,
                    "dat_evd_wait: threshold {} on an EVD whose streams are {}; only 1 is possible", threshold,
                    notify ? "UNSIGNALLED" : "SOLICITED_WAIT");
      }
      const std::uint32_t count = count_.load(std::memory_order_relaxed);
      if (count >= static_cast<std::uint32_t>(threshold)) {
        nic::ReceiveQueue* shared = nullptr;
        pop_locked(event, shared);
        if (shared) shared->reaped();
        *nmore = static_cast<DAT_COUNT>(count - 1);
        return DAT_SUCCESS;
      }
      if (polled && timeout == 0) {
        *nmore = static_cast<DAT_COUNT>(count);
        return timed_out_;
      }
    }
    if (timeout != 0) return block(timeout, threshold, event, nmore);
    ia().engine().poll();
  }
}

DAT_RETURN Evd::block(DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event, DAT_COUNT* nmore) {
  nic::Engine& engine = ia().engine();
  const base::Nanoseconds deadline = timeout == DAT_TIMEOUT_INFINITE
                                         ? base::kForever
                                         : base::now_ns() + static_cast<base::Nanoseconds>(timeout) * 1000;
  const auto wanted = static_cast<std::uint32_t>(threshold);
  const os::CancelOff off;
  nic::Waiter waiter(off.was_on());
  bool registered = false;
  nic::WaitResult result = nic::WaitResult::notified;
  for (;;) {
    {
      base::Guard guard(lock_);
      if (!registered) {
        // What changed since the caller looked.
        if (dead_) return error_code(DAT_ABORT);
        if (waiter_) return busy_locked("dat_evd_wait");
        if (!waitable_) {
          return fail(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE, "dat_evd_wait: the EVD is unwaitable");
        }
        waiter_ = &waiter;
        threshold_ = wanted;
        turned_away_ = false;
        registered = true;
        counters_.waits.add();
      }
      const std::uint32_t count = count_.load(std::memory_order_relaxed);
      const bool finished = dead_ || turned_away_ || count >= wanted || result != nic::WaitResult::notified;
      if (finished) {
        waiter_ = nullptr;  // from here on the EVD may go (EVD-FREE-5), once the lock is released
        if (dead_) return error_code(DAT_ABORT);
        if (turned_away_) {
          return fail(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE, "dat_evd_wait: the EVD became unwaitable");
        }
        if (count >= wanted) {  // TMO-5: also if the time has run out
          nic::ReceiveQueue* shared = nullptr;
          pop_locked(event, shared);
          if (shared) shared->reaped();
          *nmore = static_cast<DAT_COUNT>(count - 1);
          return DAT_SUCCESS;
        }
        *nmore = static_cast<DAT_COUNT>(count);
        return result == nic::WaitResult::interrupted ? error_code(DAT_INTERRUPTED_CALL) : timed_out_;
      }
      waiter.rearm();
    }
    try {
      result = engine.wait(waiter, deadline);
    } catch (...) {  // the thread was cancelled
      base::Guard guard(lock_);
      waiter_ = nullptr;
      // What it was woken for is somebody else's now.
      if (enabled_ && cno_ && count_.load(std::memory_order_relaxed) >= wanted) cno_->trigger(*this);
      throw;
    }
  }
}

// ---- size and end

DAT_RETURN Evd::resize(DAT_COUNT min_qlen) {
  if (min_qlen <= 0 || min_qlen > ia().limits().max_evd_qlen) {
    return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_evd_resize: evd_min_qlen {} is not between 1 and {}",
                min_qlen, ia().limits().max_evd_qlen);
  }
  const auto capacity = static_cast<std::uint32_t>(min_qlen);
  std::unique_ptr<Entry[]> ring(new (std::nothrow) Entry[capacity]);
  if (!ring) {
    return fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "dat_evd_resize: no memory for {} events", min_qlen);
  }
  base::Guard guard(lock_);
  if (waiter_) return busy_locked("dat_evd_resize");
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  if (count > capacity) {
    return fail(DAT_INVALID_STATE, DAT_NO_SUBTYPE, "dat_evd_resize: {} events are queued, more than {}", count,
                min_qlen);
  }
  move_locked(std::move(ring), capacity);
  return DAT_SUCCESS;
}

void Evd::forget(const nic::ReceiveQueue& queue) {
  base::Guard guard(lock_);
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    Entry& entry = ring_[(head_ + i) % capacity_];
    if (entry.shared == &queue) entry.shared = nullptr;
  }
}

DAT_RETURN Evd::free() {
  if (streams_.all() > 0) {
    return fail(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE, "dat_evd_free: {} event streams still feed the EVD",
                streams_.all());
  }
  Ia& ia = this->ia();
  ia.retire(*this);
  return DAT_SUCCESS;
}

void Evd::shut_down() {
  std::unique_ptr<Entry[]> ring;
  std::uint32_t head = 0, count = 0, capacity = 0;
  Cno* cno = nullptr;
  {
    base::Guard guard(lock_);
    dead_ = true;
    if (waiter_) waiter_->notify();
    cno = cno_;
    cno_ = nullptr;
  }
  if (cno) {
    cno->forget(*this);
    cno->detach(this);
  }
  for (;;) {
    {
      base::Guard guard(lock_);
      if (!waiter_) {
        ring = std::move(ring_);
        head = head_;
        capacity = capacity_;
        count = count_.load(std::memory_order_relaxed);
        capacity_ = 0;
        count_.store(0);
        break;
      }
    }
    os::step_aside();
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    Entry& entry = ring[(head + i) % capacity];
    if (entry.shared) entry.shared->reaped();  // SRQ-ACC-11
    if (entry.event.event_number == DAT_CONNECTION_REQUEST_EVENT) {
      // EVD-FREE-11: nobody will ever answer it.
      if (Cr* cr = lookup<Cr>(entry.event.event_data.cr_arrival_event_data.cr_handle)) ia().retire(*cr);
    }
  }
}

}  // namespace anydat::dapl
