// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/buffer_wait.h"

#include "nic/soft/adapter.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

namespace {

// How long a message waits for a buffer before what is behind it is looked at.
constexpr base::Nanoseconds kPatience = 1'000'000;
// Of messages without a buffer. What has been read from the socket before that is known comes on top.
constexpr std::size_t kParkedMax = 1 << 20;
// The same when many do it, and all that they keep together is as much as they may (ParkedTogether).
constexpr std::size_t kParkedByManyMax = 64 << 10;
// And when the peer has hung up: the word of how it ends comes behind all that it sent, which is no more than sockets
// hold.
constexpr std::size_t kParkedAtEndMax = 16 << 20;

}  // namespace

BufferWait::BufferWait(TcpStream& stream) : stream_(stream), parked_(stream.fabric().parked()) {}

bool BufferWait::reads_no_more(bool hung_up) {
  if (stuck_) return true;
  if (parked_.empty()) return false;
  if (hung_up) return parked_.cost() >= kParkedAtEndMax;
  if (!looks_past_ || parked_.cost() >= kParkedMax) return true;
  ParkedTogether& all = stream_.fabric().parked();
  if (parked_.cost() < kParkedByManyMax || !all.full()) return false;
  all.wait_for_room(stream_.reading_turn());
  return true;
}

void BufferWait::be_patient() {
  since_ = base::now_ns();
  // One that is set already does: it looks how long this has lasted.
  if (!patience_.pending()) stream_.fabric().engine().set_timer(patience_, since_ + kPatience);
}

void BufferWait::patience_ended() {
  if (stream_.over() || !any()) return;
  if (base::now_ns() - since_ < kPatience) {
    stream_.fabric().engine().set_timer(patience_, since_ + kPatience);
  } else {
    stream_.look_past();
  }
}

void BufferWait::drop() {
  begun_ = nullptr;
  stuck_ = false;
  stream_.fabric().engine().cancel_timer(patience_);
  let_go(take_held());
  stream_.fabric().parked().forget(stream_.reading_turn());
  parked_.clear();
}

void BufferWait::hold(std::span<const std::byte> bytes) {
  if (held_.bytes.capacity() == 0) held_.bytes = stream_.fabric().staging().take_spare();
  held_.bytes.assign(bytes.begin(), bytes.end());
  held_.from = 0;
}

void BufferWait::hold_on(Held held, std::size_t count) {
  held.from = held.bytes.size() - count;
  held_ = std::move(held);
}

void BufferWait::let_go(Held held) {
  stream_.fabric().staging().give_spare(std::move(held.bytes));
}

}  // namespace anydat::nic::soft::iwarp
