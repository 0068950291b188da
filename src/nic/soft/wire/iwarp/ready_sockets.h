// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "nic/budget.h"
#include "os/epoll.h"

namespace anydat::nic::soft::iwarp {

class TcpStream;

// One epoll for the sockets of all connections, and what it has said that the connections have not been told yet, in
// the order in which it was said. With the engine held.
class ReadySockets {
 public:
  bool open() { return epoll_.open(); }
  int fd() const { return epoll_.descriptor(); }
  bool is_open() const { return epoll_.is_open(); }
  // The descriptor is not ours any more: no set is changed from now on, which may be the program's.
  void note_loss() { lost_ = true; }

  // Each event is told once (EPOLLET).
  bool add(TcpStream& stream, int fd);
  void remove(TcpStream& stream, int fd);
  // Whether arrivals at this socket are told at all.
  void tell_arrivals(TcpStream& stream, bool on);

  // Asks epoll, once. What is new goes behind what has not been told yet. False if the descriptor is no longer ours.
  bool fetch();
  bool empty() const { return told_next_.empty(); }
  struct Word {
    TcpStream* stream;  // null if its connection has been removed since
    std::uint32_t events;
  };
  Word take_first();

  bool any_of_others(const TcpStream& than) const;
  // Whether another had an event before this one had an arrival.
  bool others_before(const TcpStream& its) const;

 private:
  os::Epoll epoll_;
  bool lost_ = false;
  std::array<epoll_event, budget::kReadyPerPass> events_;
  std::span<epoll_event> told_next_;  // of those
};

}  // namespace anydat::nic::soft::iwarp
