// SPDX-License-Identifier: BSD-3-Clause
// The call tables of Providers other than ours, and which of them a handle belongs to.
#pragma once

#include "face/dat.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "os/fork.h"
#include "os/lock.h"

namespace anydat::registry {

// A call table that a Provider has registered, or that an instance of its turned out to use. It is kept for the life of
// the process, so a thread that found it need not hold it; whether its functions are still there is another matter.
struct ForeignTable {
  const DAT_PROVIDER* provider = nullptr;
  std::atomic<bool> is_whole{false};     // the table is as long as ours; else it ends before the calls of 1.2
  std::atomic<bool> is_callable{false};  // of our major version: the functions of another have other parameters
  std::atomic<std::uint32_t> calls{0};   // threads inside one of its functions now, through libdat (REG-FINI-7)
  std::uint32_t references = 0;          // registrations and open instances; 0: forgotten

  // False if the Provider has not got that call.
  template <typename Function>
  bool has(Function DAT_PROVIDER::*slot) const {
    const auto offset =
        reinterpret_cast<std::uintptr_t>(&(provider->*slot)) - reinterpret_cast<std::uintptr_t>(provider);
    const bool there = offset < offsetof(DAT_PROVIDER, lmr_sync_rdma_read_func) || is_whole.load();
    return there && provider->*slot != nullptr;
  }
};

// All of them, by the first word of an object (HND-9).
//
// Thread safety: any thread may call anything. The lock is a leaf.
class ForeignTables {
 public:
  static ForeignTables& instance();

  // Each add() wants one drop(). The first makes the table known, the last forgets it. A table of another major version
  // is counted, and never found behind a handle (D2-REG-3).
  ForeignTable* add(const DAT_PROVIDER* provider, DAT_UINT32 major, DAT_UINT32 minor);
  void drop(ForeignTable* table);

  bool any() const { return known_count_.load(std::memory_order_relaxed) > 0; }

  // The table of the object behind any value a program passes as a handle; null if it is not one of a Provider that is
  // known. Never touches memory that is not there.
  //
  // What was found is remembered by the thread, and believed until forget_handles() or drop(): a data call should not
  // cost a system call.
  ForeignTable* find(DAT_HANDLE handle);
  // Some handle has died.
  void forget_handles() { generation_.fetch_add(1); }

 private:
  friend class os::PerProcess<ForeignTables>;
  ForeignTables();
  ForeignTable* look_up(DAT_HANDLE handle);

  static os::PerProcess<ForeignTables> instance_;
  // What a thread remembers from before a fork is of another generation.
  std::atomic<std::uint64_t> generation_;
  std::atomic<std::size_t> known_count_{0};
  os::Mutex lock_;
  std::deque<ForeignTable> tables_ ANYDAT_GUARDED_BY(lock_);
};

}  // namespace anydat::registry
