// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "nic/soft/own_pages.h"
#include "nic/soft/page_faulter.h"
#include "nic/soft/queue_pair.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/shm/link.h"

namespace anydat::nic::soft::shm {

class Fabric;

// One connection over a link.
//
// A small message is written into the link's ring by the posting thread and is done. It needs room in the connection's
// window: cells that the receiver has not delivered yet count against it, so a receiver without buffers holds back this
// connection and nobody else.
//
// A large message is announced, and the receiver, once it has taken a buffer, decides how it crosses: it pulls it out
// of the sender's memory, or lets the sender push it into the buffer, turn and turn about so that both processors copy;
// or, where the kernel does not allow that, the sender cuts it into pieces that go through the bulk ring.
class ShmStream final : public Stream, private OwnPages::User {
 public:
  ShmStream(Fabric& fabric, SoftQueuePair& queue_pair);
  ~ShmStream() override;

  std::uint32_t name() const { return name_; }  // what the peer calls this end
  const std::shared_ptr<Link>& link() const { return link_; }
  void attach(std::shared_ptr<Link> link);  // may throw std::bad_alloc, and has done nothing then
  void set_remote(std::uint32_t remote, const RdmaTerms& terms);
  RdmaTerms terms() const;  // of this end
  // Active side: what is asked for, kept until the answer, since a redirection makes us ask again elsewhere.
  void set_request(const ConnectBody& body) { request_ = std::make_unique<ConnectBody>(body); }
  void ask();  // Requires: attached
  bool awaits_ready_from(std::uint32_t remote) const;

  // Stream
  SendOutcome send(std::uint64_t number, const SendRequest& message, Progress& progress) override;
  bool send_again(const SingleSend& send) override;
  bool put_again(const SingleRdma& request) override;
  std::size_t send_row(const SendRow& row) override;
  void resume_receiving() override;
  bool lets_go_of(std::uint32_t key) override;
  const char* wire() const override { return "shm"; }
  bool holds_messages() const override { return !parked_.empty() || !large_.empty() || held_; }
  bool awaits_memory_for_parked() const override;
  bool memory_changed() override;
  bool let_go() override;
  void close(CloseReason reason) override;

  // For the link and the fabric.
  bool arrived(const CellView& view);  // false: malformed, as are the others
  // The same of a small message if it is as nearly all are: false may also mean that nothing has happened.
  // `last()`: whether nothing is behind it.
  template <typename Last>
  [[gnu::always_inline]] bool arrived_straight(const CellView& view, Last&& last) {
    return connected() && !closed_ && !held_ && parked_.empty() && receives_.arriving().empty() &&
           view.length <= kInlineBytesMax && view.cells == cells_for(view.length) && deliver_straight(view, last);
  }
  bool accept_arrived(const CellView& view);
  bool redirect_arrived(const CellView& view);
  bool piece_arrived(const CellView& view, const std::byte* bytes);
  void close_arrived(CloseReason reason, const CloseBody& refused = {});
  void let_posts_end() { queue_pair_.connection().let_posts_end(); }
  ZoneId scope() const { return queue_pair_.scope(); }
  void link_lost(WorkStatus why);
  void connect_failed(ConnectFailure why) { queue_pair_.connection().establishment().failed(why); }
  void nobody_listens();  // the stream may be gone when this returns
  bool take_turn();       // goes on with what waited for room or for its turn; true if bytes moved

 private:
  friend class Link;

  struct Parked {
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
  // A large message of ours that the peer has not got yet.
  struct Announced {
    enum class State : std::uint8_t { waiting, pieces, pushing, done };
    std::uint64_t number = 0;  // the queue pair's
    std::uint64_t offset = 0;  // what has crossed
    std::atomic<State> state{State::done};
    std::atomic<bool> has_leaf{false};  // written last of what the posting thread writes
    std::uint32_t leaf = 0;
    MemoryBody target{};  // when pushing
  };
  // A large message that is coming, in the order of its queue pair's Incoming.
  struct Large {
    enum class Way : std::uint8_t { pieces, pull, push };
    Incoming* message;
    std::uint32_t sequence;
    Way way;
    bool done = false;
    bool granted = false;                 // when it comes in pieces
    MemoryBody memory{};                  // the sender's for a pull; ours, with our leaf, for a push
    std::unique_ptr<std::byte[]> held{};  // a small one, which waits for its buffer's pages
  };

