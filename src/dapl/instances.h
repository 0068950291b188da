// SPDX-License-Identifier: BSD-3-Clause
// What the open instances of a process have to do with each other: an async EVD may serve several (IA-OPEN-3), and by
// habit an EVD may serve endpoints of another instance of its adapter.
#pragma once

#include <atomic>
#include <initializer_list>
#include <list>
#include <set>
#include <utility>

#include "dapl/error.h"
#include "dapl/handle_table.h"
#include "os/fork.h"
#include "os/lock.h"

namespace anydat::dapl {

class Evd;
class Ia;

// Its lock comes before every engine, and one engine may be taken under it: this is how a call reaches two instances.
class ANYDAT_CAPABILITY("mutex") Instances {
 public:
  static Instances& get();

  void lock() ANYDAT_ACQUIRE() ANYDAT_NO_ANALYSIS { lock_.lock(); }
  bool try_lock() ANYDAT_TRY_ACQUIRE(true) ANYDAT_NO_ANALYSIS { return lock_.try_lock(); }
  void unlock() ANYDAT_RELEASE() ANYDAT_NO_ANALYSIS { lock_.unlock(); }

  std::list<Ia*>& open() ANYDAT_REQUIRES(this) { return open_; }

  // Loans. One lasts until its EVD is freed or one of its instances closes, also without endpoints: completions that
  // refer to an SRQ of the borrower may still be queued.
  void lend(Evd& evd, Ia& borrower) ANYDAT_REQUIRES(this);  // may throw std::bad_alloc
  void forget(Evd& evd) ANYDAT_REQUIRES(this);
  // Of an instance that closes: endpoints of others lose its EVDs, and its own those of others.
  void end_loans(Ia& closing) ANYDAT_REQUIRES(this);
  // Calls f(Evd&) for each EVD that the instance has borrowed.
  template <typename F>
  void for_each_borrowed(const Ia& borrower, F f) ANYDAT_REQUIRES(this) {
    for (const auto& [evd, to] : loans_) {
      if (to == &borrower) f(*evd);
    }
  }
  // Makes progress for those that have borrowed the EVD, unless another thread has the lock.
  void poll_borrowers(const Evd& evd);

 private:
  os::Mutex lock_;
  std::list<Ia*> open_ ANYDAT_GUARDED_BY(this);
  std::set<std::pair<Evd*, Ia*>> loans_ ANYDAT_GUARDED_BY(this);
};

// The EVDs that a call gives to an endpoint of the instance: holds the lock of all instances for the length of a scope,
// if one of them is another's. To be there before the engine is taken.
class EvdsOfCall {
 public:
  EvdsOfCall(Ia& ia, std::initializer_list<Handle> evds);
  ~EvdsOfCall();
  EvdsOfCall(const EvdsOfCall&) = delete;
  EvdsOfCall& operator=(const EvdsOfCall&) = delete;

  // Whether the endpoint may have it. What is another's is on loan from then on.
  bool allows(Evd& evd) const;
  // What the call answers about one that it may not have.
  Error refuse(const Evd& evd, const char* call, const char* argument, Detail detail) const;

 private:
  Ia& ia_;
  bool holds_ = false;
};

}  // namespace anydat::dapl
