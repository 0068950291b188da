// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/annotations.h"
#include "base/list.h"
#include "os/lock.h"

namespace anydat::nic::soft::iwarp {

class TcpStream;

// A stream's place among those that want a turn.
struct Turn {
  explicit Turn(TcpStream& whose) : stream(whose) {}
  TcpStream& stream;
  base::ListLinks<Turn> place;
  base::ListLinks<Turn> place_for_room;  // ReceiveBacklogs
  bool in_round = false;                 // of those that are left of it
};

// Who is to have a turn: those who stood in line when a round began have theirs in it, in that order; who comes
// meanwhile has it in the next. One may be kept before all of them.
//
// Thread safety: add() from any thread; all else with the engine.
class Turns {
 public:
  // At the end of the line. False: it stands there already.
  bool add(Turn& turn);
  // Before all others, whose round goes on with it. One that was kept before goes to the end of the line.
  void keep(Turn& turn);
  // It wants none any more.
  void forget(Turn& turn);

  // Requires: none is left.
  void begin_round();
  std::size_t left() const { return left_; }  // in this round
  // Takes the next of this round. Requires: some are left.
  Turn& next();
  // Streams note in which round they have had their turn, and have no other in it.
  std::uint32_t round() const { return round_; }

  bool empty();                       // of the line: the one that is kept is not in it
  bool others_than(const Turn& its);  // stand in it

 private:
  void count(Turn& turn) {
    turn.in_round = true;
    ++left_;
  }
  void uncount(Turn& turn) {
    if (turn.in_round) --left_;
    turn.in_round = false;
  }

  std::uint32_t round_ = 0;
  std::size_t left_ = 0;  // with in_round: of those in front of the line, and of the one that is kept
  Turn* kept_ = nullptr;  // not in line
  os::SpinLock lock_;
  base::List<Turn, &Turn::place> line_ ANYDAT_GUARDED_BY(lock_);
};

}  // namespace anydat::nic::soft::iwarp
