// SPDX-License-Identifier: BSD-3-Clause
#include "os/slow_close.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <deque>
#include <new>

#include "base/fork.h"
#include "base/lock.h"
#include "os/thread.h"
#include "os/thread_signals.h"
#include "os/uncancelled.h"

namespace anydat::os {

namespace {

// One that lingers holds up those behind it, until so many do.
constexpr unsigned kThreadsMax = 4;
// Of memory that goes with its last descriptor, which takes a millisecond or two.
constexpr off_t kQuicklyFreed = off_t{64} << 20;
// Datagrams that nobody has read, before it is left to others to go through them.
constexpr int kUnreadMax = 64;

class Closer {
 public:
  // May throw std::bad_alloc, and has not taken it then.
  void add(base::UniqueFd& descriptor) {
    {
      base::Guard guard(lock_);
      waiting_.push_back(std::move(descriptor));
      held_.fetch_add(1, std::memory_order_relaxed);
      if (threads_ == kThreadsMax) return;
      ++threads_;
    }
    // Without room for a thread who would have had one closes what it would have begun with.
    if (!start_thread()) close_one();
  }
  std::size_t held() const { return held_.load(std::memory_order_relaxed); }

 private:
  bool start_thread() {
    try {
      const SignalsOfOurThreads mask;
      Thread thread;
      if (!thread.start([this] { work(); })) return false;
      thread.detach();
      return true;
    } catch (const std::bad_alloc&) {
      return false;  // as without room for a thread
    }
  }
  void work() {
    while (base::UniqueFd next = take_next()) close(next);
  }
  void close_one() {
    if (base::UniqueFd next = take_next()) {
      close(next);
      base::Guard guard(lock_);
      --threads_;
    }
  }
  // None: there is nothing left, and one thread less.
  base::UniqueFd take_next() {
    base::Guard guard(lock_);
    if (waiting_.empty()) {
      --threads_;
      return {};
    }
    base::UniqueFd next = std::move(waiting_.front());
    waiting_.pop_front();
    return next;
  }
  void close(base::UniqueFd& descriptor) {
    descriptor.reset_slowly();
    held_.fetch_sub(1, std::memory_order_relaxed);
  }

  base::Mutex lock_;
  std::deque<base::UniqueFd> waiting_ ANYDAT_GUARDED_BY(lock_);
  unsigned threads_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::atomic<std::size_t> held_{0};
};
constinit base::PerProcess<Closer> closer;

// Asks nobody but the kernel: only memory has seals.
bool is_freed_quickly(int descriptor) {
  struct stat status;
  return fcntl(descriptor, F_GET_SEALS) >= 0 && fstat(descriptor, &status) == 0 && status.st_size <= kQuicklyFreed;
}

// Of a local socket, after which it receives nothing more. Its datagrams are gone through as far as none has brought a
// descriptor: that shows where there is no room for one. With the credentials that are asked for here a datagram is
// told from the end also if it is empty.
bool holds_no_descriptors(int socket) {
  const int on = 1;
  if (shutdown(socket, SHUT_RD) != 0 || setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) return false;
  for (int i = 0; i < kUnreadMax; ++i) {
    alignas(cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))];  // a ucred
    msghdr message{};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (uncancelled::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT) < 0) return false;
    if ((message.msg_flags & MSG_CTRUNC) != 0) return false;
    if (message.msg_controllen == 0) return true;
    message = {};
    if (uncancelled::recvmsg(socket, &message, MSG_DONTWAIT) < 0) return false;
  }
  return false;
}

}  // namespace

void close_elsewhere(base::UniqueFd descriptor) {
  if (!descriptor) return;
  try {
    closer->add(descriptor);
  } catch (const std::bad_alloc&) {
    // It is closed here.
  }
}

std::size_t closing_elsewhere() {
  return closer->held();
}

PassedFd::~PassedFd() {
  if (fd_ && !is_freed_quickly(fd_.get())) close_elsewhere(std::move(fd_));
}

void LocalSocket::reset() {
  base::UniqueFd socket = std::move(fd_);
  if (socket && socket.is_ours() && !holds_no_descriptors(socket.get())) close_elsewhere(std::move(socket));
}

}  // namespace anydat::os
