// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "nic/adapter.h"
#include "nic/connection_state.h"
#include "nic/ending.h"
#include "nic/soft/establishment.h"
#include "nic/soft/orderly_end.h"
#include "nic/soft/stream.h"
#include "nic/soft/window_operations.h"

namespace anydat::nic::soft {

class SoftAdapter;
class SoftQueuePair;

// The life of a software queue pair's connection: its stream, its names, and its end. How it comes about is in
// Establishment, and how it ends in order in OrderlyEnd; windows that it alone has shown end with it
// (WindowOperations). Its state is in SendQueue, whose lock posts look at it with.
//
// With the engine held. Lives and dies with its queue pair.
class Connection {
 public:
  Connection(SoftQueuePair& queue_pair, SoftAdapter& adapter, QueuePairEvents& events);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Establishment& establishment() { return establishment_; }
  OrderlyEnd& orderly_end() { return orderly_end_; }
  WindowOperations& windows() { return windows_; }
  Engine& engine() const { return engine_; }

  // ---- names
  const ConnectionNames& names() const { return names_; }
  void set_names(ConnectionNames names) { names_ = std::move(names); }
  void set_local(const Address& address, std::uint64_t port) {
    names_.local = address;
    names_.local_port = port;
  }
  void set_remote(const Address& address, std::uint64_t port) {
    names_.remote = address;
    names_.remote_port = port;
  }
  void set_reached(ServicePointName name) { names_.reached = std::move(name); }

  // ---- its stream, null while there is none
  Stream* stream() const { return stream_.get(); }
  void begin(std::unique_ptr<Stream> stream, ConnectionState state);
  void change_stream(std::unique_ptr<Stream> stream);
  void resume_receiving();  // there are buffers again

  // ---- users of memory
  // A region has been removed: neither side of the connection acts on an older check afterwards, if this answers true
  // (Adapter::quiesce()).
  bool region_removed();
  // Returns when the posts that are being carried out now have been. Later ones look at everything anew.
  void await_posts();

  // ---- its end
  void disconnect(bool graceful);
  void peer_closed(CloseReason reason);
  // `why`: what the oldest request ends with (STAT-7, STAT-10).
  void peer_lost(WorkStatus why);
  void break_off(WorkStatus send_status, CloseReason tell_peer);
  // A completion found no room: the connection breaks when the engine is released (EVM-54).
  void completion_overflowed();
  // What is posted from now on is kept to be flushed, and what is being posted has been. The end is near.
  void stop_sending();
  void end(Ending ending);
  void let_go_finished();  // see Stream::let_go()
  // What the oldest request has ended with if the peer names none, and ends the connection for that reason.
  static WorkStatus status_of(CloseReason reason);

  // ---- as in QueuePair
  bool cut();
  void reset();
  void destroy();

 private:
  bool came_to_nothing();

  SoftQueuePair& queue_pair_;
  Engine& engine_;
  QueuePairEvents& events_;
  std::unique_ptr<Stream> stream_;  // sends_ knows it, too
  ConnectionNames names_;
  Establishment establishment_;
  OrderlyEnd orderly_end_;
  WindowOperations windows_;
  Ending ending_;
  Task overflow_task_;
};

}  // namespace anydat::nic::soft
