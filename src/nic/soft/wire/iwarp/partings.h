// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nic/soft/finishing.h"
#include "nic/soft/wire/iwarp/farewell.h"

namespace anydat::nic::soft::iwarp {

// All farewells of an adapter. How many there may be, of connections and of strangers, is for Strangers to say. With
// the engine held.
class Partings {
 public:
  void add(std::unique_ptr<Farewell> farewell);  // may throw std::bad_alloc
  bool finished(const Farewell& farewell) { return of(farewell.stage()).finished(farewell); }
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
  Finishing<Farewell>& of(Stranger::Stage stage) { return stage == Stranger::Stage::parting ? peers_ : strangers_; }

  Finishing<Farewell> peers_;
  Finishing<Farewell> strangers_;
};

}  // namespace anydat::nic::soft::iwarp
