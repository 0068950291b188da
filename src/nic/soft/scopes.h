// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include "base/lock.h"
#include "nic/types.h"

namespace anydat::nic::soft {

// What the queue pairs of an adapter are told from each other by in its region table, where the number of one stands in
// the place of a zone (RegionUser). A number is used again when its queue pair has gone: no window outlives the
// connection by which it was bound, so none has it then.
//
// Thread safety: any thread.
class Scopes {
 public:
  // Of one queue pair, as long as it is there. May throw std::bad_alloc.
  class Own {
   public:
    explicit Own(Scopes& all) : all_(all), number_(all.take()) {}
    ~Own() { all_.give_back(number_); }
    Own(const Own&) = delete;
    Own& operator=(const Own&) = delete;
    ZoneId number() const { return number_; }

   private:
    Scopes& all_;
    const ZoneId number_;
  };

 private:
  ZoneId take() {
    base::Guard guard(lock_);
    if (free_.empty()) {
      // Giving back takes no memory.
      if (free_.capacity() <= count_) free_.reserve(std::size_t{2} * count_ + 1);
      return kZoneMax + ++count_;
    }
    const ZoneId number = free_.back();
    free_.pop_back();
    return number;
  }
  void give_back(ZoneId number) {
    base::Guard guard(lock_);
    free_.push_back(number);
  }

  base::SpinLock lock_;
  std::vector<ZoneId> free_ ANYDAT_GUARDED_BY(lock_);
  ZoneId count_ ANYDAT_GUARDED_BY(lock_) = 0;  // ever made
};

}  // namespace anydat::nic::soft
