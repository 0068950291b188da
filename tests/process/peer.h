// SPDX-License-Identifier: BSD-3-Clause
// Another process that is told step by step what to do, so that a test can stop or kill it at any step.
#pragma once

#include <dat/udat.h>

#include <cstdint>
#include <string>

#include "support/peer_process.h"
#include "support/wire.h"

namespace anydat::test {

// A process with one connection, as a client or as a server with one SRQ. Each method returns when the other process
// has done that step, and throws if it failed. The messages it sends are those of `seed`, numbered from 0 (payload.h);
// what a server receives is compared with these.
class Peer {
 public:
  Peer(const Wire& wire, std::uint64_t seed);

  // A client.
  void connect(DAT_CONN_QUAL qualifier);  // asks, and does not wait for an answer
  void post_receives(int count, std::size_t bytes);

  // A server.
  void serve(int buffers, std::size_t bytes);
  DAT_CONN_QUAL listen();
  void await_request();                       // and keeps it
  void accept(std::uint64_t seed_of_client);  // the request that it keeps, or the next one
  void receive(int total);                    // until it has received so many messages
  void stop_within_receive();                 // when a message has begun; it may be whole, but is not reaped

  // Both.
  std::string connection_event();           // the next one's name (event_name), or "nothing"
  void send(int count, std::size_t bytes);  // posts them
  void await_sent(int count);
  void disconnect(DAT_CLOSE_FLAGS flags);
  void stop();
  void resume();
  void kill() { process_.kill(); }
  // Disconnects if it is connected, frees everything and ends; throws unless all of that went well.
  void finish();

 private:
  std::string tell(const std::string& command);
  void tell_to_stop(const std::string& command);

  PeerProcess process_;
};

}  // namespace anydat::test
