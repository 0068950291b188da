// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/turns.h"

#include <utility>

namespace anydat::nic::soft::iwarp {

bool Turns::add(Turn& turn) {
  os::Guard guard(lock_);
  if (turn.place.listed()) return false;
  line_.push_back(turn);
  return true;
}

void Turns::keep(Turn& turn) {
  forget(turn);
  if (left_ == 0) ++round_;  // it has looked by itself, and a round begins with it
  if (Turn* const before = std::exchange(kept_, &turn)) {
    uncount(*before);
    add(*before);
  }
  count(turn);
}

void Turns::forget(Turn& turn) {
  uncount(turn);
  if (kept_ == &turn) kept_ = nullptr;
  os::Guard guard(lock_);
  line_.remove(turn);
}

void Turns::begin_round() {
  ++round_;
  os::Guard guard(lock_);
  for (Turn* turn = line_.front(); turn; turn = line_.after(*turn)) count(*turn);
}

Turn& Turns::next() {
  Turn* turn = std::exchange(kept_, nullptr);
  if (!turn) {
    os::Guard guard(lock_);
    turn = line_.pop_front();
  }
  uncount(*turn);
  return *turn;
}

bool Turns::empty() {
  os::Guard guard(lock_);
  return line_.empty();
}

bool Turns::others_than(const Turn& its) {
  os::Guard guard(lock_);
  return line_.size() > (its.place.listed() ? 1u : 0u);
}

}  // namespace anydat::nic::soft::iwarp
