// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nic/soft/wire/iwarp/ready_sockets.h"

namespace anydat::nic::soft::iwarp {

class TcpStream;

// The connection whose socket is read directly, without asking epoll first, since all that came of late was its. With
// the engine held.
class BusySocket {
 public:
  explicit BusySocket(ReadySockets& ready) : ready_(ready) {}

  TcpStream* stream() const { return stream_; }
  // Whether epoll is told nothing of its arrivals.
  bool masked() const { return masked_; }

  // epoll has told of an arrival for this one. If it is the only connection, or nothing has come for others in a while,
  // its socket is the busy one from now on. Where several take turns epoll is asked, which tells whose word came first.
  void arrived(TcpStream& stream, bool alone);
  // Something has been read without asking epoll.
  void read_directly();
  // From now on epoll is told of all arrivals again: the engine goes to sleep, or another one is busy.
  void unmask() { mask(false); }
  void forget(const TcpStream& stream);

 private:
  void mask(bool on);

  ReadySockets& ready_;
  TcpStream* stream_ = nullptr;
  unsigned streak_ = 0;        // arrivals for it since anything came for another
  TcpStream* last_ = nullptr;  // the one that something has come for last
  unsigned in_a_row_ = 0;      // arrivals for that one, before its socket is the busy one
  bool masked_ = false;
};

}  // namespace anydat::nic::soft::iwarp
