// SPDX-License-Identifier: BSD-3-Clause
// The process at the other end of a local socket.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "os/unique_fd.h"

namespace anydat::os {

class PeerProcess {
 public:
  PeerProcess() = default;
  // The process that connected the socket, or that listened for it.
  explicit PeerProcess(int socket);

  // Its number here. 0: it has none in this PID namespace, which says nothing about whether it lives.
  pid_t pid() const { return pid_; }
  bool is_this_process() const;
  // Becomes readable when the process has ended, all of its threads; -1 if the kernel gives no such descriptor. It
  // tells also where a child of the process still holds the other end of the socket.
  int descriptor() const { return descriptor_.get(); }

  // Whether both are one process, as far as the kernel tells: by its number and, from Linux 6.9 on, by the descriptor
  // as well. Processes without a number here count as one before that. Requires: neither has ended.
  bool is_same_as(const PeerProcess& other) const;

  // One of its threads, by the number that the process itself calls it by, as it is called here. 0: it has no such
  // thread that can be named from here.
  pid_t thread(pid_t as_it_says) const;

 private:
  UniqueFd descriptor_;
  pid_t pid_ = 0;
};

// The process at the other end, told from others as long as it lives; for counting only. Those that have no number in
// this PID namespace have one name before Linux 6.9.
using PeerName = std::uint64_t;
PeerName peer_name(int socket);

// Whether the process at the other end is of our user. Its user's number is what our own user namespace makes of it:
// two containers of one user may call that user by different numbers. A user that has no number here is not ours.
bool peer_is_of_our_user(int socket);

// Whether the other end of a local socket has been closed or the process behind `process` has ended. A descriptor of -1
// is left out.
bool peer_has_hung_up(int socket, int process);

}  // namespace anydat::os
