// SPDX-License-Identifier: BSD-3-Clause
#include "os/passed_descriptors.h"
#include "os/uncancelled.h"

#include <sys/socket.h>

#include <cassert>
#include <cerrno>
#include <cstring>

namespace anydat::os {

namespace {

constexpr std::size_t kDescriptorsMax = 4;

}  // namespace

bool send_with_descriptors(const LocalSocket& socket, std::span<const std::byte> bytes,
                           std::span<const int> descriptors) {
  assert(descriptors.size() <= kDescriptorsMax);
  if (!socket.is_ours()) return false;
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsMax * sizeof(int))] = {};
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return uncancelled::sendmsg(socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

// Those for which there is no room the system closes here and now, and where they are closed last, that takes what it
// takes. So the datagram is taken off the queue only when all that has come with it is known to have another
// descriptor, unless this process may have no more.
Arrived receive_with_descriptors(const LocalSocket& socket, std::span<std::byte> room, std::span<PassedFd> wanted) {
  assert(wanted.size() <= kDescriptorsMax);
  if (!may_pass_more(socket.peer())) [[unlikely]]
    wanted = {};
  iovec part{room.data(), room.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsMax * sizeof(int))];
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(wanted.size() * sizeof(int));  // and not one more
  ssize_t count = 0;
  std::size_t taken = 0;
  {
    const ForkHeldOff held_off;  // until the descriptors have owners
    count = uncancelled::recvmsg(socket.get(), &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0) return {errno == EAGAIN || errno == EINTR ? Arrival::nothing_yet : Arrival::hangup};
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      for (std::size_t offset = 0; CMSG_LEN(offset + sizeof(int)) <= header->cmsg_len; offset += sizeof(int)) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(header) + offset, sizeof number);
        wanted[taken++] = PassedFd(UniqueFd(Descriptors::move_up(number)), socket.peer());
      }
    }
  }
  // Fewer than there was room for: this process may have no more, and does without, as the peer may.
  const bool brings_too_many = (message.msg_flags & MSG_CTRUNC) != 0 && taken == wanted.size();
  if (count == 0 || brings_too_many) return {Arrival::hangup};
  msghdr nothing{};
  uncancelled::recvmsg(socket.get(), &nothing, MSG_DONTWAIT);
  return {Arrival::datagram, static_cast<std::size_t>(count), (message.msg_flags & MSG_TRUNC) != 0};
}

}  // namespace anydat::os
