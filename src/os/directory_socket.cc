// SPDX-License-Identifier: BSD-3-Clause
#include "os/directory_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/uncancelled.h"

namespace anydat::os {

namespace {

// Whoever holds the lock makes a few system calls; one that is stopped meanwhile is not waited for.
constexpr int kLockTries = 50;
constexpr timespec kBetweenTries{0, 1'000'000};

base::UniqueFd new_socket() {
  return base::UniqueFd::of([] { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
}

base::UniqueFd open_folder(const std::string& folder) {
  return base::UniqueFd::of([&] { return uncancelled::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
}

// The address of a socket has room for short paths only. A longer one is told by way of a descriptor of its folder.
class SocketAddress {
 public:
  SocketAddress(const std::string& folder, const std::string& name) {
    std::string path = folder + "/" + name;
    if (path.size() >= sizeof address_.sun_path) {
      folder_ = open_folder(folder);
      path = "/proc/self/fd/" + std::to_string(folder_.get()) + "/" + name;
      fits_ = folder_ && path.size() < sizeof address_.sun_path;
    }
    if (!fits_) return;
    address_.sun_family = AF_UNIX;
    std::memcpy(address_.sun_path, path.c_str(), path.size() + 1);
  }
  int bind(int socket) const { return fits_ ? ::bind(socket, get(), sizeof address_) : too_long(); }
  int connect(int socket) const { return fits_ ? uncancelled::connect(socket, get(), sizeof address_) : too_long(); }

 private:
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  static int too_long() {
    errno = ENAMETOOLONG;
    return -1;
  }

  sockaddr_un address_{};
  base::UniqueFd folder_;
  bool fits_ = true;
};

bool lock(int folder) {
  for (int tries = 0; tries < kLockTries; ++tries) {
    if (::flock(folder, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    uncancelled::nanosleep(&kBetweenTries);
  }
  return false;
}

// Removes what somebody has left behind. 0 if the name is free now. Requires: the folder's lock.
int make_free(int folder, const std::string& name, const SocketAddress& address) {
  struct stat there {};
  if (::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : errno;
  if (!S_ISSOCK(there.st_mode)) return EEXIST;
  const base::UniqueFd socket = new_socket();
  if (!socket) return errno;
  if (address.connect(socket.get()) == 0 || errno == EAGAIN) return EADDRINUSE;
  if (errno != ECONNREFUSED) return errno;
  return ::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT ? 0 : errno;
}

}  // namespace

void DirectoryName::remove() {
  struct stat there {};
  if (path_.empty() || process_ != ::getpid()) return;
  if (::lstat(path_.c_str(), &there) == 0 && there.st_dev == device_ && there.st_ino == number_) {
    ::unlink(path_.c_str());
  }
  path_.clear();
}

base::UniqueFd listen_in_directory(const std::string& folder, const std::string& name, DirectoryName& owner,
                                   int& error) {
  ::mkdir(folder.c_str(), 0700);  // it may be there
  const base::UniqueFd directory = open_folder(folder);
  base::UniqueFd socket = new_socket();
  const SocketAddress address(folder, name);
  struct stat made {};
  error = 0;
  if (!directory || !socket) {
    error = errno;
  } else if (!lock(directory.get())) {
    error = errno;
  } else if ((error = make_free(directory.get(), name, address)) == 0) {
    if (address.bind(socket.get()) != 0 || ::listen(socket.get(), SOMAXCONN) != 0 ||
        ::fstatat(directory.get(), name.c_str(), &made, AT_SYMLINK_NOFOLLOW) != 0) {
      error = errno;
    }
  }
  if (error != 0) return {};
  owner.path_ = folder + "/" + name;
  owner.device_ = made.st_dev;
  owner.number_ = made.st_ino;
  owner.process_ = ::getpid();
  return socket;
}

base::UniqueFd connect_in_directory(const std::string& path, int& error) {
  const std::size_t slash = path.rfind('/');
  const SocketAddress address(path.substr(0, slash), path.substr(slash + 1));
  base::UniqueFd socket = new_socket();
  if (socket && address.connect(socket.get()) == 0) return socket;
  error = errno;
  return {};
}

bool is_socket(const std::string& path) {
  struct stat there {};
  return ::lstat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode);
}

}  // namespace anydat::os
