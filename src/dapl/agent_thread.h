// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>

#include "dapl/types.h"
#include "os/lock.h"
#include "os/thread.h"

namespace anydat::dapl {

// The thread in which the agents of an instance's CNOs are called: one after the other, in the order of the triggers,
// never one within another, and with no lock held (CNO-AGT-7). An agent is the program's code, which may take its time
// or call the library; a thread that arrivals, waits or posts depend on must not be the one that runs it.
//
// Thread safety: any thread may call any method; lock_ is a leaf. The thread keeps the object alive, because an agent
// may close its instance.
class AgentThread : public std::enable_shared_from_this<AgentThread> {
 public:
  struct Call {
    Agent agent;
    Handle evd;
    std::uint64_t cno;  // one number for each CNO
  };

  // Starts the thread unless it runs. False if there is no memory for one.
  bool start();
  // Has the one call of the list made. Requires: started.
  void submit(std::list<Call>& call);
  // Calls that are due name this EVD no more (CNO-AGT-8, CNO-WAIT-11).
  void forget(Handle evd);
  // Returns when no call of this CNO is due or under way. Called by an agent, which cannot wait for what comes after
  // itself, it drops what is due instead.
  void finish(std::uint64_t cno);
  // The same for all CNOs, and the thread ends (IA-CLOSE-14). Called by an agent, it makes the calls that are due
  // itself, and the thread ends when that agent returns. Nothing may be submitted afterwards.
  void close();

 private:
  static const void* this_thread() { return __builtin_thread_pointer(); }

  void run();
  bool make_next_call();
  bool has_calls_locked(std::uint64_t cno) const ANYDAT_REQUIRES(lock_);

  os::Mutex start_lock_;
  os::Thread thread_;  // written under start_lock_, or by close()

  os::SpinLock lock_;
  std::list<Call> due_ ANYDAT_GUARDED_BY(lock_);
  std::uint64_t running_ ANYDAT_GUARDED_BY(lock_) = 0;  // whose agent is being called
  bool closing_ ANYDAT_GUARDED_BY(lock_) = false;
  std::atomic<const void*> runner_{nullptr};  // the thread, once it runs

  static constexpr std::uint32_t kAwake = 0;
  static constexpr std::uint32_t kAsleep = 1;
  std::atomic<std::uint32_t> bed_{kAwake};
  std::atomic<std::uint32_t> ended_{0};  // counts the calls that were made, for those who wait for one
};

}  // namespace anydat::dapl
