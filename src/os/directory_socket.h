// SPDX-License-Identifier: BSD-3-Clause
// Local sockets that have their names in a directory: those who share the directory meet there, whatever namespaces
// they live in.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "os/unique_fd.h"

namespace anydat::os {

// The name of a socket of ours, which goes with its owner. As long as the socket listens no other process of ours
// removes it.
class DirectoryName {
 public:
  DirectoryName() = default;
  DirectoryName(DirectoryName&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        device_(other.device_),
        number_(other.number_),
        process_(other.process_) {}
  DirectoryName& operator=(DirectoryName&&) = delete;
  ~DirectoryName() { remove(); }
  void remove();  // Requires: the socket listens still.

 private:
  friend UniqueFd listen_in_directory(const std::string&, const std::string&, bool, DirectoryName&, int&);
  std::string path_;
  dev_t device_ = 0;
  ino_t number_ = 0;
  pid_t process_ = 0;  // a child of it has nothing to remove
};

// All of these want the folder to be a folder, not a link to one, and to belong to this user or the superuser.
//
// A socket (SOCK_SEQPACKET, not blocking) that listens at `folder`/`name`. The folder is made if its parent is there. A
// name that another process has left behind, and at which no socket listens any more, is replaced; two processes that
// find the same one take turns by a lock on the folder. Empty, and the reason in `error`: EADDRINUSE if a socket
// listens there already, EACCES if the folder is another user's, EWOULDBLOCK if the lock is taken; with `waits`, if it
// stays taken for 50 ms.
UniqueFd listen_in_directory(const std::string& folder, const std::string& name, bool waits, DirectoryName& owner,
                             int& error);

// A socket that is connected to the one that listens at `path`. Empty, and the reason in `error`: EAGAIN if too many
// are calling there.
UniqueFd connect_in_directory(const std::string& path, int& error);

bool is_socket(const std::string& path);

}  // namespace anydat::os
