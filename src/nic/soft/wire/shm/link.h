// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/un.h>

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/biased_lock.h"
#include "base/list.h"
#include "nic/engine.h"
#include "nic/region_table.h"
#include "nic/soft/copy.h"
#include "nic/soft/delivery_batch.h"
#include "nic/soft/wire/shm/activity.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/doorbell.h"
#include "nic/soft/wire/shm/hazard_slots.h"
#include "nic/soft/wire/shm/hazards.h"
#include "nic/soft/wire/shm/link_set.h"
#include "nic/soft/wire/shm/mapping_exchange.h"
#include "nic/soft/wire/shm/peer_death.h"
#include "nic/soft/wire/shm/ring.h"
#include "nic/soft/wire/shm/transfer.h"
#include "os/slow_close.h"

namespace anydat::nic::soft::shm {

class Fabric;
class ShmRequest;
class ShmStream;

using NodeId = std::array<std::uint8_t, 16>;

// Two segments and a socket between this adapter and another one (or itself): what all connections between the two
// share. The socket carries wake-ups, and its end of file tells that the other side is gone.
//
// Thread safety: the sending half from any thread, under tx_lock_; all else with the engine held.
class Link final : public FdHandler, public std::enable_shared_from_this<Link> {
 public:
  // What both sides have shown each other before the link exists.
  struct Parts {
    os::LocalSocket socket;
    Segment inbound;
    Segment outbound;
    PeerRegions regions;
    ActivityTable marks;  // of the peer
    NodeId peer;
    bool initiated;
    bool fences;
  };
  Link(Fabric& fabric, Parts parts);
  ~Link() override;
  bool start();  // false when descriptors have run out
  void cut() { fail(nullptr); }
  void fail(const char* why);  // what the peer did wrong; null: it is over
  // Of a link that is over: whether the peer uses no memory of ours any more, or has had its time. Then finish() is
  // due, which a timer sees to as well.
  bool let_go() const;
  void finish();
  // Says what the peer did wrong, the first time: the log is not its to fill.
  void warn(const char* outcome, const char* offence);

  // The peer is that node of that process: a name alone is only what somebody claims.
  bool leads_to(const NodeId& node, const os::PeerProcess& process) const {
    return peer_ == node && peer_death_.process().is_same_as(process) && !peer_gone();
  }
  bool initiated() const { return initiated_; }
  bool dead() const { return dead_; }
  // Of one that is dead: until then the peer may use memory of ours.
  base::Nanoseconds end_at() const { return end_at_; }
  bool unused() const { return streams_.empty(); }

  void add(ShmStream& stream);
  void remove(ShmStream& stream);
  void add(ShmRequest& request);
  void remove(ShmRequest& request);

  // What finds no room is kept, in order, and goes before any later message. Never fails, unless it is by cutting the
  // link with the next pass: for want of memory, or because the peer asks on and takes no answers.
  void send_control(CellKind kind, std::uint32_t connection, std::uint32_t aux, std::span<const std::byte> body = {});

