// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "nic/soft/queue_pair.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/iwarp/format/rdmap.h"
#include "nic/soft/wire/iwarp/pending_terminate.h"
#include "nic/soft/wire/iwarp/transmitter.h"

namespace anydat::nic::soft::iwarp {

class Negotiation;
class TcpStream;

// How a connection over TCP ends: what the peer is told, and which of its messages is at fault; what the peer says of
// an end, by a close notify between ends of ours, by a Terminate (RFC 5040, section 4.8) or by its socket; and that the
// socket goes its own way after it.
//
// With the engine held. Lives and dies with its stream.
class Disconnection {
 public:
  explicit Disconnection(TcpStream& stream) : stream_(stream) {}
  Disconnection(const Disconnection&) = delete;
  Disconnection& operator=(const Disconnection&) = delete;

  bool over() const { return closed_; }  // nothing that arrives counts any more
  void set_over() { closed_ = true; }

  // ---- ends by this side; the first two as Stream has them
  void close(CloseReason reason);
  bool let_go();
  void hang_up();  // what is in line is still sent
  // For the segment that is arriving, or for the message that would be delivered next: all before it have been.
  void refuse(TerminateCode code, CloseReason reason = CloseReason::local_error);
  void refuse_message(TerminateCode code, CloseReason reason);
  void prepare_terminate_on_message(TerminateCode code);
  PendingTerminate& pending_terminate() { return pending_terminate_; }
  void out_of_memory();  // what takes memory and finds none ends this connection and no other
  template <typename Action>
  void or_break(Action&& action) {
    try {
      action();
    } catch (const std::bad_alloc&) {
      out_of_memory();
    }
  }

  // ---- ends by the peer
  bool hung_up() const { return hung_up_; }
  bool input_has_ended() const { return input_ended_; }
  void takes_socket() { input_ended_ = hung_up_ = false; }
  void peer_hung_up();
  void peer_sent_close_notify(std::uint32_t reason);
  void terminated(std::span<const std::byte> payload);
  void end_of_input();   // the socket has nothing more to read
  void lost(int error);  // or it has that
  // What arrives has no place any more, and is heard for how the peer ends.
  bool discards() const { return discards_; }
  void discard() { discards_ = true; }

 private:
  Connection& connection();
  Negotiation& negotiation();
  Transmitter take_line();
  void refuse_with_terminate(TerminateCode code, CloseReason reason);  // the pending one
  void prepare_terminate_for(CloseReason reason);
  bool set_up_ended();
  void end_of_stream();
  int loss_told_to_sender();

  TcpStream& stream_;
  bool closed_ = false;
  bool sent_close_notify_ = false;  // the peer
  bool hung_up_ = false;            // the peer has, but there may be more to read
  bool input_ended_ = false;        // and there is not
  bool discards_ = false;
  PendingTerminate pending_terminate_;
};

}  // namespace anydat::nic::soft::iwarp
