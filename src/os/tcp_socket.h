// SPDX-License-Identifier: BSD-3-Clause
// What only sockets of TCP over IPv4 and IPv6 have. An option that the system refuses is left as it was. An address of
// either kind has room in a sockaddr_in6.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "os/clock.h"
#include "os/unique_fd.h"

namespace anydat::os {

// Each of an address that is the socket's: its own, and the one that it is connected to. False if it has none.
bool local_end(int socket, sockaddr_in6& end);
bool remote_end(int socket, sockaddr_in6& end);

// What is written goes out at once, however little it is.
void send_without_delay(int socket);
// The peer's host is asked for a sign of life after so many seconds without one, and as long after each that has not
// been answered; the connection has failed after `probes` of them.
void probe_when_idle(int socket, int seconds, int probes);
// Before bind(): also to a port that has what is left of a connection.
void share_with_past(int socket);
// Before bind(): also to a port that another listens at that has asked for the same and is of our user.
void share_with_listeners(int socket);
// Before bind(): to addresses of IPv6 alone, or of IPv4 as well.
void take_ipv4_along(int socket, bool along);
// Before bind() without a port: the port is chosen with connect(), so that one can serve several remote ends.
void choose_port_late(int socket);

// How many bytes a segment to the peer can have; 0 if the system does not tell.
std::size_t segment_bytes(int socket);
// Takes bytes off what has arrived without looking at them; otherwise as receive_now() of os/socket.h.
ssize_t discard_now(int socket, std::size_t bytes);
// What the host at the other end has not acknowledged yet, the end of the stream being one more byte.
std::size_t unacknowledged(int socket);
// Closing it will be a reset, which frees at once what the peer has not taken.
void reset_on_close(const UniqueFd& socket);
// Has the host at the other end owed an answer for that long?
bool silent_for(int socket, Nanoseconds time);

}  // namespace anydat::os
