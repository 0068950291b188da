// SPDX-License-Identifier: BSD-3-Clause
// Sockets of every kind. None of these waits or is a cancellation point.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "os/unique_fd.h"

namespace anydat::os {

// One that does not block, and is closed on exec. Empty, with errno set, if there is none.
UniqueFd open_socket(int family, int type, int protocol = 0);
// As bind(2), connect(2) and listen(2), for as many callers as the system lets wait. False, with errno set, if it is
// refused; of connect() also EINPROGRESS.
bool bind(int socket, const sockaddr& to, socklen_t bytes);
bool connect(int socket, const sockaddr& to, socklen_t bytes);
bool listen(int socket);
// The first caller that waits, whose socket is like those of open_socket(). Empty, with errno set: EAGAIN if none does.
UniqueFd accept(int socket, sockaddr_storage& from);

// Whether the socket is of AF_UNIX; false also where it cannot be told.
bool is_local(int socket);
// What has become of connect(): 0 if nothing has failed, else an error. The socket forgets it.
int take_error(int socket);
// From now on a peer that calls is refused; what has called before is still accepted.
void stop_listening(int socket);
// The peer finds the end of the stream behind what has been sent.
void stop_sending(int socket);

// recv(2) and send(2), and their like for pieces, without waiting. Without what the C library does around them, too, so
// that a thread can be cancelled there: that is a tenth of their cost, and none of ours is. And without what the thread
// sanitizer makes of them: which order a socket keeps it is told by base::HiddenOrder.
ssize_t receive_now(int socket, std::span<std::byte> room);
ssize_t receive_now(int socket, std::span<iovec> pieces);
ssize_t send_now(int socket, std::span<const std::byte> bytes);
ssize_t send_now(int socket, std::span<iovec> pieces);

}  // namespace anydat::os
