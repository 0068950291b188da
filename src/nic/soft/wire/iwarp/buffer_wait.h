// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "nic/soft/incoming.h"
#include "nic/soft/wire/iwarp/receive_backlog.h"
#include "nic/timer.h"

namespace anydat::nic::soft::iwarp {

class TcpStream;

// Messages over TCP that wait for a receive buffer.
//
// While the first of them has waited for less than a moment, nothing behind it is looked at: the buffer is most likely
// about to be posted, and all that has been read behind it is stashed. After that, what is behind it is taken in as far
// as the bounds allow, so that Writes and answers to Reads pass; until there are buffers again, and MessageReceiver
// delivers what has been taken in.
//
// With the engine held. Lives and dies with its stream.
class BufferWait {
 public:
  explicit BufferWait(TcpStream& stream);
  BufferWait(const BufferWait&) = delete;
  BufferWait& operator=(const BufferWait&) = delete;

  bool any() const { return blocked_ || !backlog_.empty(); }
  ReceiveBacklog& backlog() { return backlog_; }  // those messages that have been taken in
  const ReceiveBacklog& backlog() const { return backlog_; }
  // The oldest of them, once it has its buffer; while the memory of that is awaited. Null: not yet.
  Incoming* begun() const { return begun_; }
  void set_begun(Incoming* begun) { begun_ = begun; }
  // The segment that is arriving begins a message without a buffer, and waits for one with all that was read behind it.
  bool blocked() const { return blocked_; }
  bool looks_past() const { return looks_past_; }  // messages without buffers are taken in
  bool reads_no_more();                            // for now: because of them, or of memory that is awaited
  void wait_for_buffer(bool solicited);            // by the message that the segment that is arriving begins
  void be_patient();                               // from now on for a moment; then it looks past
  void look_past();                                // of the message without a buffer; what is behind it may pass
  void resume();                                   // there are buffers again
  void drop();

  // ---- what was read behind a segment that is blocked, or behind the last message of a turn
  bool has_stash() const { return !stash_.bytes.empty(); }
  void stash(std::span<const std::byte> bytes);
  void take_in_stash();  // as far as can be

 private:
  struct Stash {
    std::vector<std::byte> bytes;
    std::size_t from = 0;
    std::span<const std::byte> rest() const { return std::span(bytes).subspan(from); }
  };

  void patience_ended();
  void go_on();
  Stash take_stash() { return std::exchange(stash_, {}); }
  // Of what has been taken, so much at the end is stashed again; or nothing.
  void stash_again(Stash taken, std::size_t count);
  void let_go(Stash taken);

  TcpStream& stream_;
  Incoming* begun_ = nullptr;
  bool blocked_ = false;
  bool looks_past_ = false;
  Stash stash_;
  os::Nanoseconds since_ = 0;  // without any progress
  Timer patience_{[this] { patience_ended(); }};
  ReceiveBacklog backlog_;
};

}  // namespace anydat::nic::soft::iwarp
