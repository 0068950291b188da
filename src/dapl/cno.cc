// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/cno.h"

#include <algorithm>

#include "dapl/evd.h"
#include "dapl/ia.h"
#include "os/cancel.h"
#include "os/processor.h"

namespace anydat::dapl {

namespace {

constexpr Agent kNoAgent{};

// CNO-CREATE-3: an agent without a function is none.
Agent normal(const Agent& agent) {
  return agent.function ? agent : kNoAgent;
}

// The thread that calls agents is there before one is set.
bool ready_for(Ia& ia, const Agent& agent) {
  return !agent.function || ia.agents()->start();
}

}  // namespace

Cno::Cno(Ia& ia, const Agent& agent, std::unique_ptr<os::Readable> readable)
    : Object(ia, kType),
      number_(ia.next_cno()),
      keeps_triggers_(!readable && ia.habits().each_event_triggers),
      readable_(std::move(readable)),
      agent_(normal(agent)),
      next_call_(1) {}

Cno::~Cno() = default;

Error Cno::create(Ia& ia, const Agent& agent, Handle* handle) {
  if (!handle) return fail(Argument::cno_handle, "dat_cno_create: cno_handle is NULL");
  if (!ready_for(ia, agent)) return ia.out_of("dat_cno_create", "threads", Detail::memory);
  os::Guard guard(ia.engine());
  Cno* cno = ia.adopt(std::make_unique<Cno>(ia, agent));
  if (!cno) return ia.out_of("dat_cno_create", "CNOs", Detail::memory);
  *handle = cno->handle();
  return kSuccess;
}

Error Cno::create_with_descriptor(Ia& ia, int& descriptor, Handle* handle) {
  const char* call = "dat_cno_fd_create";
  std::unique_ptr<os::Readable> readable = os::Readable::make();
  if (!readable) return ia.out_of(call, "descriptors", Detail::device);
  const int fd = readable->fd();
  os::Guard guard(ia.engine());
  Cno* cno = ia.adopt(std::make_unique<Cno>(ia, kNoAgent, std::move(readable)));
  if (!cno) return ia.out_of(call, "CNOs", Detail::memory);
  descriptor = fd;
  *handle = cno->handle();
  return kSuccess;
}

Error Cno::modify_agent(const Agent& agent) {
  if (query().fd >= 0) {  // D2-CNO-9
    return fail(Code::invalid_state, Detail::cno_in_use, "dat_cno_modify_agent: the CNO has a descriptor");
  }
  if (!ready_for(ia(), agent)) return ia().out_of("dat_cno_modify_agent", "threads", Detail::memory);
  std::list<AgentThread::Call> call(1);
  os::Guard guard(lock_);
  agent_ = normal(agent);
  next_call_.swap(call);
  return kSuccess;
}

CnoParameters Cno::query() {
  os::Guard guard(lock_);
  return {ia().handle(), agent_, readable_ ? readable_->fd() : -1};
}

void Cno::trigger(Evd& evd) {
  os::Guard guard(lock_);
  if (keeps_triggers_ && sleepers_.empty()) {
    keep_locked(evd);
  } else {
    wake_one_locked(evd.handle());
  }
  take_agent_locked(evd.handle());
}

void Cno::wake_one_locked(Handle evd) {
  if (sleepers_.empty()) return latch_locked(evd);
  Sleeper* sleeper = sleepers_.front();
  sleepers_.pop_front();
  sleeper->evd = evd;
  sleeper->released = true;
  sleeper->waiter.notify();
}

void Cno::latch_locked(Handle evd) {
  if (!latched_ && readable_) readable_->set();
  latched_ = true;
  latched_evd_ = evd;
}

void Cno::keep_locked(Evd& evd) {
  const auto found = std::ranges::find(kept_, &evd, &Triggers::evd);
  Triggers latest{&evd, 1};
  if (found != kept_.end()) {
    latest.count += found->count;
    kept_.erase(found);
  }
  kept_.push_back(latest);
}

// A kept trigger whose event has been taken already tells of nothing.
bool Cno::take_latched_locked(Handle* evd) {
  while (!kept_.empty()) {
    Triggers& latest = kept_.back();
    const std::uint32_t count = std::min(latest.count, latest.evd->queued());
    if (count > 0) *evd = latest.evd->handle();
    if (count > 1) {
      latest.count = count - 1;
    } else {
      kept_.pop_back();
    }
    if (count > 0) return true;
  }
  if (!latched_) return false;
  latched_ = false;
  if (readable_) readable_->clear();
  *evd = latched_evd_;
  return true;
}

Handle Cno::take_trigger() {
  Handle evd = nullptr;
  os::Guard guard(lock_);
  return take_latched_locked(&evd) ? evd : nullptr;
}

// CNO-AGT-2: it leaves the CNO before it is called.
void Cno::take_agent_locked(Handle evd) {
  if (!agent_.function) return;
  next_call_.front() = {agent_, evd, number_};
  agent_ = kNoAgent;
  ia().agents()->submit(next_call_);
}

void Cno::make_room() {
  if (!keeps_triggers_ || room_ > evds_) return;
  const std::uint32_t room = (evds_ + 1) * 2;
  std::vector<Triggers> kept;
  kept.reserve(room);
  room_ = room;
  os::Guard guard(lock_);
  kept.assign(kept_.begin(), kept_.end());
  kept_.swap(kept);
}

void Cno::attach() {
  make_room();
  ++evds_;
}

void Cno::forget(const Evd& evd) {
  os::Guard guard(lock_);
  std::erase_if(kept_, [&](const Triggers& triggers) { return triggers.evd == &evd; });
}

void Cno::forget_handle(Handle evd) {
  os::Guard guard(lock_);
  if (latched_ && latched_evd_ == evd) latched_evd_ = nullptr;
}

void Cno::detach(bool for_good) {
  --evds_;
  if (for_good && evds_ == 0) release_all(true);  // CNO-WAIT-8
}

void Cno::release_all(bool call_agent) {
  {
    os::Guard guard(lock_);
    for (Sleeper* sleeper : sleepers_) {
      sleeper->released = true;
      sleeper->waiter.notify();
    }
    sleepers_.clear();
    if (readable_) latch_locked(nullptr);  // D2-CNO-13
    if (call_agent) take_agent_locked(nullptr);
  }
}

Error Cno::queue_empty() const {
  return Error::everyday(Code::queue_empty, !ia().habits().codes_without_class);
}

Error Cno::wait(Microseconds timeout, Handle* evd) {
  if (!evd) return fail(Argument::evd_handle, "dat_cno_wait: evd_handle is NULL");
  nic::Engine& engine = ia().engine();
  const os::Nanoseconds deadline =
      timeout == kInfinite ? os::kForever : os::now_ns() + static_cast<os::Nanoseconds>(timeout) * 1000;
  if (timeout == 0) engine.poll();
  const os::CancelOff off;
  Sleeper sleeper(off.was_on());
  {
    os::Guard guard(lock_);
    if (take_latched_locked(evd)) return kSuccess;
    if (dead_) {  // as for those that its end has met waiting (CNO-WAIT-8)
      *evd = nullptr;
      return kSuccess;
    }
    if (timeout == 0) {
      *evd = nullptr;
      return queue_empty();
    }
    sleepers_.push_back(&sleeper);
    ++inside_;
  }
  nic::WaitResult result = nic::WaitResult::notified;
  try {
    result = engine.waiting().wait(sleeper.waiter, deadline);
  } catch (...) {  // the thread was cancelled
    os::Guard guard(lock_);
    --inside_;
    sleepers_.remove(&sleeper);
    if (sleeper.released && sleeper.evd != nullptr) wake_one_locked(sleeper.evd);  // a trigger is not lost
    throw;
  }
  os::Guard guard(lock_);
  --inside_;
  if (sleeper.released) {  // CNO-WAIT-14: also if the time ran out at that moment
    *evd = sleeper.evd;
    return kSuccess;
  }
  sleepers_.remove(&sleeper);
  *evd = nullptr;
  return result == nic::WaitResult::interrupted ? Error(Code::interrupted_call) : queue_empty();
}

Error Cno::free() {
  {
    os::Guard guard(lock_);
    if (evds_ > 0 || inside_ > 0) {
      return fail(Code::invalid_state, Detail::cno_in_use, "dat_cno_free: {} EVDs are associated and {} threads wait",
                  evds_, inside_);
    }
    agent_ = kNoAgent;  // CNO-FREE-3
  }
  Ia& ia = this->ia();
  ia.retire(*this);
  return kSuccess;
}

void Cno::shut_down() {
  {
    os::Guard guard(lock_);
    dead_ = true;
  }
  release_all(true);
  for (;;) {
    {
      os::Guard guard(lock_);
      if (inside_ == 0) break;
    }
    os::step_aside();
  }
  // The object rests for a while, and its descriptor does not (D2-CNO-5).
  std::unique_ptr<os::Readable> closed;
  os::Guard guard(lock_);
  closed.swap(readable_);
}

}  // namespace anydat::dapl
