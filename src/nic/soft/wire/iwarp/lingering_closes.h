// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nic/soft/finishing.h"
#include "nic/soft/wire/iwarp/lingering_close.h"

namespace anydat::nic::soft::iwarp {

// All lingering closes of an adapter. How many there may be, of connections and of strangers, is for Strangers to say.
// With the engine held.
class LingeringCloses {
 public:
  void add(std::unique_ptr<LingeringClose> lingering);  // may throw std::bad_alloc
  bool finished(const LingeringClose& lingering) { return of(lingering.stage()).finished(lingering); }
  // Until all have ended: for a second at most without any progress, and for ten in all, however many there are.
  void wait();
  void sweep() {
    peers_.sweep();
    strangers_.sweep();
  }
  void clear() {
    peers_.clear();
    strangers_.clear();
  }

 private:
  Finishing<LingeringClose>& of(Stranger::Stage stage) {
    return stage == Stranger::Stage::lingering ? peers_ : strangers_;
  }

  Finishing<LingeringClose> peers_;
  Finishing<LingeringClose> strangers_;
};

}  // namespace anydat::nic::soft::iwarp
