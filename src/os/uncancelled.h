// SPDX-License-Identifier: BSD-3-Clause
// System calls that are no cancellation points. libc's own end a thread that has been cancelled, in the middle of ours
// and with our locks held; the library is one for dat_evd_wait and dat_cno_wait alone (os/cancel.h). Called like
// libc's.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace anydat::os::uncancelled {

inline ssize_t read(int fd, void* to, std::size_t bytes) {
  return syscall(SYS_read, fd, to, bytes);
}
inline ssize_t pread(int fd, void* to, std::size_t bytes, off_t from) {
  return syscall(SYS_pread64, fd, to, bytes, from);
}
inline int msync(void* pages, std::size_t bytes, int flags) {
  return static_cast<int>(syscall(SYS_msync, pages, bytes, flags));
}
inline ssize_t write(int fd, const void* from, std::size_t bytes) {
  return syscall(SYS_write, fd, from, bytes);
}
inline int open(const char* path, int flags) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, 0));
}
inline int close(int fd) {
  return static_cast<int>(syscall(SYS_close, fd));
}
inline ssize_t send(int fd, const void* from, std::size_t bytes, int flags) {
  return syscall(SYS_sendto, fd, from, bytes, flags, nullptr, 0);
}
inline ssize_t recv(int fd, void* to, std::size_t bytes, int flags) {
  return syscall(SYS_recvfrom, fd, to, bytes, flags, nullptr, nullptr);
}
inline ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return syscall(SYS_sendmsg, fd, message, flags);
}
inline ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return syscall(SYS_recvmsg, fd, message, flags);
}
inline int connect(int fd, const sockaddr* to, socklen_t bytes) {
  return static_cast<int>(syscall(SYS_connect, fd, to, bytes));
}
inline int accept4(int fd, sockaddr* from, socklen_t* bytes, int flags) {
  return static_cast<int>(syscall(SYS_accept4, fd, from, bytes, flags));
}
inline int epoll_wait(int fd, epoll_event* events, int most, int milliseconds) {
  return static_cast<int>(syscall(SYS_epoll_pwait, fd, events, most, milliseconds, nullptr, 0));
}
inline int poll(pollfd* entries, nfds_t count, int milliseconds) {
  timespec time{milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1'000'000};
  return static_cast<int>(syscall(SYS_ppoll, entries, count, milliseconds < 0 ? nullptr : &time, nullptr, 0));
}
inline int nanosleep(const timespec* time) {
  return static_cast<int>(syscall(SYS_nanosleep, time, nullptr));
}

}  // namespace anydat::os::uncancelled
