// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

#include "base/annotations.h"
#include "base/list.h"
#include "nic/engine.h"
#include "nic/soft/copy.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/shm/doorbell.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/ring.h"
#include "os/biased_lock.h"

namespace anydat::nic::soft::shm {

class Link;
class ShmStream;

// The sending half of a link, which all its connections share: messages go into the cells of the peer's segment, and
// the peer is told. What finds no room waits here: control messages in order, and streams, whose turn comes with the
// next pass once there is some.
//
// Thread safety: any thread, under lock_; send_control(), forget() and send_what_waits() with the engine held. Lives
// and dies with its link.
class LinkSender {
 public:
  // The socket and the marks are the bell's (Doorbell).
  LinkSender(Link& link, Engine& engine, const Segment& outbound, os::LocalSocket socket, MarkTable marks, bool fences);
  LinkSender(const LinkSender&) = delete;
  LinkSender& operator=(const LinkSender&) = delete;

  // Guards other things of the link as well that are written together with a message, or as seldom.
  os::Biased<os::SpinLock>& lock() ANYDAT_RETURN_CAPABILITY(lock_) { return lock_; }
  Doorbell& doorbell() { return doorbell_; }
  const Doorbell& doorbell() const { return doorbell_; }

  // What finds no room is kept, in order, and goes before any later message. Never fails, unless it is by cutting the
  // link with the next pass: for want of memory, or because the peer asks on and takes no answers.
  void send_control(CellKind kind, std::uint32_t connection, std::uint32_t aux, std::span<const std::byte> body = {});

  bool controls_wait() {
    os::Guard guard(lock_);
    return !waiting_controls_.empty();
  }

  // The sending half for streams. try_send() calls fill(body) with room for `length` bytes and publishes it; false if
  // there is no room, and `stream` is then asked again when there is.
  template <typename Fill>
  bool try_send(ShmStream& stream, CellKind kind, std::uint8_t flags, std::uint32_t connection, std::uint32_t length,
                std::uint32_t aux, Fill&& fill);
  // A Send of one segment that goes into so many cells. False if there is no room; no stream is asked again.
  bool try_send_again(std::uint32_t connection, const SingleSend& send, std::uint32_t cells);
  // As try_send(), but no stream is asked again.
  template <typename Fill>
  bool try_send_again(CellKind kind, std::uint8_t flags, std::uint32_t connection, std::uint32_t length, Fill&& fill);
  // Sends of one segment each, from the first on, as many as go into cells, there is room for, and `cells_left` lets
  // go. How many; it takes what they need from `cells_left`. No stream is asked again: try_send() is for the next one.
  std::size_t try_send_row(std::uint32_t connection, std::span<const SingleSend> sends, std::uint64_t& cells_left);
  // One piece through the bulk ring: fill(bytes) has room for `length` of them. The body's first member is their
  // position. False if there is no room; asked again as above.
  template <typename Body, typename Fill>
  bool try_send_piece(ShmStream& stream, CellKind kind, std::uint8_t flags, std::uint32_t connection,
                      std::uint32_t length, std::uint32_t aux, Body body, Fill&& fill);

  // A stream's place among those that want to go on.
  struct Turn {
    explicit Turn(ShmStream& whose) : stream(whose) {}
    ShmStream& stream;
    base::ListLinks<Turn> place;
  };

  // The next pass calls stream.take_turn(). From any thread.
  void schedule_turn(ShmStream& stream);
  void forget(ShmStream& stream);  // it does not come back

  // Within a turn of the link: what waits goes, as far as there is room.
  void send_what_waits();

 private:
  // In one row, which others of the link wait for.
  static constexpr std::uint64_t kRowBytesMax = 16 << 10;

  struct Control {
    CellKind kind;
    std::uint32_t connection;
    std::uint32_t aux;
    std::vector<std::byte> body;
  };

  template <typename Fill>
  bool put(CellKind kind, std::uint8_t flags, std::uint32_t connection, std::uint32_t cells, std::uint32_t length,
           std::uint32_t aux, Fill&& fill) ANYDAT_REQUIRES(lock_);
  bool put(std::uint32_t connection, const SingleSend& send, std::uint32_t cells) ANYDAT_REQUIRES(lock_);
  bool write_control(CellKind kind, std::uint32_t connection, std::uint32_t aux, std::span<const std::byte> body)
      ANYDAT_REQUIRES(lock_);
  void block(ShmStream& stream) ANYDAT_REQUIRES(lock_);
  void want_room() ANYDAT_REQUIRES(lock_);
  bool retry_blocked();

