// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "dapl/agent_thread.h"
#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/object.h"
#include "nic/engine.h"
#include "os/lock.h"
#include "os/readable.h"

namespace anydat::dapl {

class Evd;

// A consumer notification object: a wake-up point that EVDs trigger. A trigger without a waiter is latched (EVM-43).
//
// Thread safety: any thread may call any method; those marked (engine) are called with the engine held. lock_ is a
// leaf, below the EVDs' locks.
class Cno final : public Object {
 public:
  static constexpr HandleType kType = HandleType::cno;

  Cno(Ia& ia, const Agent& agent, std::unique_ptr<os::Readable> readable = nullptr);
  ~Cno() override;

  static Error create(Ia& ia, const Agent& agent, Handle* handle);
  // One with a descriptor that can be waited for: readable while a trigger is latched (D2-CNO-3).
  static Error create_with_descriptor(Ia& ia, int& descriptor, Handle* handle);
  Error modify_agent(const Agent& agent);
  CnoParameters query();
  Error wait(Microseconds timeout, Handle* evd);
  // Takes the latched trigger: the EVD that caused it, as far as it is known, or null.
  Handle take_trigger();
  Error free();  // (engine) what follows is the caller's: AgentThread::finish(number())
  std::uint64_t number() const { return number_; }

  // For EVDs. trigger() is called under the EVD's lock; the agent is called in a thread of its own (CNO-AGT-7).
  void trigger(Evd& evd);
  void make_room();             // (engine) for one more EVD; may throw std::bad_alloc, and has changed nothing then
  void attach();                // (engine) one more EVD; as make_room()
  void detach(bool for_good);   // (engine) the EVD goes for good, rather than elsewhere
  void forget(const Evd& evd);  // (engine) triggers of an EVD that is about to be detached are no more
  // (engine) An EVD goes for good. A trigger of it names no EVD (CNO-WAIT-11); it may have left this CNO long before.
  void forget_handle(Handle evd);
  void shut_down();  // (engine) releases all sleepers; nothing but the destructor may follow

 private:
  struct Sleeper {
    explicit Sleeper(bool cancellable) : waiter(cancellable) {}
    nic::Waiter waiter;
    Handle evd = nullptr;
    bool released = false;
  };

  // Of an EVD, where each event is a trigger of its own: those that no wait has been told of.
  struct Triggers {
    Evd* evd;
    std::uint32_t count;
  };

  Error queue_empty() const;  // CNO-WAIT-3
  void keep_locked(Evd& evd) ANYDAT_REQUIRES(lock_);
  bool take_latched_locked(Handle* evd) ANYDAT_REQUIRES(lock_);
  void release_all(bool call_agent);
  void latch_locked(Handle evd) ANYDAT_REQUIRES(lock_);
  void wake_one_locked(Handle evd) ANYDAT_REQUIRES(lock_);
  void take_agent_locked(Handle evd) ANYDAT_REQUIRES(lock_);

  const std::uint64_t number_;  // which no other CNO of the instance has had
  const bool keeps_triggers_;   // by the instance's habits; not with a descriptor
  std::uint32_t evds_ = 0;      // associated; with the engine
  std::uint32_t room_ = 0;      // of kept_; with the engine

  os::SpinLock lock_;
  std::unique_ptr<os::Readable> readable_ ANYDAT_GUARDED_BY(lock_);  // null: without a descriptor
  Agent agent_ ANYDAT_GUARDED_BY(lock_);
  bool latched_ ANYDAT_GUARDED_BY(lock_) = false;
  Handle latched_evd_ ANYDAT_GUARDED_BY(lock_) = nullptr;
  // One for each EVD at most, the latest last; it has room for all that are associated, so that a trigger allocates
  // nothing.
  std::vector<Triggers> kept_ ANYDAT_GUARDED_BY(lock_);
  std::list<Sleeper*> sleepers_ ANYDAT_GUARDED_BY(lock_);
  std::uint32_t inside_ ANYDAT_GUARDED_BY(lock_) = 0;  // threads in wait()
  bool dead_ ANYDAT_GUARDED_BY(lock_) = false;         // freed, and no thread may begin to wait
  // Room for the call of the present agent, so that a trigger allocates nothing.
  std::list<AgentThread::Call> next_call_ ANYDAT_GUARDED_BY(lock_);
};

}  // namespace anydat::dapl