  bool controls_wait() {
    base::Guard guard(tx_lock_);
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

  // The stream has done what the peer waits for: IncomingWrites::tell_done() before anything else goes by, and soon.
  void owes_done(ShmStream& stream) {
    if (owing_ && owing_ != &stream) tell_done();
    owing_ = &stream;
  }

  // A stream's place among those that want to go on.
  struct Turn {
    explicit Turn(ShmStream& whose) : stream(whose) {}
    ShmStream& stream;
    base::ListLinks<Turn> place;
  };

  // The next pass calls stream.take_turn(). From any thread.
  void come_back(ShmStream& stream);

  // Copying directly between the two processes (cross_copy.h, transfer.h).
  bool reaches_peer() const { return peer_memory_.reachable(); }
  PeerMemory& peer_memory() { return peer_memory_; }
  bool within_process() const { return within_process_; }  // the peer is this process
  Doorbell& doorbell() { return doorbell_; }
  const os::PeerProcess& process() const { return peer_death_.process(); }
  const Segment& inbound() const { return inbound_; }
  const Segment& outbound() const { return outbound_; }
  SegmentHeader& outbound_header() const { return outbound_.header(); }  // where the peer's leaves are
  // Leave for the peer to copy from or to memory of this side.
  LeaveBook& leaves() { return leaves_; }
  // The process at the other end has ended or has given the link up: it copies nothing any more. A process gives a link
  // up after its own copies. With the engine, or inside a post that has found the gate open.
  bool peer_gone() const { return peer_death_.has_come(doorbell_.socket().get()); }
  const PeerRegions& peer_regions() const { return regions_; }
  // What the peer uses of this side's memory by RDMA, and the gates.
  Hazards& hazards() { return hazards_; }
  // For RDMA of this side on the peer's memory.
  HazardSlots& hazard_slots() { return hazard_slots_; }
  // Regions of the peer that are mapped here, and ours that are mapped there.
  MappingExchange& mappings() { return mappings_; }
  const MappingExchange& mappings() const { return mappings_; }
  bool serves_scope(ZoneId scope) const;  // a connection on it has that scope

  // For the set that it is in, which looks at it.
  LinkPlace& place() { return place_; }
  SegmentHeader& inbound_header() const { return inbound_.header(); }
  // Nothing has come, and nothing that is to go is waiting.
  bool quiet() const { return rx_.empty() && !something_waits(); }
  bool something_waits() const { return something_waits_.load(std::memory_order_relaxed); }
  // A turn: handles what there is, up to a bounded amount; true if there was anything.
  bool poll() {
    begin_turn();
    return go_through_turn();
  }
  // The same in steps, for several links at once: between the two, the first message may be taken by itself. A turn
  // that was begun is ended in any case.
  void begin_turn() {
    looking_ = true;
    progress_ = false;
  }
  void take_first_message();
  bool go_through_turn() {
    // Should something be thrown, the turn is over as well.
    struct End {
      ~End() { link.end_turn(); }
      Link& link;
    } const end{*this};
    if (something_waits()) [[unlikely]]
      send_what_waits();
    progress_ |= receive();
    return progress_;
  }
  void end_turn() { looking_ = false; }
  void want_room_again();

  void ready(std::uint32_t events) override;

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
           std::uint32_t aux, Fill&& fill) ANYDAT_REQUIRES(tx_lock_);
  bool put(std::uint32_t connection, const SingleSend& send, std::uint32_t cells) ANYDAT_REQUIRES(tx_lock_);
  bool write_control(CellKind kind, std::uint32_t connection, std::uint32_t aux, std::span<const std::byte> body)
      ANYDAT_REQUIRES(tx_lock_);
  void block(ShmStream& stream) ANYDAT_REQUIRES(tx_lock_);
  void want_room() ANYDAT_REQUIRES(tx_lock_);
  void send_what_waits();
  bool retry_blocked();
  bool receive();
  bool receive_otherwise();                     // one message; false: the link is over
  ShmStream* stream(std::uint32_t connection);  // null: there is none by this name
  bool dispatch(const CellView& view);          // false: malformed
  void publish_consumed();
  void tell_done();
  void something_is_to_go();
  void look_whether_let_go();

  Fabric& fabric_;
  DeliveryBatch& batch_;  // the adapter's
  // What each pass looks at.
  RingReader rx_;
  ShmStream* latest_ = nullptr;  // of the streams, to which a message came; or null
  ShmStream* owing_ = nullptr;   // of them, which has Writes to tell of; or null
  std::atomic<bool> something_waits_{false};
  bool dead_ = false;
  bool looking_ = false;   // within a turn
  bool progress_ = false;  // by this turn

  Segment inbound_;
  Segment outbound_;
  Doorbell doorbell_;
  PeerDeath peer_death_;
  const PeerRegions regions_;
  LinkPlace place_;
  MappingExchange mappings_;
  Hazards hazards_;
  const NodeId peer_;
  const bool initiated_;
  const bool fences_;
  bool warned_ = false;
  bool starved_ = false;         // a message to the peer is lost for want of memory
  bool deaf_ = false;            // the peer takes no answers (budget::kAnswersUntaken)
  bool within_process_ = false;  // fixed by the constructor
  PeerMemory peer_memory_;

