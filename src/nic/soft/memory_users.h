// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include "base/list.h"
#include "os/lock.h"

namespace anydat::nic::soft {

class SoftQueuePair;

// The queue pairs of an adapter that may be acting on an older check of a region, so that a removal asks
// these and no others: it takes as long as there is work, however many connections there are.
//
// A queue pair enters when a request is handed to its stream, before the request's memory is looked at for the last
// time, or when a message begins to arrive in a buffer. It leaves when a removal finds nothing of that under
// way. So it enters once for all that it does between two such looks.
class MemoryUsers {
 public:
  // What a queue pair needs to be one of them.
  class Entry {
   public:
    explicit Entry(SoftQueuePair& queue_pair) : queue_pair_(queue_pair) {}

   private:
    friend class MemoryUsers;
    SoftQueuePair& queue_pair_;
    base::ListLinks<Entry> place_;
  };

  // From any thread. Nothing happens if it is among them.
  void add(Entry& entry) {
    os::Guard guard(lock_);
    if (!entry.place_.listed()) entries_.push_back(entry);
  }
  void remove(Entry& entry) {
    os::Guard guard(lock_);
    entries_.remove(entry);
  }
  // Calls look(SoftQueuePair&) for each that has entered before; one that is to stay enters anew. With the engine held,
  // so that none of them goes away meanwhile.
  template <typename Look>
  void for_each(Look&& look) {
    for (std::size_t left = size(); left > 0; --left) {
      Entry* entry = nullptr;
      {
        os::Guard guard(lock_);
        entry = entries_.pop_front();
      }
      if (!entry) return;
      look(entry->queue_pair_);
    }
  }

 private:
  std::size_t size() {
    os::Guard guard(lock_);
    return entries_.size();
  }

  os::SpinLock lock_;  // a leaf
  base::List<Entry, &Entry::place_> entries_ ANYDAT_GUARDED_BY(lock_);
};

}  // namespace anydat::nic::soft
