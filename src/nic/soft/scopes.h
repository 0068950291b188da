// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>

#include "nic/types.h"

namespace anydat::nic::soft {

// The numbers of an adapter's connections in its region table, where such a number takes the place of a zone for
// windows that one queue pair alone shows (RegionUser). No number is given twice, since a peer that has not heard yet
// that its connection is over would reach what belongs to the next one of that number. After 2^31 they come again; a
// peer that still has one then would also have to name a key that it was never given.
//
// Thread safety: any thread.
class Scopes {
 public:
  ZoneId next() { return kZoneMax + 1 + given_.fetch_add(1, std::memory_order_relaxed) % kZoneMax; }

 private:
  std::atomic<ZoneId> given_{0};
};

}  // namespace anydat::nic::soft
