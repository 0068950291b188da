// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/shm/stream.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/wire/shm/copy.h"
#include "nic/soft/wire/shm/fabric.h"

namespace anydat::nic::soft::shm {

namespace {

// Pieces per turn, so that one large message does not keep others of the link waiting.
constexpr int kPiecesPerTurn = 32;

}  // namespace

ShmStream::ShmStream(Fabric& fabric, SoftQueuePair& queue_pair)
    : fabric_(fabric), queue_pair_(queue_pair), name_(fabric.add(*this)) {}

ShmStream::~ShmStream() {
  fabric_.remove(*this);
  if (link_) link_->remove(*this);
}

void ShmStream::attach(std::shared_ptr<Link> link) {
  link_ = std::move(link);
  link_->add(*this);
}

bool ShmStream::awaits_ready_from(std::uint32_t remote) const {
  return remote_ == remote && queue_pair_.state() == SoftQueuePair::State::accepting;
}

// ---- sending

SendOutcome ShmStream::send(std::uint64_t number, const Outgoing& message) {
  if (message.length > kInlineBytesMax) return announce(number, message);
  const std::uint32_t cells = cells_for(message.length);
  if (window_used_ + cells - credited_.load(std::memory_order_relaxed) > kWindowCells) return SendOutcome::blocked;
  const bool sent =
      link_->try_send(*this, CellKind::send, message.solicited ? kFlagSolicited : 0, remote_,
                      static_cast<std::uint32_t>(message.length), [&](std::byte* body) {
                        for (const nic::Segment& segment : message.segments) {
                          if (segment.length == 0) continue;
                          std::memcpy(body, reinterpret_cast<const void*>(segment.address), segment.length);
                          body += segment.length;
                        }
                      });
  if (!sent) return SendOutcome::blocked;
  window_used_ += cells;
  return SendOutcome::done;
}

SendOutcome ShmStream::announce(std::uint64_t number, const Outgoing& message) {
  const std::uint64_t count = announced_count_.load(std::memory_order_relaxed);
  if (count - finished_.load(std::memory_order_relaxed) >= kAnnouncedMax) return SendOutcome::blocked;
  if (window_used_ + 1 - credited_.load(std::memory_order_relaxed) > kWindowCells) return SendOutcome::blocked;
  const AnnounceBody announcement{message.length};
  // Noted first: the grant may be there before try_send() has returned.
  announced_[count % kAnnouncedMax] = number;
  announced_count_.store(count + 1, std::memory_order_release);
  const bool sent =
      link_->try_send(*this, CellKind::announce, message.solicited ? kFlagSolicited : 0, remote_, sizeof announcement,
                      [&](std::byte* body) { std::memcpy(body, &announcement, sizeof announcement); });
  if (!sent) {
    announced_count_.store(count, std::memory_order_release);
    return SendOutcome::blocked;
  }
  window_used_ += 1;
  return SendOutcome::pending;
}

void ShmStream::room_available() {
  if (closed_) return;
  send_pieces();
  queue_pair_.pump();
}

// True while there may be more to send and nothing to wait for.
bool ShmStream::send_pieces() {
  for (int turn = 0; turn < kPiecesPerTurn && !closed_; ++turn) {
    const std::uint64_t current = finished_.load(std::memory_order_relaxed);
    if (current == granted_) return false;
    const std::uint64_t number = announced_[current % kAnnouncedMax];
    switch (send_piece(number)) {
      case PieceResult::sent:
        break;
      case PieceResult::no_room:
        return false;  // the link asks again
      case PieceResult::gone:
        finished_.store(current + 1, std::memory_order_relaxed);
        piece_offset_ = 0;
        queue_pair_.send_finished(number, WorkStatus::success);
        if (!closed_) queue_pair_.pump();
        break;
      case PieceResult::failed:
        queue_pair_.send_finished(number, WorkStatus::local_protection);
        return false;
    }
  }
  // Others first; the link comes back to us with its next pass.
  if (!closed_ && finished_.load(std::memory_order_relaxed) != granted_) link_->come_back(*this);
  return true;
}

// `gone`: the whole message has been sent.
ShmStream::PieceResult ShmStream::send_piece(std::uint64_t number) {
  PieceResult result = PieceResult::gone;
  queue_pair_.with_request(number, [&](const Outgoing& message) {
    if (piece_offset_ == message.length) return;
    // The memory may have been freed since the post (LMR-FREE-4).
    for (const nic::Segment& segment : message.segments) {
      if (segment.length == 0) continue;
      const RegionCheck check = fabric_.adapter().regions().check(segment.key, segment.address, segment.length,
                                                                  queue_pair_.zone(), access::kLocalRead);
      if (check != RegionCheck::ok) {
        result = PieceResult::failed;
        return;
      }
    }
    const std::uint64_t count = std::min<std::uint64_t>(kPieceBytesMax, message.length - piece_offset_);
    const bool sent = link_->try_send_piece(*this, remote_, static_cast<std::uint32_t>(count), [&](std::byte* to) {
      gather(message.segments, piece_offset_, count, [&](const std::byte* from, std::size_t part) {
        copy_streaming(to, from, part);
        to += part;
      });
      streamed_stores_done();
    });
    if (sent) piece_offset_ += count;
    if (!sent) {
      result = PieceResult::no_room;
    } else if (piece_offset_ < message.length) {
      result = PieceResult::sent;
    }
  });
  return result;
}

// ---- receiving

bool ShmStream::arrived(const CellView& view) {
  if (closed_) return true;
  const SoftQueuePair::State state = queue_pair_.state();
  const bool connected = state == SoftQueuePair::State::connected || state == SoftQueuePair::State::draining;
  switch (view.kind) {
    case CellKind::send:
      return connected && message_arrived(view);
    case CellKind::announce:
      return connected && announce_arrived(view);
    case CellKind::grant:
      if (!connected || granted_ >= announced_count_.load(std::memory_order_acquire)) return false;
      ++granted_;
      send_pieces();
      return true;
    case CellKind::credit: {
      const std::uint64_t credited = credited_.load(std::memory_order_relaxed) + view.aux;
      if (!connected || view.aux > kWindowCells) return false;
      credited_.store(credited, std::memory_order_relaxed);
      queue_pair_.pump();
      return true;
    }
    case CellKind::ready:
      if (state != SoftQueuePair::State::accepting) return false;
      queue_pair_.established({});
      return true;
    case CellKind::reject: {
      if (state != SoftQueuePair::State::connecting) return false;
      closed_ = true;
      const bool by_consumer = view.aux == static_cast<std::uint32_t>(RejectReason::by_consumer);
      queue_pair_.connect_failed(by_consumer ? ConnectFailure::rejected_by_peer : ConnectFailure::refused);
      return true;
    }
    case CellKind::close:
      if (view.aux > static_cast<std::uint32_t>(CloseReason::remote_access)) return false;
      close_arrived(static_cast<CloseReason>(view.aux));
      return true;
    default:
      return false;
  }
}

bool ShmStream::accept_arrived(const CellView& view) {
  AcceptBody body;
  if (view.body_room < sizeof body) return false;
  std::memcpy(&body, view.body, sizeof body);
  if (body.private_data_bytes > sizeof body.private_data) return false;
  if (closed_ || queue_pair_.state() != SoftQueuePair::State::connecting) {
    // EP-CONN-9: too late. The other side learns that its accept failed.
    link_->send_control(CellKind::close, body.connection, static_cast<std::uint32_t>(CloseReason::abrupt));
    return true;
  }
  remote_ = body.connection;
  link_->send_control(CellKind::ready, remote_, 0);
  queue_pair_.established({body.private_data, body.private_data_bytes});
  return true;
}

// Refuses a peer that sends more than its window: parking is what it costs us.
bool ShmStream::count_arrival(std::uint32_t cells) {
  arrived_cells_ += cells;
  return arrived_cells_ - returned_cells_ <= kWindowCells;
}

bool ShmStream::message_arrived(const CellView& view) {
  if (view.length > kInlineBytesMax || view.length > view.body_room || view.cells != cells_for(view.length))
    return false;
  if (!count_arrival(view.cells)) return false;
  const bool solicited = (view.flags & kFlagSolicited) != 0;
  if (parked_.empty() && queue_pair_.incoming_count() == 0) [[likely]] {
    if (queue_pair_.deliver(view.body, view.length, solicited)) {
      delivered(view.cells);
      return true;
    }
  }
  std::unique_ptr<std::byte[]> bytes(new std::byte[std::max<std::uint32_t>(view.length, 1)]);
  std::memcpy(bytes.get(), view.body, view.length);
  parked_.push_back({view.length, view.cells, false, solicited, std::move(bytes)});
  if (parked_.size() == 1 && queue_pair_.incoming_count() == 0) queue_pair_.wait_for_receive();
  return true;
}

bool ShmStream::announce_arrived(const CellView& view) {
  AnnounceBody body;
  std::memcpy(&body, view.body, sizeof body);
  if (body.length <= kInlineBytesMax || view.cells != 1 || !count_arrival(view.cells)) return false;
  const bool solicited = (view.flags & kFlagSolicited) != 0;
  if (parked_.empty() && queue_pair_.incoming_count() < kAnnouncedMax && accept_announced(body.length, solicited)) {
    delivered(view.cells);
    return true;
  }
  if (closed_) return true;
  const bool out_of_buffers = parked_.empty() && queue_pair_.incoming_count() < kAnnouncedMax;
  parked_.push_back({body.length, view.cells, true, solicited, nullptr});
  if (out_of_buffers) queue_pair_.wait_for_receive();
  return true;
}

bool ShmStream::accept_announced(std::uint64_t length, bool solicited) {
  if (!queue_pair_.begin(length, solicited)) return false;
  link_->send_control(CellKind::grant, remote_, 0);
  return true;
}

void ShmStream::resume_receiving() {
  while (!closed_ && !parked_.empty()) {
    Parked& message = parked_.front();
    if (message.announced ? queue_pair_.incoming_count() >= kAnnouncedMax : queue_pair_.incoming_count() > 0) return;
    // Parked messages are delivered one by one: each may be the last for want of a buffer.
    const bool taken = message.announced ? accept_announced(message.length, message.solicited)
                                         : queue_pair_.deliver(message.bytes.get(), message.length, message.solicited);
    fabric_.adapter().batch().flush();
    if (closed_) return;
    if (!taken) {
      queue_pair_.wait_for_receive();
      return;
    }
    const std::uint32_t cells = message.cells;
    parked_.pop_front();
    delivered(cells);
  }
  if (!closed_) queue_pair_.delivered_everything();
}

void ShmStream::delivered(std::uint32_t cells) {
  owed_cells_ += cells;
  if (owed_cells_ < kWindowCells / 4 || closed_) return;
  link_->send_control(CellKind::credit, remote_, owed_cells_);
  returned_cells_ += owed_cells_;
  owed_cells_ = 0;
}

void ShmStream::piece_arrived(const std::byte* bytes, std::size_t count) {
  if (closed_) return;
  Incoming* message = queue_pair_.current_incoming();
  if (!message || count > message->length - message->placed) {
    violated("it sent bytes that nobody asked for");
    return;
  }
  if (!queue_pair_.place(*message, bytes, count) || message->placed < message->length) return;
  if (queue_pair_.finish(*message)) resume_receiving();
}

// ---- the end

void ShmStream::violated(const char* what) {
  base::log(base::LogLevel::warn, "a connection with a local peer is cut: {}", what);
  queue_pair_.break_connection(WorkStatus::bad_response, CloseReason::abrupt);
}

void ShmStream::close(CloseReason reason) {
  if (closed_) return;
  closed_ = true;
  parked_.clear();
  if (queue_pair_.state() == SoftQueuePair::State::connecting) {
    if (link_) {
      link_->send_control(CellKind::cancel, 0, name_);
    } else {
      fabric_.cancel_attempt(*this);
    }
  } else {
    link_->send_control(CellKind::close, remote_, static_cast<std::uint32_t>(reason));
  }
}

void ShmStream::close_arrived(CloseReason reason) {
  if (closed_) return;
  if (reason != CloseReason::graceful) {
    closed_ = true;
    parked_.clear();
  }
  queue_pair_.peer_closed(reason);
}

void ShmStream::link_lost() {
  // A peer that closed in order may be gone before we have had buffers for all it sent: that is still to be delivered.
  if (queue_pair_.peer_closing() && holds_messages() && queue_pair_.incoming_count() == 0) return;
  closed_ = true;
  parked_.clear();
  queue_pair_.peer_lost();
}

}  // namespace anydat::nic::soft::shm