  Link& link_;
  Engine& engine_;
  SegmentHeader& header_;  // of the peer's segment
  bool starved_ = false;   // a message to the peer is lost for want of memory
  bool deaf_ = false;      // the peer takes nothing of what it is told (budget::kAnswersUntaken)
  Doorbell doorbell_;

  os::Biased<os::SpinLock> lock_;
  RingWriter ring_ ANYDAT_GUARDED_BY(lock_);
  std::deque<Control> waiting_controls_ ANYDAT_GUARDED_BY(lock_);
  base::List<Turn, &Turn::place> blocked_ ANYDAT_GUARDED_BY(lock_);
  std::uint64_t sent_ ANYDAT_GUARDED_BY(lock_) = 0;
};

// Publishes one message of cells. False if there is no room.
template <typename Fill>
inline bool LinkSender::put(CellKind kind, std::uint8_t flags, std::uint32_t connection, std::uint32_t cells,
                            std::uint32_t length, std::uint32_t aux, Fill&& fill) {
  std::byte* body = waiting_controls_.empty() ? ring_.begin(cells) : nullptr;
  if (!body) [[unlikely]]
    return false;
  fill(body);
  ring_.publish(body, kind, flags, cells, length, connection, aux);
  ++sent_;
  return true;
}

template <typename Fill>
inline bool LinkSender::try_send(ShmStream& stream, CellKind kind, std::uint8_t flags, std::uint32_t connection,
                                 std::uint32_t length, std::uint32_t aux, Fill&& fill) {
  {
    os::Guard guard(lock_);
    if (!put(kind, flags, connection, cells_for(length), length, aux, fill)) [[unlikely]] {
      block(stream);
      return false;
    }
  }
  doorbell_.attract();
  return true;
}

inline bool LinkSender::put(std::uint32_t connection, const SingleSend& send, std::uint32_t cells) {
  const auto length = static_cast<std::uint32_t>(send.segment.length);
  return put(
      CellKind::send, send.flags.solicited() ? kFlagSolicited : 0, connection, cells, length, 0,
      [&](std::byte* body) { copy_short(body, reinterpret_cast<const std::byte*>(send.segment.address), length); });
}

inline bool LinkSender::try_send_again(std::uint32_t connection, const SingleSend& send, std::uint32_t cells) {
  {
    os::Guard guard(lock_);
    if (!put(connection, send, cells)) [[unlikely]]
      return false;
  }
  doorbell_.attract();
  return true;
}

template <typename Fill>
inline bool LinkSender::try_send_again(CellKind kind, std::uint8_t flags, std::uint32_t connection,
                                       std::uint32_t length, Fill&& fill) {
  {
    os::Guard guard(lock_);
    if (!put(kind, flags, connection, cells_for(length), length, 0, fill)) [[unlikely]]
      return false;
  }
  doorbell_.attract();
  return true;
}

inline std::size_t LinkSender::try_send_row(std::uint32_t connection, std::span<const SingleSend> sends,
                                            std::uint64_t& cells_left) {
  std::size_t sent = 0;
  {
    os::Guard guard(lock_);
    std::uint64_t bytes_left = kRowBytesMax;
    for (const SingleSend& send : sends) {
      const std::uint64_t length = send.segment.length;
      if (length > kInlineBytesMax || length > bytes_left) break;
      const std::uint32_t cells = cells_for(static_cast<std::uint32_t>(length));
      if (cells > cells_left) break;
      if (!put(connection, send, cells)) break;
      cells_left -= cells;
      bytes_left -= length;
      ++sent;
    }
  }
  if (sent > 0) doorbell_.attract();
  return sent;
}

template <typename Body, typename Fill>
bool LinkSender::try_send_piece(ShmStream& stream, CellKind kind, std::uint8_t flags, std::uint32_t connection,
                                std::uint32_t length, std::uint32_t aux, Body body, Fill&& fill) {
  static_assert(sizeof(Body) <= kCellBytes - kCellHeaderBytes);
  {
    os::Guard guard(lock_);
    std::byte* bulk = waiting_controls_.empty() ? ring_.begin_bulk(length, body.position) : nullptr;
    std::byte* to = bulk ? ring_.begin(1) : nullptr;
    if (!to) {
      block(stream);
      return false;
    }
    fill(bulk);
    ring_.commit_bulk(length, body.position);
    std::memcpy(to, &body, sizeof body);
    ring_.publish(to, kind, flags, 1, length, connection, aux);
    ++sent_;
  }
  doorbell_.attract();
  return true;
}

}  // namespace anydat::nic::soft::shm