  // A Read of the peer that it cannot do itself, or an atomic operation, which it never does.
  struct Served {
    GetBody request;
    std::uint64_t offset = 0;  // what has been sent
    std::optional<AtomicBody> atomic{};
  };

  // What comes behind a Write of the peer that cannot be put in place yet, that Write first: stream_held.cc.
  struct HeldCell {
    CellKind kind;
    std::uint8_t flags;
    std::uint32_t cells;
    std::uint32_t length;
    std::uint32_t aux;
    std::size_t body_bytes;
    std::vector<std::byte> bytes;  // the body, and the piece
    CellView view() const;
  };
  struct Held {
    std::list<HeldCell> cells;
    std::size_t bytes = 0;
  };
  void drop_undelivered() {
    parked_.clear();
    held_.reset();
  }
  bool waits_behind_held(const CellView& view) const;
  void hold(const CellView& view, std::span<const std::byte> piece = {});
  void go_on_with_held();
  bool place_cells_held();
  bool fail_held(std::uint64_t address);

  bool arrived_in(ConnectionState state, bool connected, const CellView& view);
  bool credit_arrived(std::uint32_t cells);
  bool reject_arrived(const CellView& view);
  // Whatever is done for a connection that has been established may lack memory; then the connection breaks.
  template <typename Work>
  void or_break(Work&& work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      violated("no memory is left for what it sends");
    }
  }
  void deliver_parked();

  // Sending: stream_send.cc
  bool small_source_there(const SendRequest& message);
  template <CellKind kind>
  SendOutcome send_inline(const SendRequest& message, Progress& progress);
  SendOutcome announce(std::uint64_t number, const SendRequest& message);
  bool describe(const SendRequest& message, AnnounceBody& body, Announced& entry);
  Announced* announced(std::uint32_t sequence);
  Announced* first_in(Announced::State state, std::uint32_t& sequence);
  bool grant_arrived(std::uint32_t sequence);
  bool push_arrived(const CellView& view);
  bool pulled_arrived(std::uint32_t sequence);
  void finish(Announced& entry, WorkStatus status);
  bool send_pieces();
  bool push_some();
  enum class Step : std::uint8_t { moved, no_room, unusable };
  Step send_piece(Announced& entry, std::uint32_t sequence, std::uint64_t& length);

  void wants_pages() override { link_->come_back(*this); }
  void pages_brought(const OwnPages& pages, const OwnPages::Brought& news) override;
  void fail_pages(const OwnPages& pages, const OwnPages::Brought& news);
  void fail_request(const OwnPages::Brought& news);
  void fail_arriving(std::uint64_t address);
  void fail_large(const Large& large, WorkStatus status);
  void fail_served(std::uint64_t address, bool writes);
  bool close_arrived(const CellView& view);
  // Ends the connection for something that the peer has asked for, and says for what.
  void refuse(const CloseBody& what, CloseReason reason);
  CloseReason blame_message(CloseReason reason);

