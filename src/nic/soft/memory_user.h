// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>

#include "nic/region_table.h"
#include "nic/soft/memory_users.h"

namespace anydat::nic::soft {

// A queue pair as a user of memory: the zone and the number by which it and its peer have access to memory of this
// side, and its entry in the list of those whom the removal of a region visits.
//
// Thread safety: any thread; set_zone(), set_scope() and leave() with the engine held. Lives and dies with its queue
// pair.
class MemoryUser {
 public:
  MemoryUser(SoftQueuePair& queue_pair, MemoryUsers& users, ZoneId scope)
      : users_(users), scope_(scope), entry_(queue_pair) {}

  ZoneId zone() const { return zone_.load(std::memory_order_relaxed); }
  // What its windows alone have in the place of a zone.
  ZoneId scope() const { return scope_.load(std::memory_order_relaxed); }
  RegionUser user() const { return {zone(), scope()}; }

  void set_zone(ZoneId zone) { zone_.store(zone, std::memory_order_relaxed); }
  // The next connection has another one (Scopes).
  void set_scope(ZoneId scope) { scope_.store(scope); }

  // From now on removals of regions visit its queue pair.
  void enter() { users_.add(entry_); }
  void leave() { users_.remove(entry_); }

 private:
  MemoryUsers& users_;  // the adapter's
  std::atomic<ZoneId> zone_{kNoZone};
  std::atomic<ZoneId> scope_;
  MemoryUsers::Entry entry_;
};

}  // namespace anydat::nic::soft
