// SPDX-License-Identifier: BSD-3-Clause
#include "os/slow_close.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <new>

#include "os/fork.h"
#include "os/lock.h"
#include "os/thread.h"
#include "os/thread_signals.h"
#include "os/uncancelled.h"

namespace anydat::os {

namespace {

// One that lingers holds up those of its peer behind it, until so many do; and those of other peers when so many peers
// have such.
constexpr unsigned kThreadsOfPeer = 2;
constexpr unsigned kThreadsMax = 32;
// What is not closed yet, of all peers together; but of each at least so many.
constexpr std::size_t kUnclosedMax = 64;
constexpr std::size_t kUnclosedOfPeer = 8;
// Of memory that goes with its last descriptor, which takes a millisecond or two.
constexpr off_t kQuicklyFreed = off_t{64} << 20;
// So many unread datagrams are gone through here; a socket with more of them is left to the threads that close.
constexpr int kUnreadMax = 64;

class Closer {
 public:
  // May throw std::bad_alloc, and has not taken it then.
  void add(UniqueFd& descriptor, PeerName whose) {
    {
      Guard guard(lock_);
      const auto [at, is_new] = peers_.try_emplace(whose);
      Peer& peer = at->second;
      try {
        peer.waiting.push_back(std::move(descriptor));
      } catch (const std::bad_alloc&) {
        if (is_new) peers_.erase(at);
        throw;
      }
      held_.fetch_add(1, std::memory_order_relaxed);
      // Threads that have been started for others of it take this one, too.
      if (peer.held() > kThreadsOfPeer || threads_ == kThreadsMax) return;
      ++threads_;
    }
    // Without room for a thread who would have had one closes it himself.
    if (!start_thread()) close_here();
  }
  std::size_t held() const { return held_.load(std::memory_order_relaxed); }
  bool has_room_for(PeerName whose) {
    if (held() < kUnclosedOfPeer) return true;
    Guard guard(lock_);
    const auto found = peers_.find(whose);
    return found == peers_.end() || found->second.held() < std::max(kUnclosedOfPeer, kUnclosedMax / peers_.size());
  }

 private:
  struct Peer {
    std::deque<UniqueFd> waiting;
    unsigned closing = 0;  // a thread each
    std::size_t held() const { return waiting.size() + closing; }
  };
  using Peers = std::map<PeerName, Peer>;

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
    while (close_next()) {
    }
  }
  // What has been left to this thread meanwhile, too, unless there is another one to take it.
  void close_here() {
    while (close_next()) {
      if (start_thread()) return;
      Guard guard(lock_);
      if (threads_ > 1) {
        --threads_;
        return;
      }
    }
  }
  // False: there is nothing left to begin with, and one thread less.
  bool close_next() {
    Peers::iterator of;
    UniqueFd next = take_next(of);
    if (!next) return false;
    next.reset_slowly();
    Guard guard(lock_);
    held_.fetch_sub(1, std::memory_order_relaxed);
    --of->second.closing;
    if (of->second.held() == 0) peers_.erase(of);
    return true;
  }
  // Of the peer with the fewest threads.
  UniqueFd take_next(Peers::iterator& of) {
    Guard guard(lock_);
    of = peers_.end();
    for (auto each = peers_.begin(); each != peers_.end(); ++each) {
      const Peer& peer = each->second;
      if (peer.waiting.empty() || peer.closing >= kThreadsOfPeer) continue;
      if (of == peers_.end() || peer.closing < of->second.closing) of = each;
    }
    if (of == peers_.end()) {
      --threads_;
      return {};
    }
    UniqueFd next = std::move(of->second.waiting.front());
    of->second.waiting.pop_front();
    ++of->second.closing;
    return next;
  }

  Mutex lock_;
  Peers peers_ ANYDAT_GUARDED_BY(lock_);
  unsigned threads_ ANYDAT_GUARDED_BY(lock_) = 0;
  std::atomic<std::size_t> held_{0};
};
constinit PerProcess<Closer> closer;

// Only the kernel is asked, never a file system's server: only memory has seals.
bool is_freed_quickly(int descriptor) {
  struct stat status;
  return fcntl(descriptor, F_GET_SEALS) >= 0 && fstat(descriptor, &status) == 0 && status.st_size <= kQuicklyFreed;
}

// Of a local socket, which is over after that: its peer hears so at once, however long it takes to close. Its datagrams
// are gone through as far as none has brought a descriptor: that shows where there is no room for one. With the
// credentials that are asked for here a datagram is told from the end also if it is empty.
bool holds_no_descriptors(int socket) {
  const int on = 1;
  if (shutdown(socket, SHUT_RDWR) != 0 || setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
    return false;
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

void close_elsewhere(UniqueFd descriptor, PeerName whose) {
  if (!descriptor) return;
  try {
    closer->add(descriptor, whose);
  } catch (const std::bad_alloc&) {
    // It is closed here.
  }
}

std::size_t closing_elsewhere() {
  return closer->held();
}

bool may_pass_more(PeerName whose) {
  return closer->has_room_for(whose);
}

PassedFd::~PassedFd() {
  if (fd_ && !is_freed_quickly(fd_.get())) close_elsewhere(std::move(fd_), whose_);
}

void LocalSocket::reset() {
  UniqueFd socket = std::move(fd_);
  if (socket && socket.is_ours() && !holds_no_descriptors(socket.get())) close_elsewhere(std::move(socket), peer_);
}

}  // namespace anydat::os
