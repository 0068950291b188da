// SPDX-License-Identifier: BSD-3-Clause
#include "os/socket.h"

#include <cerrno>

#include "os/uncancelled.h"

namespace anydat::os {

UniqueFd open_socket(int family, int type, int protocol) {
  return UniqueFd::of([=] { return ::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol); });
}

bool bind(int socket, const sockaddr& to, socklen_t bytes) {
  return ::bind(socket, &to, bytes) == 0;
}

bool connect(int socket, const sockaddr& to, socklen_t bytes) {
  return uncancelled::connect(socket, &to, bytes) == 0;
}

bool listen(int socket) {
  return ::listen(socket, SOMAXCONN) == 0;
}

UniqueFd accept(int socket, sockaddr_storage& from) {
  socklen_t bytes = sizeof from;
  return UniqueFd::of([&] {
    return uncancelled::accept4(socket, reinterpret_cast<sockaddr*>(&from), &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
  });
}

bool is_local(int socket) {
  int domain = 0;
  socklen_t bytes = sizeof domain;
  return getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX;
}

int take_error(int socket) {
  int error = 0;
  socklen_t bytes = sizeof error;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

void stop_listening(int socket) {
  shutdown(socket, SHUT_RD);
}

void stop_sending(int socket) {
  shutdown(socket, SHUT_WR);
}

ssize_t receive_now(int socket, std::span<std::byte> room) {
  return uncancelled::recv(socket, room.data(), room.size(), MSG_DONTWAIT);
}

ssize_t send_now(int socket, std::span<const std::byte> bytes) {
  return uncancelled::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

namespace {

msghdr message_of(std::span<iovec> pieces) {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return message;
}

}  // namespace

ssize_t receive_now(int socket, std::span<iovec> pieces) {
  msghdr message = message_of(pieces);
  return uncancelled::recvmsg(socket, &message, MSG_DONTWAIT);
}

ssize_t send_now(int socket, std::span<iovec> pieces) {
  const msghdr message = message_of(pieces);
  return uncancelled::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace anydat::os
