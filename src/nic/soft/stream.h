// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/types.h"

namespace anydat::nic::soft {

enum class SendOutcome : std::uint8_t {
  done,     // a Send or Write: the bytes have left the consumer's memory; a Read: they have arrived
  pending,  // the stream will say when: RequestOutcomes::finished() and its like
  blocked,  // not yet, or not all; the stream will ask for it again: SendQueue::pump()
  failed,   // it can never be done; nothing of it happens from now on
};

// How far a request has come that is handed to its stream more than once.
struct Progress {
  // In one word, since each place of a send queue has one.
  std::uint64_t bytes : 56 = 0;
  WorkStatus failure : 8 = WorkStatus::success;
};

enum class CloseReason : std::uint8_t {
  graceful,
  abrupt,
  local_error,  // this side found the connection at fault: the other side's requests failed remotely
  receiver_not_ready,
  remote_access,   // the other side's RDMA was refused
  request_failed,  // a request of this side failed; those of the other side are only flushed
};

// One connection's way over a wire, owned by its queue pair. Called with the engine held, but for send(), send_again(),
// put_again() and send_row(), which are called with the lock of its SendQueue and perhaps without the engine.
class Stream {
 public:
  virtual ~Stream() = default;

  // A Send, an RDMA Read or an RDMA Write. They come in posting order. `number` counts them and comes back in
  // send_finished().
  virtual SendOutcome send(std::uint64_t number, const SendRequest& message, Progress& progress) = 0;

  // A Send that nothing is before, and whose memory is usable. False: not now, or not so; send() shall have it.
  virtual bool send_again(const SingleSend&) { return false; }
  // A Write whose memory here is usable, and before which all requests have been handed over: the peer is to put it in
  // place, as it did with those before. True: as `pending`. False as above.
  virtual bool put_again(const SingleRdma&) { return false; }
  // Sends, from the first on, as many as go out at once and are done with it. How many; send() is for the next one, and
  // tells what is in its way. To be called while no request is before them.
  virtual std::size_t send_row(const SendRow&) { return 0; }

  // The region table has not held the key for a moment. False while the peer, who looks there by itself and copies, is
  // in the middle of using what it was: ask again. It has half a second to let go, or loses its connections.
  virtual bool lets_go_of(std::uint32_t) { return true; }
  // The wire's name, as DAT_WIRE has it.
  virtual const char* wire() const = 0;
  // The queue pair has buffers again: deliver the backlog.
  virtual void resume_receiving() = 0;
  // Something of this connection has arrived and is not delivered.
  virtual bool holds_messages() const = 0;
  // What is first of them waits for memory to be there, of its buffer or of what comes before it.
  virtual bool awaits_memory_for_backlog() const { return false; }
  // What the peer has not taken of what it was sent, as far as that can be told. A change is a sign of life.
  virtual std::size_t untaken() { return 0; }
  // A memory region has been removed: work that needs it fails now. False while the peer is in the middle of writing
  // into what is no region any more; only a connection that is over can be in that state.
  virtual bool region_removed() = 0;
  // The connection is over. True when neither the stream nor the peer uses the memory of requests and receives any
  // longer; if false, Connection::let_go_finished() will come.
  virtual bool let_go() = 0;
  // Drops the backlog and stops delivering, but keeps the connection's name until it is destroyed.
  virtual void close(CloseReason reason) = 0;
};

}  // namespace anydat::nic::soft