  std::vector<ShmStream*> streams_;
  std::unordered_map<std::uint32_t, ShmRequest*> requests_;  // unanswered ones, by the peer's name for the connection
  Timer unused_timer_;
  Timer end_timer_;
  WorkStatus end_status_ = WorkStatus::transport;
  base::Nanoseconds end_at_ = 0;

  base::Biased<base::SpinLock> tx_lock_;
  RingWriter tx_ ANYDAT_GUARDED_BY(tx_lock_);
  std::deque<Control> waiting_controls_ ANYDAT_GUARDED_BY(tx_lock_);
  std::size_t answers_untaken_ ANYDAT_GUARDED_BY(tx_lock_) = 0;  // of them those that budget::kAnswersUntaken is about
  base::List<Turn, &Turn::place> blocked_ ANYDAT_GUARDED_BY(tx_lock_);
  std::uint64_t sent_ ANYDAT_GUARDED_BY(tx_lock_) = 0;
  HazardSlots hazard_slots_;
  LeaveBook leaves_;
};

// Publishes one message of cells. False if there is no room.
template <typename Fill>
inline bool Link::put(CellKind kind, std::uint8_t flags, std::uint32_t connection, std::uint32_t cells,
                      std::uint32_t length, std::uint32_t aux, Fill&& fill) {
  std::byte* body = waiting_controls_.empty() ? tx_.begin(cells) : nullptr;
  if (!body) [[unlikely]]
    return false;
  fill(body);
  tx_.publish(kind, flags, cells, length, connection, aux);
  ++sent_;
  return true;
}

template <typename Fill>
inline bool Link::try_send(ShmStream& stream, CellKind kind, std::uint8_t flags, std::uint32_t connection,
                           std::uint32_t length, std::uint32_t aux, Fill&& fill) {
  {
    base::Guard guard(tx_lock_);
    if (!put(kind, flags, connection, cells_for(length), length, aux, fill)) [[unlikely]] {
      block(stream);
      return false;
    }
  }
  doorbell_.attract();
  return true;
}

inline bool Link::put(std::uint32_t connection, const SingleSend& send, std::uint32_t cells) {
  const auto length = static_cast<std::uint32_t>(send.segment.length);
  return put(
      CellKind::send, send.flags.solicited() ? kFlagSolicited : 0, connection, cells, length, 0,
      [&](std::byte* body) { copy_short(body, reinterpret_cast<const std::byte*>(send.segment.address), length); });
}

inline bool Link::try_send_again(std::uint32_t connection, const SingleSend& send, std::uint32_t cells) {
  {
    base::Guard guard(tx_lock_);
    if (!put(connection, send, cells)) [[unlikely]]
      return false;
  }
  doorbell_.attract();
  return true;
}

template <typename Fill>
inline bool Link::try_send_again(CellKind kind, std::uint8_t flags, std::uint32_t connection, std::uint32_t length,
                                 Fill&& fill) {
  {
    base::Guard guard(tx_lock_);
    if (!put(kind, flags, connection, cells_for(length), length, 0, fill)) [[unlikely]]
      return false;
  }
  doorbell_.attract();
  return true;
}

inline std::size_t Link::try_send_row(std::uint32_t connection, std::span<const SingleSend> sends,
                                      std::uint64_t& cells_left) {
  std::size_t sent = 0;
  {
    base::Guard guard(tx_lock_);
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
bool Link::try_send_piece(ShmStream& stream, CellKind kind, std::uint8_t flags, std::uint32_t connection,
                          std::uint32_t length, std::uint32_t aux, Body body, Fill&& fill) {
  static_assert(sizeof(Body) <= kCellBytes - kCellHeaderBytes);
  {
    base::Guard guard(tx_lock_);
    std::byte* bulk = waiting_controls_.empty() ? tx_.begin_bulk(length, body.position) : nullptr;
    std::byte* to = bulk ? tx_.begin(1) : nullptr;
    if (!to) {
      block(stream);
      return false;
    }
    fill(bulk);
    tx_.commit_bulk(length, body.position);
    std::memcpy(to, &body, sizeof body);
    tx_.publish(kind, flags, 1, length, connection, aux);
    ++sent_;
  }
  doorbell_.attract();
  return true;
}

}  // namespace anydat::nic::soft::shm
