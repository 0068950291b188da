// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>

#include "nic/soft/wire/iwarp/fabric.h"
#include "nic/soft/wire/iwarp/turns.h"

namespace anydat::nic::soft::iwarp {

// A stream's turns of reading: whether it wants another, and when the one that it has ends, so that it is fair to the
// other streams of its adapter. In what order the streams have theirs is in Turns.
//
// With the engine held, but for what Fabric says of its place in line. Lives and dies with its stream.
class ReadingTurn final : public Turn {
 public:
  ReadingTurn(Fabric& fabric, TcpStream& whose) : Turn(whose), fabric_(fabric) {}

  // ---- between turns
  bool wanted() const { return more_to_read_; }                   // and its place is in line
  bool had_in_round() const { return fabric_.had_turn(round_); }  // which is not over
  void want();                                                    // the next
  void want_behind_others();  // or before them, if others_come_first() has found that this one has not begun

  // ---- in a turn
  void begin();
  void begin_with_stash();  // with what an earlier one has left
  // The socket is asked for more. `told`: epoll has just named it.
  void reads(bool told) { in_doubt_ = !told; }
  void has_read() { asked_for_others_ = false; }
  bool over() const { return over_; }
  // Whether the turn ends before the next of the bytes that have been read, because others come first. After a message
  // of this turn: if any other waits. Before its first message: if epoll has not named this socket, so that what was
  // read may be younger than what has come for others; then epoll is asked, once for each read, and if it names others
  // they go first, and this one keeps its place.
  bool others_come_first() {
    const bool first = !std::exchange(message_over_, false);
    const bool doubts = std::exchange(in_doubt_, false);
    if (first) {
      if (!doubts) return false;
      asked_for_others_ = true;
      kept_ = fabric_.others_come_before(*this);
      if (!kept_) return false;
    } else if (!fabric_.others_wait(*this, !std::exchange(asked_for_others_, true))) {
      return false;
    }
    over_ = true;
    return true;
  }
  void message_over() { message_over_ = had_message_ = true; }
  // Before the first message of a turn nothing else ends it: what is behind a Write, or a word between two ends of
  // ours, has come before what others have had word of since.
  void segment_over(bool last, bool of_message) {
    had_message_ |= last && of_message;
    message_over_ = last && had_message_;
  }
  // What had been read is used up: others come before what may be read next.
  bool ends_with_message() { return message_over_ && fabric_.others_wait(*this, false); }
  bool others_wait() { return fabric_.others_wait(*this, !asked_for_others_); }
  // All that was there has been read. Without a message it was no turn of this round.
  void end_early() {
    if (!had_message_) round_ = 0;
  }

 private:
  bool more_to_read_ = false;
  bool over_ = false;          // what has been read and not delivered waits for the next
  bool message_over_ = false;  // just now
  bool had_message_ = false;   // in this turn
  bool in_doubt_ = false;      // what has been read may have come after what others have had word of
  bool kept_ = false;          // it is over before it has begun
  bool asked_for_others_ = false;
  std::uint32_t round_ = 0;  // Fabric::round() of the last
  Fabric& fabric_;
};

}  // namespace anydat::nic::soft::iwarp
