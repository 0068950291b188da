// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>

#include "nic/types.h"

namespace anydat::nic::soft {

// What the connections of an adapter are told from each other by in its region table, where the number of one stands in
// the place of a zone (RegionUser). Each has one that no other has had, since a peer may not have heard yet that its
// connection is over, and would find in the table what belongs to the next one of that number. After 2^31 they come
// again; a peer that still has one then would also have to name a key that it was never given.
//
// Thread safety: any thread.
class Scopes {
 public:
  ZoneId next() { return kZoneMax + 1 + given_.fetch_add(1, std::memory_order_relaxed) % kZoneMax; }

 private:
  std::atomic<ZoneId> given_{0};
};

}  // namespace anydat::nic::soft
