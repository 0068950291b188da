// SPDX-License-Identifier: BSD-3-Clause
// Which socket a connection has, and by which addresses.
#pragma once

#include <sys/socket.h>

#include "nic/adapter.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft {
class SoftAdapter;
}

namespace anydat::nic::soft::iwarp {

// The port of an address is the qualifier.
Address with_port(const Address& address, std::uint64_t port);
std::uint64_t port_of(const Address& address);
socklen_t size_of(const Address& address);
// IPv4 addresses that came in by an IPv6 socket become what they are.
Address plain(const sockaddr_in6& any);
// Both ends of a connected socket.
bool ends_of(int fd, Address& local, Address& remote);
// What every connection's socket is to be like.
void prepare(int fd, const SoftAdapter& adapter);
// A socket that is about to connect to there: from an address of the adapter's device, from a port of the range that
// was chosen. A refusal can come at once on this host; then there is no socket.
struct Call {
  Status status = Status::ok;
  os::UniqueFd socket;
};
Call call(const SoftAdapter& adapter, const Address& remote);
// A socket that may do so later, with its port, which no other connection is given meanwhile. Empty: there is none, and
// `status` tells why.
Call reserve(const SoftAdapter& adapter, const Address& remote);
// Connects it; from another port where that one has a connection to there already, or what is left of one.
Call call(const SoftAdapter& adapter, const Address& remote, os::UniqueFd reserved);
// Of a socket that is bound.
Address local_end(int fd);
// What a failed call of connect(2), or a failed connection, means.
ConnectFailure failure_of(int error);

}  // namespace anydat::nic::soft::iwarp
