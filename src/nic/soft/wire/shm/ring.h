// SPDX-License-Identifier: BSD-3-Clause
// The two ends of a segment. Each keeps its own counts and believes the other's only as far as they are possible.
#pragma once

#include <algorithm>
#include <cstring>

#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/segment.h"

namespace anydat::nic::soft::shm {

// The sending end. Not thread safe.
class RingWriter {
 public:
  void attach(const Segment& segment) {
    order_ = segment.order();
    header_ = &segment.header();
    cells_ = segment.cells();
    bulk_ = segment.bulk();
  }

  // Room for a message of `cells` cells, consecutive; null if there is none now. Fill the body, then publish().
  std::byte* begin(std::uint32_t cells) {
    if (produced_ + cells > straight_until_) [[unlikely]] {
      if (!make_way(cells)) return nullptr;
    }
    return cell(produced_) + kCellHeaderBytes;
  }

  // Requires: begin(cells) has returned `body` just before.
  void publish(std::byte* body, CellKind kind, std::uint8_t flags, std::uint32_t cells, std::uint32_t length,
               std::uint32_t connection, std::uint32_t aux) {
    auto* header = reinterpret_cast<CellHeader*>(body - kCellHeaderBytes);
    header->length = length;
    header->connection = connection;
    header->aux = aux;
    order_.published();
    // Release: the body, the header and the cleared successor come before `ready`.
    header->ready.store(pack_ready(kind, flags, cells), std::memory_order_release);
    produced_ += cells;
    // Off the way of the message that has just gone.
    if (produced_ >= prepare_at_) [[unlikely]]
      prepare_ahead();
  }

  // Room for `bytes` consecutive bulk bytes; null if there is none now. `position` names them.
  std::byte* begin_bulk(std::size_t bytes, std::uint64_t& position) {
    const std::uint64_t rounded = (bytes + 63) & ~std::uint64_t{63};
    const std::uint64_t to_end = kBulkBytes - (bulk_produced_ & (kBulkBytes - 1));
    const std::uint64_t start = rounded <= to_end ? bulk_produced_ : bulk_produced_ + to_end;
    if (start + rounded - bulk_consumed_ > kBulkBytes) {
      refresh();
      if (start + rounded - bulk_consumed_ > kBulkBytes) return nullptr;
    }
    position = start;
    return bulk_ + (start & (kBulkBytes - 1));
  }
  // Requires: begin_bulk(bytes, position) succeeded just before.
  void commit_bulk(std::size_t bytes, std::uint64_t position) {
    bulk_produced_ = position + ((bytes + 63) & ~std::size_t{63});
  }

  // False once the other side has claimed to have read what was never written, or less than it had claimed before.
  bool sane() const { return sane_; }

 private:
  std::uint32_t free_cells() const { return kCellCount - static_cast<std::uint32_t>(produced_ - consumed_); }
  std::byte* cell(std::uint64_t number) const { return cells_ + (number & (kCellCount - 1)) * kCellBytes; }

  // What begin() needs where that is not known beforehand. False: there is no room now.
  [[gnu::noinline]] bool make_way(std::uint32_t cells) {
    const std::uint32_t to_end = kCellCount - (produced_ & (kCellCount - 1));
    const std::uint32_t needed = cells <= to_end ? cells : to_end + cells;
    // One cell stays free behind every message for the cleared `ready`.
    if (free_cells() < needed + 1) {
      refresh();
      if (free_cells() < needed + 1) return false;
    }
    clear_to(produced_ + needed + 1);
    if (cells > to_end) publish(cell(produced_) + kCellHeaderBytes, CellKind::pad, 0, to_end, 0, 0, 0);
    note_way();
    return true;
  }

  void refresh() {
    const std::uint64_t cells = header_->cells_consumed.load(std::memory_order_acquire);
    const std::uint64_t bulk = header_->bulk_consumed.load(std::memory_order_acquire);
    if (cells < consumed_ || cells > produced_ || bulk < bulk_consumed_ || bulk > bulk_produced_) {
      sane_ = false;
      return;
    }
    consumed_ = cells;
    bulk_consumed_ = bulk;
  }

  // Clears the cells that come next: when their turn comes this processor owns their cache lines already, and nothing
  // has to be cleared before a message can be published.
  [[gnu::noinline]] void prepare_ahead() {
    const std::uint64_t wanted = produced_ + kPreparedCells + kPreparedAtOnce;
    if (wanted > consumed_ + kCellCount) refresh();
    clear_to(std::min(wanted, consumed_ + kCellCount));
    // Where the receiver is slow there may be next to nothing to clear, and it is not asked for each message.
    prepare_at_ = produced_ + kPreparedAtOnce;
    note_way();
  }
  void clear_to(std::uint64_t end) {
    for (; cleared_ < end; ++cleared_) {
      reinterpret_cast<CellHeader*>(cell(cleared_))->ready.store(0, std::memory_order_relaxed);
    }
  }
  void note_way() {
    const std::uint64_t end_of_lap = (produced_ | (kCellCount - 1)) + 1;
    straight_until_ = std::min(end_of_lap, cleared_ - 1);
  }

  static constexpr std::uint64_t kPreparedCells = 160;  // a little more than the largest message
  static constexpr std::uint64_t kPreparedAtOnce = 16;

