// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/cno.h"

#include <algorithm>

#include "dapl/error.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/ranges.h"
#include "os/cancel.h"
#include "os/processor.h"

namespace anydat::dapl {

namespace {

constexpr DAT_OS_WAIT_PROXY_AGENT kNoAgent{nullptr, nullptr};

// CNO-CREATE-3: an agent without a function is none.
DAT_OS_WAIT_PROXY_AGENT normal(const DAT_OS_WAIT_PROXY_AGENT& agent) {
  return agent.proxy_agent_func ? agent : kNoAgent;
}

// The thread that calls agents is there before one is set.
bool ready_for(Ia& ia, const DAT_OS_WAIT_PROXY_AGENT& agent) {
  return !agent.proxy_agent_func || ia.agents()->start();
}

}  // namespace

Cno::Cno(Ia& ia, const DAT_OS_WAIT_PROXY_AGENT& agent)
    : Object(ia, kType),
      number_(ia.next_cno()),
      keeps_triggers_(ia.habits().each_event_triggers),
      agent_(normal(agent)),
      next_call_(1) {}

Cno::~Cno() = default;

DAT_RETURN Cno::create(Ia& ia, const DAT_OS_WAIT_PROXY_AGENT& agent, DAT_CNO_HANDLE* handle) {
  if (!handle) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "dat_cno_create: cno_handle is NULL");
  if (!ready_for(ia, agent)) return ia.out_of("dat_cno_create", "threads", DAT_RESOURCE_MEMORY);
  base::Guard guard(ia.engine());
  Cno* cno = ia.adopt(std::make_unique<Cno>(ia, agent));
  if (!cno) return ia.out_of("dat_cno_create", "CNOs", DAT_RESOURCE_MEMORY);
  *handle = cno->handle();
  return DAT_SUCCESS;
}

DAT_RETURN Cno::modify_agent(const DAT_OS_WAIT_PROXY_AGENT& agent) {
  if (!ready_for(ia(), agent)) return ia().out_of("dat_cno_modify_agent", "threads", DAT_RESOURCE_MEMORY);
  std::list<AgentThread::Call> call(1);
  base::Guard guard(lock_);
  agent_ = normal(agent);
  next_call_.swap(call);
  return DAT_SUCCESS;
}

DAT_RETURN Cno::query(DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param) {
  if (const DAT_RETURN rc = check_query("dat_cno_query", mask, DAT_CNO_FIELD_ALL, param)) return rc;
  base::Guard guard(lock_);
  param->ia_handle = ia().handle();
  param->agent = agent_;
  return DAT_SUCCESS;
}

void Cno::trigger(Evd& evd) {
  base::Guard guard(lock_);
  if (keeps_triggers_ && sleepers_.empty()) {
    keep_locked(evd);
  } else {
    wake_one_locked(evd.handle());
  }
  take_agent_locked(evd.handle());
}

void Cno::wake_one_locked(DAT_EVD_HANDLE evd) {
  if (sleepers_.empty()) {
    latched_ = true;
    latched_evd_ = evd;
    return;
  }
  Sleeper* sleeper = sleepers_.front();
  sleepers_.pop_front();
  sleeper->evd = evd;
  sleeper->released = true;
  sleeper->waiter.notify();
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
bool Cno::take_latched_locked(DAT_EVD_HANDLE* evd) {
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
  *evd = latched_evd_;
  return true;
}

// CNO-AGT-2: it leaves the CNO before it is called.
void Cno::take_agent_locked(DAT_EVD_HANDLE evd) {
  if (!agent_.proxy_agent_func) return;
  next_call_.front() = {agent_.proxy_agent_func, agent_.instance_data, evd, number_};
  agent_ = kNoAgent;
  ia().agents()->submit(next_call_);
}

void Cno::attach() {
  ++evds_;
  if (!keeps_triggers_ || room_ >= evds_) return;
  room_ = evds_ * 2;
  std::vector<Triggers> kept;
  kept.reserve(room_);
  base::Guard guard(lock_);
  kept.assign(kept_.begin(), kept_.end());
  kept_.swap(kept);
}

void Cno::forget(const Evd& evd) {
  base::Guard guard(lock_);
  std::erase_if(kept_, [&](const Triggers& triggers) { return triggers.evd == &evd; });
}

void Cno::detach(Evd* freed) {
  --evds_;
  if (!freed) return;
  {
    base::Guard guard(lock_);
    if (latched_ && latched_evd_ == freed->handle()) latched_evd_ = DAT_HANDLE_NULL;  // CNO-WAIT-11
  }
  if (evds_ == 0) release_all(true);  // CNO-WAIT-8
}

void Cno::release_all(bool call_agent) {
  {
    base::Guard guard(lock_);
    for (Sleeper* sleeper : sleepers_) {
      sleeper->released = true;
      sleeper->waiter.notify();
    }
    sleepers_.clear();
    if (call_agent) take_agent_locked(DAT_HANDLE_NULL);
  }
}

DAT_RETURN Cno::queue_empty() const {
  return ia().habits().codes_without_class ? DAT_QUEUE_EMPTY : error_code(DAT_QUEUE_EMPTY);
}

DAT_RETURN Cno::wait(DAT_TIMEOUT timeout, DAT_EVD_HANDLE* evd) {
  if (!evd) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "dat_cno_wait: evd_handle is NULL");
  nic::Engine& engine = ia().engine();
  const base::Nanoseconds deadline = timeout == DAT_TIMEOUT_INFINITE
                                         ? base::kForever
                                         : base::now_ns() + static_cast<base::Nanoseconds>(timeout) * 1000;
  if (timeout == 0) engine.poll();
  const os::CancelOff off;
  Sleeper sleeper(off.was_on());
  {
    base::Guard guard(lock_);
    if (take_latched_locked(evd)) return DAT_SUCCESS;
    if (timeout == 0) {
      *evd = DAT_HANDLE_NULL;
      return queue_empty();
    }
    sleepers_.push_back(&sleeper);
    ++inside_;
  }
  nic::WaitResult result = nic::WaitResult::notified;
  try {
    result = engine.wait(sleeper.waiter, deadline);
  } catch (...) {  // the thread was cancelled
    base::Guard guard(lock_);
    --inside_;
    sleepers_.remove(&sleeper);
    if (sleeper.released && sleeper.evd != DAT_HANDLE_NULL) wake_one_locked(sleeper.evd);  // a trigger is not lost
    throw;
  }
  base::Guard guard(lock_);
  --inside_;
  if (sleeper.released) {  // CNO-WAIT-14: also if the time ran out at that moment
    *evd = sleeper.evd;
    return DAT_SUCCESS;
  }
  sleepers_.remove(&sleeper);
  *evd = DAT_HANDLE_NULL;
  return result == nic::WaitResult::interrupted ? error_code(DAT_INTERRUPTED_CALL) : queue_empty();
}

DAT_RETURN Cno::free() {
  {
    base::Guard guard(lock_);
    if (evds_ > 0 || inside_ > 0) {
      return fail(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE,
                  "dat_cno_free: {} EVDs are associated and {} threads wait", evds_, inside_);
    }
    agent_ = kNoAgent;  // CNO-FREE-3
  }
  Ia& ia = this->ia();
  ia.retire(*this);
  return DAT_SUCCESS;
}

void Cno::shut_down() {
  release_all(true);
  for (;;) {
    {
      base::Guard guard(lock_);
      if (inside_ == 0) break;
    }
    os::step_aside();
  }
}

}  // namespace anydat::dapl
