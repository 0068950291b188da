// SPDX-License-Identifier: BSD-3-Clause
// Connection set-up as the tools need it: one step, wait for its event, an error in words when it does not come.
#ifndef ANYDAT_TOOLS_COMMON_CONNECTION_H
#define ANYDAT_TOOLS_COMMON_CONNECTION_H

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/adapter.h"

namespace tools {

using Timeout = std::chrono::microseconds;
using Bytes = std::span<const std::byte>;

// Waits for the next event; false when the time is over. Throws Error for anything else.
bool wait_event(DAT_EVD_HANDLE evd, Timeout timeout, DAT_EVENT& event);

// How many events have ever been queued on it; 0 of an adapter that does not count them. Any thread may ask.
std::uint64_t events_of(DAT_EVD_HANDLE evd);

// Where a server is: HOST[:QUAL], with brackets around an IPv6 address that is followed by a qualifier.
struct Peer {
  sockaddr_storage address{};
  DAT_CONN_QUAL qualifier = 0;
  std::string text;  // for messages
};
Peer resolve_peer(const std::string& host_and_qualifier, DAT_CONN_QUAL default_qualifier);
std::string address_text(const sockaddr* address);

// A public service point. qualifier 0 lets the library choose one.
class Listener {
 public:
  Listener(const Adapter& adapter, DAT_EVD_HANDLE evd, DAT_CONN_QUAL qualifier);
  DAT_CONN_QUAL qualifier() const { return qualifier_; }

 private:
  DAT_CONN_QUAL qualifier_;
  Psp psp_;
};

// Connects and waits until the connection is up; returns the peer's private data (valid while the endpoint lives).
// Requires: nothing but this connection feeds `connect_evd` yet.
Bytes connect(DAT_EP_HANDLE ep, DAT_EVD_HANDLE connect_evd, const Peer& peer, Timeout timeout, Bytes private_data);

// The same in two steps, for connections that come up side by side. The second waits for the next one on `connect_evd`;
// messages that come meanwhile on those that are up already are added to `early`.
void begin_connect(DAT_EP_HANDLE ep, const Peer& peer, Timeout timeout, Bytes private_data);
Bytes await_connected(DAT_EVD_HANDLE connect_evd, const Peer& peer, Timeout timeout, std::vector<DAT_EVENT>& early);

// The private data of a request; valid until the request is answered.
Bytes request_data(DAT_CR_HANDLE cr);

}  // namespace tools

#endif