  base::HiddenOrder order_;
  SegmentHeader* header_ = nullptr;
  std::byte* cells_ = nullptr;
  std::byte* bulk_ = nullptr;
  std::uint64_t produced_ = 0;
  // Cells from produced_ up to here hold no `ready` and are free; a new segment is all zero. Always above produced_,
  // and not above consumed_ + kCellCount.
  std::uint64_t cleared_ = kCellCount;
  std::uint64_t straight_until_ = kCellCount - 1;  // a message that ends here or before has room, in one piece
  std::uint64_t prepare_at_ = kCellCount - kPreparedCells;
  std::uint64_t consumed_ = 0;
  std::uint64_t bulk_produced_ = 0;
  std::uint64_t bulk_consumed_ = 0;
  bool sane_ = true;
};

// A message as the receiver found it. The header is a copy; the body is still shared and may change under the reader.
struct CellView {
  CellKind kind;
  std::uint8_t flags;
  std::uint32_t cells;
  std::uint32_t length;
  std::uint32_t connection;
  std::uint32_t aux;
  const std::byte* body;
  std::size_t body_room;  // bytes that the cells can hold
};

enum class ReadResult : std::uint8_t { empty, message, malformed };

// The receiving end. Not thread safe.
class RingReader {
 public:
  void attach(const Segment& segment) {
    order_ = segment.order();
    header_ = &segment.header();
    cells_ = segment.cells();
    bulk_ = segment.bulk();
    next_ = cell(consumed_);
  }

  // Whether there is nothing to peek at.
  bool empty() const { return next_->ready.load(std::memory_order_relaxed) == 0; }
  // Whether there is nothing behind the message that has been peeked at.
  bool is_last(const CellView& view) const {
    return cell(consumed_ + view.cells)->ready.load(std::memory_order_relaxed) == 0;
  }

  // The next message, without taking it. Kind and number of cells are checked, so `body_room` can be relied on. Length,
  // flags, connection and aux are as the peer wrote them: what handles the kind checks them. Inlined, so that a view
  // that is shown to no other function need not be in memory.
  [[gnu::always_inline]] ReadResult peek(CellView& view) const {
    const std::uint32_t index = consumed_ & (kCellCount - 1);
    const CellHeader* const header = next_;
    const std::uint32_t ready = header->ready.load(std::memory_order_acquire);
    if (ready == 0) return ReadResult::empty;
    order_.seen();
    const auto kind = static_cast<std::uint8_t>(ready);
    view.kind = static_cast<CellKind>(kind);
    view.flags = static_cast<std::uint8_t>(ready >> 8);
    view.cells = ready >> 16;
    view.length = header->length;
    view.connection = header->connection;
    view.aux = header->aux;
    view.body = reinterpret_cast<const std::byte*>(header) + kCellHeaderBytes;
    view.body_room = view.cells * kCellBytes - kCellHeaderBytes;
    // Its lines are on their way while the message is looked at.
    const std::uint32_t ahead = view.cells < kFetchedAhead ? view.cells : kFetchedAhead;
    for (std::uint32_t i = 1; i < ahead; ++i)
      __builtin_prefetch(cells_ + ((index + i) & (kCellCount - 1)) * kCellBytes);
    if (kind == 0 || kind > kCellKindLast || view.cells == 0 || view.cells > kCellCount - index) {
      return ReadResult::malformed;
    }
    return ReadResult::message;
  }
  void take(const CellView& view) {
    consumed_ += view.cells;
    next_ = cell(consumed_);
  }
  // The same in a row of messages: the lines of those that follow are fetched meanwhile.
  void take_of_row(const CellView& view) {
    take(view);
    __builtin_prefetch(cell(consumed_ + kFetchedInRow));
  }

  // The bytes of a piece, or null if it does not lie within the ring.
  const std::byte* bulk(std::uint64_t position, std::size_t bytes) const {
    const std::uint64_t offset = position & (kBulkBytes - 1);
    return bytes <= kBulkBytes - offset ? bulk_ + offset : nullptr;
  }
  void take_bulk(std::uint64_t position, std::size_t bytes) {
    bulk_consumed_ = position + ((bytes + 63) & ~std::size_t{63});
  }

  // While there is nothing to do: fetches the line behind the one that is watched, since a receiver that finds a
  // message looks there next.
  void prefetch_next() const { __builtin_prefetch(cell(consumed_ + 1)); }

  std::uint64_t unpublished() const { return consumed_ - published_; }
  void publish() {
    SegmentHeader& header = *header_;
    const std::uint64_t consumed = consumed_;
    published_ = consumed;
    header.bulk_consumed.store(bulk_consumed_, std::memory_order_relaxed);
    header.cells_consumed.store(consumed, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t kFetchedAhead = 8;
  static constexpr std::uint32_t kFetchedInRow = 6;

  const CellHeader* cell(std::uint64_t number) const {
    return reinterpret_cast<const CellHeader*>(cells_ + (number & (kCellCount - 1)) * kCellBytes);
  }

  base::HiddenOrder order_;
  SegmentHeader* header_ = nullptr;
  const std::byte* cells_ = nullptr;
  const std::byte* bulk_ = nullptr;
  const CellHeader* next_ = nullptr;  // the cell of consumed_
  std::uint64_t consumed_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t bulk_consumed_ = 0;
};

}  // namespace anydat::nic::soft::shm
