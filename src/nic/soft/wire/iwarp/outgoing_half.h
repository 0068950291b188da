// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "nic/budget.h"
#include "nic/soft/wire/iwarp/fabric.h"
#include "nic/soft/wire/iwarp/terms.h"
#include "nic/soft/wire/iwarp/transmitter.h"
#include "os/lock.h"

namespace anydat::nic::soft::iwarp {

// The outgoing half of a connection over TCP, in which the requests of this side, the answers to those of the peer, and
// what the ends say to each other share one line: who may send, and when the socket is given what is in line.
//
// The first message that goes out goes at once. Those that follow before anybody has looked for completions or arrivals
// are in a row, and go together with the next look: a system call each would cost many times what they do.
//
// Thread safety: all with its lock, before which that of the send queue comes. Lives and dies with its stream.
class OutgoingHalf {
 public:
  // `turn`: of its stream, which flushes what is left in line.
  OutgoingHalf(Fabric& fabric, Turn& turn) : fabric_(fabric), turn_(turn), line_(fabric.chunks()) {}
  os::Mutex& lock() const ANYDAT_RETURN_CAPABILITY(lock_) { return lock_; }
  Transmitter& line() ANYDAT_REQUIRES(lock_) { return line_; }
  const Transmitter& line() const ANYDAT_REQUIRES(lock_) { return line_; }

  // ---- requests of the program
  bool may_send() const ANYDAT_REQUIRES(lock_) { return may_send_; }
  void let_send(bool may) ANYDAT_REQUIRES(lock_) { may_send_ = may; }
  void let_wait() ANYDAT_REQUIRES(lock_) { somebody_waits_ = true; }  // one has been told to come again
  void let_wait_for_turn() ANYDAT_REQUIRES(lock_) {
    let_wait();
    schedule_turn();
  }
  // True: the one that waits is to come again now, and none waits any more.
  bool wakes() ANYDAT_REQUIRES(lock_) {
    return somebody_waits_ && !line_.blocked() && std::exchange(somebody_waits_, false);
  }

  // ---- the line and the socket
  void push_out() ANYDAT_REQUIRES(lock_);
  void schedule_turn() ANYDAT_REQUIRES(lock_) {
    if (line_.lacks_memory() && !line_.broken()) [[unlikely]] {
      fabric_.come_back_with_memory();
    } else {
      fabric_.schedule_turn(turn_);
    }
  }
  void flush() ANYDAT_REQUIRES(lock_) {
    flush_comes_ = false;
    line_.flush();
  }
  // What one end of ours says to the other: a Write of length 0.
  void say(Signal signal, std::uint32_t value) ANYDAT_REQUIRES(lock_) {
    say_to(kSignalStag, signal_offset(signal, value));
  }
  void say_to(std::uint32_t stag, std::uint64_t offset) ANYDAT_REQUIRES(lock_);
  // What goes out in between is pushed out together.
  void begin_row() ANYDAT_REQUIRES(lock_) {
    sent_at_ = fabric_.engine().ticks();
    in_row_ = true;
  }
  void end_row(std::size_t sent) ANYDAT_REQUIRES(lock_) {
    in_row_ = false;
    if (sent > 0) push_out();
  }
  // Of Engine::ticks(), for a small message. Those of a row share a look at the clock: it takes as long as all else
  // that is done for one.
  std::uint64_t moment() ANYDAT_REQUIRES(lock_) {
    if (!in_row_ && (fabric_.passes() != last_pass_ || line_.waiting() == 0)) sent_at_ = fabric_.engine().ticks();
    return sent_at_;
  }
  // How long a message may be that goes into the line whole, where others may join it.
  std::uint64_t whole_max(std::size_t header_bytes) const ANYDAT_REQUIRES(lock_) {
    return std::min<std::uint64_t>(kSmallMax, line_.ulpdu_max() - header_bytes);
  }

  // ---- how much the engine may still send for this connection in this pass
  std::uint64_t share_of_pass() ANYDAT_REQUIRES(lock_);
  void has_sent(std::uint64_t bytes) ANYDAT_REQUIRES(lock_) { sent_in_pass_ += bytes; }

  // Up to this size a message is copied into the line.
  static constexpr std::uint64_t kSmallMax = 4096;

 private:
  mutable os::Mutex lock_;
  bool may_send_ ANYDAT_GUARDED_BY(lock_) = false;
  bool flush_comes_ ANYDAT_GUARDED_BY(lock_) = false;  // the stream's turn has what is in line go out
  bool in_row_ ANYDAT_GUARDED_BY(lock_) = false;
  bool somebody_waits_ ANYDAT_GUARDED_BY(lock_) = false;
  Fabric& fabric_;
  Turn& turn_;
  Transmitter line_ ANYDAT_GUARDED_BY(lock_);
  std::uint64_t last_pass_ ANYDAT_GUARDED_BY(lock_) = 0;  // in which something went out at once
  std::uint64_t sent_at_ ANYDAT_GUARDED_BY(lock_) = 0;    // moment()
  std::uint64_t sent_pass_ ANYDAT_GUARDED_BY(lock_) = 0;  // in which the engine has sent so much
  std::uint64_t sent_in_pass_ ANYDAT_GUARDED_BY(lock_) = 0;
};

}  // namespace anydat::nic::soft::iwarp