  // RDMA: stream_rdma.cc and stream_rdma_by_peer.cc, and of the peer: stream_rdma_served.cc
  static SendOutcome fail(Progress& progress, WorkStatus status) {
    progress.failure = status;
    return SendOutcome::failed;
  }
  static constexpr int kPiecesPerTurn = 32;  // through the bulk ring; the engine or the send lock is held meanwhile
  template <WorkKind kind>
  SendOutcome rdma(const SendRequest& message, Progress& progress);
  SendOutcome rdma_by_peer(const SendRequest& message, Progress& progress);
  bool peer_is_faster(const SendRequest& message, std::uint64_t shift);
  SendOutcome write_by_peer(const SendRequest& message, Progress& progress);
  void open_put_lane(const SendRequest& message, std::uint64_t shift);
  SendOutcome later();
  bool holds_announced() const {
    return retired_.load(std::memory_order_acquire) != announced_count_.load(std::memory_order_relaxed);
  }
  bool pages_there(const SendRequest& message, std::uint64_t shift, std::uint64_t offset, std::uint64_t count);
  template <bool reads>
  bool local_there(const SendRequest& message, const Progress& progress);
  SendOutcome without_pages(const SendRequest& message, Progress& progress);
  bool pages_seen(const SendRequest& message, std::uint64_t shift) const;
  bool pages_told(const SendRequest& message, std::uint64_t offset, std::uint64_t count);
  void want_pages(const GetBody& wanted, std::uint32_t right);
  bool is_wanted(const GetBody& what, std::uint32_t right) const {
    return pages_wanted_ == what && pages_right_ == right;
  }
  void ask_for_pages_now();
  bool faulted_in_arrived(std::uint32_t outcome);
  bool fault_in_arrived(const CellView& view);
  template <WorkKind kind>
  SendOutcome rdma_unmapped(const SendRequest& message, Progress& progress, bool after_peer, bool mapped);
  bool used_often(std::uint32_t key);
  void ask_for_lane(std::uint32_t key);
  template <WorkKind kind>
  void open_lane(const SendRequest& message, const MappedRegions::Mapped& to, bool ours);
  bool target_there(const nic::Segment& target, const SendRequest& message, const Progress& progress);
  bool is_here(const RemoteSegment& remote);
  CopyOutcome copy(const SendRequest& message, std::uint64_t shift, std::uint64_t offset, std::uint64_t count);
  SendOutcome atomic(const ExtendedRequest& message, Progress& progress);
  SendOutcome write_immediate(const SendRequest& message, Progress& progress);
  void put_arrived(const CellView& view, const std::byte* bytes);
  bool write_arrived(const CellView& view);
  bool put_in_place(std::uint64_t where, std::span<const std::byte> bytes, std::uint64_t left, bool last);
  bool put_piece(const CellView& view, std::span<const std::byte> bytes);
  bool put_short(const CellView& view, bool& sane);
  void put_done();
  void tell_puts_done();
  bool done_arrived(std::uint32_t more);
  bool get_arrived(const CellView& view);
  bool atomic_arrived(const CellView& view);
  bool atomic_done_arrived(const CellView& view);
  bool serve_reads();
  bool serve_atomic(const AtomicBody& body);
  std::uint32_t puts_under_way() const {
    return puts_sent_.load(std::memory_order_acquire) - puts_answered_.load(std::memory_order_acquire);
  }
  // Before it is sent, since the answer may be there before the call has returned; taken back if it is not.
  void count_put(std::uint32_t sent) {
    puts_sent_.store(puts_sent_.load(std::memory_order_relaxed) + sent, std::memory_order_release);
  }
  // As whom this side uses the peer's memory.
  RegionUser remote_user() const { return {remote_terms_.zone, remote_terms_.scope}; }
  // What a Read of the peer is refused with that comes behind so many that are not answered.
  static CloseBody read_behind(std::size_t reads) { return {Refused::a_read, static_cast<std::uint32_t>(reads)}; }
  bool opens(std::uint32_t key, std::uint64_t at, std::uint64_t length, std::uint32_t right, std::uint64_t& where,
             std::size_t reads_before_it = 0);

