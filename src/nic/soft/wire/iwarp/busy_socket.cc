// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/busy_socket.h"

#include <utility>

namespace anydat::nic::soft::iwarp {

namespace {
constexpr unsigned kStreak = 32;
constexpr unsigned kInARow = 8;
}  // namespace

void BusySocket::arrived(TcpStream& stream, bool alone) {
  if (stream_ == &stream) return;
  mask(false);
  stream_ = nullptr;
  if (std::exchange(last_, &stream) != &stream) in_a_row_ = 0;
  if (!alone && ++in_a_row_ < kInARow) return;
  in_a_row_ = 0;
  stream_ = &stream;
  streak_ = 0;
}

void BusySocket::read_directly() {
  if (++streak_ == kStreak) mask(true);
}

// While the socket is read all the time, word of each arrival is of no use, and costs the sender's system call half a
// microsecond on this host.
void BusySocket::mask(bool on) {
  streak_ = 0;
  if (masked_ == on || !stream_) return;
  masked_ = on;
  ready_.tell_arrivals(*stream_, !on);
}

void BusySocket::forget(const TcpStream& stream) {
  if (last_ == &stream) last_ = nullptr;
  if (stream_ == &stream) {
    stream_ = nullptr;
    masked_ = false;
  }
}

}  // namespace anydat::nic::soft::iwarp
