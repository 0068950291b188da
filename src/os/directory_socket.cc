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

#include "os/local_socket.h"
#include "os/socket.h"
#include "os/uncancelled.h"

namespace anydat::os {

namespace {

// The holder of the lock makes a few system calls with it; one that is stopped meanwhile is not waited for.
constexpr int kLockTries = 50;
constexpr timespec kBetweenTries{0, 1'000'000};

// Empty, with errno set, if there is none that can be trusted: in a directory that many may write to, another user may
// have put a folder or a link there. The file system may keep the call waiting, so a fork is not held off meanwhile:
// what its child would keep open is a folder, which no peer notices.
UniqueFd open_folder(const std::string& folder) {
  UniqueFd fd(uncancelled::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return {};
  if (status.st_uid == ::geteuid() || status.st_uid == 0) return fd;
  fd.reset();
  errno = EACCES;
  return fd;
}

// The address of a socket has room for short paths only. A longer one is told by way of a descriptor of its folder.
class SocketAddress {
 public:
  // Requires: `descriptor` is the folder's, and stays open.
  SocketAddress(const std::string& folder, int descriptor, const std::string& name) {
    std::string path = folder + "/" + name;
    if (path.size() >= sizeof address_.sun_path) {
      // Not /proc/self, which shows nothing once the first thread of the process has ended.
      path = "/proc/thread-self/fd/" + std::to_string(descriptor) + "/" + name;
      fits_ = path.size() < sizeof address_.sun_path;
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
  bool fits_ = true;
};

struct Parts {
  std::string folder, name;
};
Parts parts_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return {path.substr(0, slash), path.substr(slash + 1)};
}

bool lock(int folder, bool waits) {
  for (int tries = 0;; ++tries) {
    if (::flock(folder, LOCK_EX | LOCK_NB) == 0) return true;
    if ((errno != EWOULDBLOCK && errno != EINTR) || !waits || tries == kLockTries) return false;
    uncancelled::nanosleep(&kBetweenTries);
  }
}

// Removes a socket that a process has left behind. 0 if the name is free now. Requires: the folder's lock.
int make_free(int folder, const std::string& name, const SocketAddress& address) {
  struct stat there {};
  if (::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : errno;
  if (!S_ISSOCK(there.st_mode)) return EEXIST;
  const UniqueFd socket = local_socket();
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

UniqueFd listen_in_directory(const std::string& folder, const std::string& name, bool waits, DirectoryName& owner,
                             int& error) {
  ::mkdir(folder.c_str(), 0700);  // it may be there
  const UniqueFd directory = open_folder(folder);
  error = errno;
  if (!directory) return {};
  UniqueFd socket = local_socket();
  const SocketAddress address(folder, directory.get(), name);
  struct stat made {};
  error = 0;
  if (!socket || !lock(directory.get(), waits)) {
    error = errno;
  } else if ((error = make_free(directory.get(), name, address)) == 0) {
    if (address.bind(socket.get()) != 0 || !listen(socket.get()) ||
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

UniqueFd connect_in_directory(const std::string& path, int& error) {
  const auto [folder, name] = parts_of(path);
  const UniqueFd directory = open_folder(folder);
  UniqueFd socket = directory ? local_socket() : UniqueFd();
  if (socket && SocketAddress(folder, directory.get(), name).connect(socket.get()) == 0) return socket;
  error = errno;
  return {};
}

bool is_socket(const std::string& path) {
  const auto [folder, name] = parts_of(path);
  const UniqueFd directory = open_folder(folder);
  struct stat there {};
  return directory && ::fstatat(directory.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISSOCK(there.st_mode);
}

}  // namespace anydat::os