  // Receiving: stream_receive.cc
  template <typename Deliver>
  bool deliver_completed(Deliver&& deliver) {
    delivers_completed_ = true;
    const bool taken = deliver();
    delivers_completed_ = false;
    return taken;
  }
  bool message_arrived(const CellView& view);
  bool announce_arrived(const CellView& view);
  bool immediate_arrived(const CellView& view);
  bool deliver_small(const std::byte* bytes, std::size_t length, bool solicited, std::uint32_t key);
  bool next_buffer_there(std::size_t length);
  void place_held();
  bool may_begin(std::uint64_t length, std::uint32_t invalidates);
  bool accept_announced(const AnnounceBody& body, std::uint32_t sequence, bool solicited);
  Incoming* begin(std::uint64_t length, bool solicited, std::uint32_t invalidates);
  Large::Way choose_way(const AnnounceBody& body, Large& large);
  void part_arrived(std::uint32_t sequence, const std::byte* bytes, std::size_t count);
  bool pushed_arrived(std::uint32_t sequence);
  bool cannot_push_arrived(std::uint32_t sequence);
  void take_in_pieces(Large& large);
  void grant_pieces();
  Large* pushed(std::uint32_t sequence);
  bool pull_some();
  struct PulledShare {
    Large* message = nullptr;
    std::uint64_t bytes = 0;
  };
  bool pulled(std::span<const PulledShare> shares, CopyOutcome outcome);
  bool complete_large();
  void finish_large();
  bool withdraw(const Large& large);
  bool past_gate();
  void let_go_again();
  bool connected() const {
    const ConnectionState state = queue_pair_.state();
    return state == ConnectionState::connected || state == ConnectionState::draining;
  }
  // Whether memory of this side can be touched, at a glance.
  bool seen_lately(const nic::Segment& memory, bool to_write, std::uint64_t moment,
                   ResidentPages::Stretch& stretch) const {
    return resident_pages_.seen({memory.address, memory.length}, to_write, moment, stretch);
  }
  template <typename Last>
  [[gnu::always_inline]] bool deliver_straight(const CellView& view, Last&& last) {
    const auto there = [this](const nic::Segment& to, ResidentPages::Stretch& seen) {
      return seen_lately(to, true, engine_.moment(), seen);
    };
    const bool solicited = (view.flags & kFlagSolicited) != 0;
    if (!receives_.deliver_straight(view.body, view.length, solicited, last, there)) return false;
    delivered(view.cells);
    return true;
  }
  // Refuses a peer that sends more than its window: parking is what it costs us. What is delivered is owed to the peer
  // at once, so a message that meets nothing parked is within it.
  bool within_window(std::uint32_t cells) const { return parked_cells_ + owed_cells_ + cells <= kWindowCells; }
  void park(Parked message);
  void delivered(std::uint32_t cells) {
    owed_cells_ += cells;
    if (owed_cells_ >= kWindowCells / 4) [[unlikely]]
      give_credit();
  }
  void give_credit();
  void violated(const char* what);

  Fabric& fabric_;
  SoftQueuePair& queue_pair_;
  ReceiveSide& receives_;  // its parts, as the next two
  SendQueue& sends_;
  RdmaInitiator& initiator_;
  const Engine& engine_;  // the adapter's, as the next
  ResidentPages& resident_pages_;
  std::shared_ptr<Link> link_;
  std::size_t link_index_ = 0;  // for the link, as the next
  Link::Turn turn_{*this};
  std::uint32_t name_ = 0;
  std::uint32_t remote_ = 0;
  RdmaTerms remote_terms_{};  // fixed before the connection is
  bool closed_ = false;
  std::unique_ptr<ConnectBody> request_;

