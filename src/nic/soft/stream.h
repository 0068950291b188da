// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "nic/types.h"

namespace anydat::nic::soft {

// A posted request as its stream sees it.
struct Outgoing {
  std::uint64_t length;
  std::span<const Segment> segments;
  bool solicited;
};

enum class SendOutcome : std::uint8_t {
  done,     // the bytes have left the consumer's memory
  pending,  // the stream will say when: SoftQueuePair::send_finished()
  blocked,  // nothing happened; the stream will ask for it again: SoftQueuePair::pump()
};

enum class CloseReason : std::uint8_t {
  graceful,
  abrupt,
  local_error,  // this side found the connection at fault: the other side's requests failed remotely
  receiver_not_ready,
  remote_access,
};

// One connection's way over a wire, owned by its queue pair. Called with the engine held, but for send(), which is
// called with the queue pair's send lock and perhaps without the engine.
class Stream {
 public:
  virtual ~Stream() = default;

  // Requests come in posting order. `number` counts them and comes back in send_finished().
  virtual SendOutcome send(std::uint64_t number, const Outgoing& message) = 0;

  // The queue pair has buffers again: deliver what is parked.
  virtual void resume_receiving() = 0;
  // Something of this connection has arrived and is not delivered.
  virtual bool holds_messages() const = 0;
  // A memory region has been removed: work that needs it fails now. False while the peer is in the middle of writing
  // into what is no region any more; only a connection that is over can be in that state.
  virtual bool memory_changed() = 0;
  // The connection is over. True when neither the stream nor the peer uses the memory of requests and receives any
  // longer; if false, SoftQueuePair::let_go_finished() will come.
  virtual bool let_go() = 0;
  // Drops what is parked and stops delivering, but keeps the connection's name until it is destroyed.
  virtual void close(CloseReason reason) = 0;
};

}  // namespace anydat::nic::soft
