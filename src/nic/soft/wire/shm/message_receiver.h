// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>

#include "nic/soft/adapter.h"
#include "nic/soft/queue_pair.h"
#include "nic/soft/resident_pages.h"
#include "nic/soft/wire/shm/flow_control.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/ring.h"

namespace anydat::nic::soft::shm {

class ShmStream;

// Messages that come over shared memory, in their order: each is delivered, or, a large one, given to the rendezvous
// receiver, if there is a receive buffer and nothing before it waits; else it goes into the backlog until it may be.
// The backlog counts against the connection's window.
//
// With the engine held. Lives and dies with its stream.
class MessageReceiver {
 public:
  explicit MessageReceiver(ShmStream& stream);
  MessageReceiver(const MessageReceiver&) = delete;
  MessageReceiver& operator=(const MessageReceiver&) = delete;

  // ---- what has arrived; false: malformed
  bool message_arrived(const CellView& view);
  bool announce_arrived(const CellView& view);
  bool immediate_arrived(const CellView& view);
  // A small message if it is as nearly all are: false may also mean that nothing has happened. `last()`: whether
  // nothing is behind it.
  template <typename Last>
  [[gnu::always_inline]] bool arrived_straight(const CellView& view, Last&& last) {
    return backlog_.empty() && receives_.arriving().empty() && view.length <= kInlineBytesMax &&
           view.cells == cells_for(view.length) && deliver_straight(view, last);
  }

  // ---- the backlog
  bool has_backlog() const { return !backlog_.empty(); }
  void deliver_backlog();  // as far as there are buffers
  void drop() { backlog_.clear(); }
  // The number of the first, if it is a large one.
  std::optional<std::uint32_t> announced_first() const {
    return backlog_.front().announcement ? std::optional(backlog_.front().sequence) : std::nullopt;
  }

  // What is delivered so has completed at its sender: what comes behind it is not to blame for it.
  template <typename Deliver>
  bool deliver_completed(Deliver&& deliver) {
    delivers_completed_ = true;
    const bool taken = deliver();
    delivers_completed_ = false;
    return taken;
  }
  bool delivers_completed() const { return delivers_completed_; }

 private:
  struct BacklogMessage {
    std::uint64_t length;
    std::uint32_t cells;
    bool solicited;
    std::unique_ptr<std::byte[]> bytes;          // a small message
    std::unique_ptr<AnnounceBody> announcement;  // or a large one
    std::uint32_t sequence;
    bool immediate = false;         // of a Write of that length
    std::uint32_t value = 0;        // that it is
    std::uint32_t invalidates = 0;  // the key that a small message names
  };
  template <typename Last>
  [[gnu::always_inline]] bool deliver_straight(const CellView& view, Last&& last) {
    const auto there = [this](const nic::Segment& to, ResidentPages::Stretch& seen) {
      return adapter_.resident_pages().seen({to.address, to.length}, true, adapter_.engine().moment(), seen);
    };
    const bool solicited = (view.flags & kFlagSolicited) != 0;
    if (!receives_.deliver_straight(view.body, view.length, solicited, last, there)) return false;
    delivered(view.cells);
    return true;
  }
  bool deliver_small(const std::byte* bytes, std::size_t length, bool solicited, std::uint32_t key);
  bool next_buffer_there(std::size_t length);
  bool may_begin(std::uint64_t length, std::uint32_t invalidates);
  void add_to_backlog(BacklogMessage message);
  void delivered(std::uint32_t cells) {
    if (window_.deliver(cells)) [[unlikely]]
      give_credit();
  }
  void give_credit();

  ShmStream& stream_;
  ReceiveSide& receives_;
  SoftAdapter& adapter_;
  // Takes no memory before there is something in it: most connections never have any.
  std::list<BacklogMessage> backlog_;
  ReceiveWindow window_;
  bool delivers_completed_ = false;
};

}  // namespace anydat::nic::soft::shm