  // The sending side. Written with the queue pair's send lock, but credited_, retired_ and what happens to an announced
  // message later: those with the engine.
  std::atomic<std::uint32_t> mapping_wanted_{0};  // key of a region of the peer
  // What the peer is to bring into memory for the oldest RDMA that has not been carried out.
  enum class Pages : std::uint8_t { nothing, wanted, asked, told, refused };
  std::atomic<Pages> pages_{Pages::nothing};
  GetBody pages_wanted_{};  // these two written before `wanted` is
  std::uint32_t pages_right_ = 0;
  // Memory that the peer has said is there, where this side cannot look. For some milliseconds, and so many bytes of
  // Writes, since the peer keeps those whose memory has gone.
  struct ToldPages {
    std::uint32_t key = 0;
    std::uint32_t moment = 0;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t left = 0;
  };
  ToldPages told_pages_;
  std::atomic<std::uint64_t> not_had_{0};  // memory of this process that could not be brought in for an RDMA to it
  // Pages that the last RDMA has found to be there, at both ends, and when (PeerMemory::epoch()).
  struct SeenPages {
    base::Nanoseconds epoch = -1;
    std::uint64_t remote_first = 0;
    std::uint64_t remote_last = 0;
    std::uint64_t local_first = 0;
    std::uint64_t local_last = 0;
    bool reads = false;
    bool hold(base::Nanoseconds now, std::uint64_t remote, std::uint64_t local, std::uint64_t count,
              bool for_read) const {
      return reads == for_read && remote >= remote_first && remote + count - 1 <= remote_last &&
             hold(now, local, count);
    }
    // Those of this side.
    bool hold(base::Nanoseconds now, std::uint64_t local, std::uint64_t count) const {
      return epoch == now && local >= local_first && local + count - 1 <= local_last;
    }
    static constexpr std::uint64_t first_of(std::uint64_t address) { return address & ~(os::kPageBytes - 1); }
    static constexpr std::uint64_t last_of(std::uint64_t address, std::uint64_t count) {
      return (address + count - 1) | (os::kPageBytes - 1);
    }
  };
  SeenPages seen_pages_;
  ResidentPages::Stretch sends_seen_;  // small Sends and Writes
  ResidentPages::Stretch reads_seen_;
  // The region of the peer that it has put Writes of this side into, and where it is for the peer: as rdma_unmapped().
  // Now and then one looks again whether there is a better way.
  struct PutLane {
    std::uint32_t key = 0;  // 0: none
    std::uint32_t left = 0;
    std::uint64_t shift = 0;
  };
  PutLane put_lane_;
  base::Nanoseconds short_writes_epoch_ = -1;  // as in SeenPages, and how many there were since
  std::uint32_t short_writes_ = 0;
  // Of this process, brought by take_turn(): of the requests, looked for with the send lock or the engine; of the
  // messages that arrive; of what the peer reads and changes.
  OwnPages request_pages_;
  OwnPages arrival_pages_;
  OwnPages served_pages_;
  std::atomic<std::uint32_t> puts_sent_{0};      // whole, for the peer to put in place; ever
  std::atomic<std::uint32_t> puts_answered_{0};  // of them; written with the engine
  std::uint32_t shared_slot_ = 0;                // in the peer's segment
  std::uint32_t rdma_slot_ = 0;                  // likewise; from kSharedRdmaSlots on, this one's own
  std::uint32_t lane_key_ = 0;                   // the key that the own one is for
  std::uint32_t last_key_ = 0;                   // of a region of the peer
  std::uint32_t uses_of_key_ = 0;                // in a row
  // No RDMA may begin now: the word that the connection stands still waits for room in the ring, and RDMA must not
  // overtake it; or (peer_left_) the peer has closed in order, and none begins again while its last messages are
  // delivered. Written with the engine and, once the connection stands, the send lock.
  bool rdma_waits_ = false;
  bool peer_left_ = false;
  bool by_peer_ = false;  // the oldest Write has been sent in part; with the send lock
  std::atomic<std::uint32_t> atomics_under_way_{0};
  std::uint64_t window_used_ = 0;           // cells ever sent that count
  std::atomic<std::uint64_t> credited_{0};  // of them delivered
  std::array<Announced, kAnnouncedMax> announced_;
  std::atomic<std::uint32_t> announced_count_{0};  // ever; the sequence number of the next
  std::atomic<std::uint32_t> retired_{0};          // all before this one are done

  // The receiving side, with the engine.
  // Neither takes memory before there is something in it: most connections never have any.
  std::list<Parked> parked_;
  std::unique_ptr<Held> held_;           // null: nothing
  std::vector<Large> large_;             // of a connection that is over: those that the peer is still writing
  std::vector<Served> served_reads_;     // in the order asked for
  PageFaulter::Request pages_for_peer_;  // that it has asked for
  std::optional<std::uint32_t> gate_;    // of the end of this connection; RDMA of the peer may not be past it
  base::Nanoseconds gate_patience_ = 0;  // until then
  Timer let_go_timer_;
  base::Nanoseconds let_go_delay_ = 0;
  std::uint32_t parked_cells_ = 0;
  std::uint32_t owed_cells_ = 0;  // delivered, and the peer does not know yet
  std::uint32_t puts_done_ = 0;   // Writes of the peer; likewise
  // A message is being delivered that has completed at its sender: what comes behind it is not to blame for it.
  bool delivers_completed_ = false;
  std::optional<std::uint32_t> begins_announced_;  // the number of that message, which is not among large_ yet
  CloseBody refused_{};
};

}  // namespace anydat::nic::soft::shm
