// SPDX-License-Identifier: BSD-3-Clause
// What two processes of one host share: bytes and their meaning, no behaviour (docs/wire-shm.md has the drawing).
//
// A link between two processes has one segment for each direction. The receiver makes it, the sender writes it. It
// starts with a header, then a ring of 64-byte cells, then a ring of bulk bytes.
//
// A message is one or more consecutive cells. Its first 16 bytes are the cell header; the rest is the body. `ready` is
// written last: as long as it is 0 there is no message. A sender clears the `ready` of the cell behind its message
// before it publishes the message, so a receiver never takes old body bytes for a header.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "nic/private_data_limits.h"
#include "nic/types.h"

namespace anydat::nic::soft::shm {

inline constexpr std::uint32_t kMagic = 0x54444e41;  // "ANDT"
inline constexpr std::uint32_t kVersion = 11;

inline constexpr std::size_t kCellBytes = 64;
inline constexpr std::size_t kCellHeaderBytes = 16;
inline constexpr std::uint32_t kCellCount = 4096;
inline constexpr std::size_t kHeaderBytes = 4096;
inline constexpr std::size_t kCellRingBytes = kCellCount * kCellBytes;
inline constexpr std::size_t kBulkBytes = 4u << 20;  // larger than an L2 cache, so that non-temporal stores pay
inline constexpr std::size_t kSegmentBytes = kHeaderBytes + kCellRingBytes + kBulkBytes;

// A message up to this size travels in cells; a larger one is announced and crosses in pieces once its buffer is known.
inline constexpr std::size_t kInlineBytesMax = 8192;
// One piece of a large message. Small enough that the receiver copies one out of the cache while the next comes in.
inline constexpr std::size_t kPieceBytesMax = 8192;

// How many cells a connection may have on their way or in the backlog of a receiver that has no buffer for them: what a
// stalled connection can cost its receiver is this many cells of memory, and the ring holds the windows of several
// connections.
inline constexpr std::uint32_t kWindowCells = 1024;
// Large messages that may be announced and unfinished at once, each with its receive buffer taken.
inline constexpr std::uint32_t kAnnouncedMax = 8;

static_assert(kCellCount >= 2 * kWindowCells);
static_assert((kCellCount & (kCellCount - 1)) == 0 && (kBulkBytes & (kBulkBytes - 1)) == 0);
static_assert(kInlineBytesMax + kCellHeaderBytes <= kWindowCells / 4 * kCellBytes);

// Grants of one segment that can be in use at once.
inline constexpr std::uint32_t kGrantSlots = 64;
// Where connections of one link note what they use by RDMA: so many of them have a slot of their own, and those without
// share the first.
inline constexpr std::uint32_t kRdmaSlots = 256;
inline constexpr std::uint32_t kSharedRdmaSlots = 16;
// Pieces of consumer memory that a large message may lie in at either end to be copied directly.
inline constexpr std::uint32_t kSpansMax = 4;

// How a receiver comes to see what is published. It looks straight at the rings of the links that have something going
// on, and wants to be told by the others.
enum class Attention : std::uint32_t {
  looks,  // nothing is to be done
  bell,   // the link is to be marked, and one byte sent over its socket; the sender makes `mark` of it
  mark,   // the link is to be marked; the same goes for any other value
};

struct SegmentHeader {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t segment_bytes;

  // Written by the receiver: how far it has read. Monotonic; the sender never trusts them further than its own counts.
  alignas(64) std::atomic<std::uint64_t> cells_consumed;
  std::atomic<std::uint64_t> bulk_consumed;

  // Set by the receiver: what the sender does after it has published, an Attention.
  alignas(64) std::atomic<std::uint32_t> attention;
  // The link's place among the marks of the receiver's adapter (Marks). It may be none, which has no mark.
  std::atomic<std::uint32_t> slot;

  // Set by the sender when it lacks room; the receiver clears it and rings the sender if that one sleeps.
  alignas(64) std::atomic<std::uint32_t> room_wanted;

  // For trying out cross-process copy: `probe_address` holds `probe_value` in the memory of the segment's maker, which
  // is to be reached by the number of this thread of its (cross_copy.h).
  alignas(64) std::uint64_t probe_address;
  std::uint64_t probe_value;
  std::uint32_t probe_thread;

  // Grants to copy directly between the memory of the segment's maker and that of its peer; see grants.h.
  alignas(64) std::atomic<std::uint64_t> grants[kGrantSlots];

  // 0: RDMA may begin. The maker sets the lowest bit when the link is over. The bits above it count the `close`
  // messages that the maker has sent and the sender has not dealt with yet.
  alignas(64) std::atomic<std::uint32_t> rdma_gate;
  // Set by the sender before it uses a slot that belongs to one connection: the maker may have to fence it then.
  std::atomic<std::uint32_t> rdma_own_slots;
  // Written by the sender while it copies from or to memory of the maker by RDMA: the key of the region, and in the
  // upper half the maker's name for the connection; or 0. See rdma_uses.h.
  alignas(64) std::atomic<std::uint64_t> rdma_uses[kRdmaSlots];
  // Written by the sender before it uses a slot that belongs to one connection: the only key that is noted there, of
  // the slot that many places behind the shared ones. 0: none.
  alignas(64) std::atomic<std::uint32_t> rdma_slot_keys[kRdmaSlots - kSharedRdmaSlots];
};
static_assert(sizeof(SegmentHeader) <= kHeaderBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

inline constexpr std::uint32_t kGateLinkOver = 1;
inline constexpr std::uint32_t kGateStep = 2;

enum class CellKind : std::uint8_t {
  none,
  pad,            // fills the ring to its end
  send,           // body: the message
  announce,       // body: AnnounceBody; aux: its sequence number. A large message waits for its buffer
  clear_to_send,  // aux: the announced message that may come in pieces
  push,           // body: MemoryBody; aux: the announced message that its sender may write into that memory
  pushed,         // aux: the announced message that has been written there
  pulled,         // aux: the announced message that its receiver has read for itself
  piece,          // body: PieceBody; aux: the announced message of which `length` bytes are in the bulk ring
  credit,         // aux: cells that have been delivered
  connect,        // body: ConnectBody
  accept,         // body: AcceptBody
  reject,         // aux: RejectReason
  redirect,       // body: ServicePointBody. The active side shall ask at that service point instead
  ready,          // the active side is connected, too
  cancel,         // aux: the sender's own connection, which the receiver may not have answered yet
  close,          // aux: CloseReason; body: nothing, or CloseBody

  // RDMA where the kernel does not allow the two processes to copy directly.
  put,   // body: PutBody; `length` bytes of a Write are in the bulk ring
  done,  // a Write that asked for it has been put in place, and aux more of them
  get,   // body: GetBody; asks for the bytes of a Read
  got,   // body: PieceBody; `length` bytes of the oldest Read are in the bulk ring

  // Regions that both sides map; of the link, not of a connection.
  map,    // aux: key of a region whose memory the sender would like to map; a MappingBody over the socket may answer
  unmap,  // aux: key of a region of the sender that has gone

  cannot_push,  // aux: the announced message that its sender was to write, and cannot any more. It waits again

  // Memory for RDMA that is not there at the moment (os/page_map.h).
  fault_in,    // body: GetBody, up to kFaultInBytesMax; its owner is to have it brought in. aux: the right it is for
  faulted_in,  // aux: 0 it has been there since; 1 it cannot be

  immediate,    // body: ImmediateBody; behind a Write, which it is to be told of
  atomic,       // body: AtomicBody; asks its owner to carry out an atomic operation
  atomic_done,  // body: AtomicDoneBody; the oldest one has been

  send_invalidate,  // as `send`; aux: the key that is to be invalidated when it is received

  write,  // body: WriteBody and then the bytes of a short Write; flag 2: answer with `done`
};
inline constexpr std::uint8_t kCellKindLast = static_cast<std::uint8_t>(CellKind::write);

enum class RejectReason : std::uint32_t { by_consumer, nobody_listens, backlog_full };

inline constexpr std::uint8_t kFlagSolicited = 0x01;  // of `send`, `send_invalidate`, `announce` and `immediate`
inline constexpr std::uint8_t kFlagLast = 0x02;       // of `put` and `immediate`: answer with `done`

// `ready`: kind in bits 0-7, flags in 8-15, number of cells in 16-31.
struct CellHeader {
  std::atomic<std::uint32_t> ready;
  std::uint32_t length;      // of the message, the piece or the body
  std::uint32_t connection;  // the receiver's name for it; 0 before it has one
  std::uint32_t aux;
};
static_assert(sizeof(CellHeader) == kCellHeaderBytes);

constexpr std::uint32_t pack_ready(CellKind kind, std::uint8_t flags, std::uint32_t cells) {
  return static_cast<std::uint32_t>(kind) | static_cast<std::uint32_t>(flags) << 8 | cells << 16;
}
constexpr std::uint32_t cells_for(std::size_t body_bytes) {
  return static_cast<std::uint32_t>((kCellHeaderBytes + body_bytes + kCellBytes - 1) / kCellBytes);
}

// Where a large message lies, or shall go, in the memory of the side that tells. No spans: it cannot be reached
// directly.
struct MemoryBody {
  struct Span {
    std::uint64_t address;
    std::uint64_t length;
  };
  std::uint64_t grant;  // the word that must stand in the slot while the memory may be used
  std::uint32_t grant_slot;
  std::uint32_t span_count;
  Span spans[kSpansMax];
};
struct AnnounceBody {
  std::uint64_t length;
  std::uint32_t can_push;     // the sender can write into the receiver's memory
  std::uint32_t invalidates;  // the key that is to be invalidated when it is received, or 0
  MemoryBody memory;
};
struct PieceBody {
  std::uint64_t position;  // in the bulk ring, monotonic
};
struct PutBody {
  std::uint64_t position;  // as in PieceBody
  std::uint64_t address;   // of the whole Write, as is the length
  std::uint64_t length;
  std::uint64_t offset;  // of this piece in it
  std::uint32_t key;
};
static_assert(sizeof(PutBody) <= kCellBytes - kCellHeaderBytes);
struct WriteBody {
  std::uint64_t address;
  std::uint32_t key;
  std::uint32_t reserved;
};
inline constexpr std::size_t kShortWriteMax = 4096;
// Of memory that its owner may be asked at once to bring in, so that it comes while the rest is copied.
inline constexpr std::uint64_t kFaultInBytesMax = 4 << 20;
// After one answer no more than that is written, each Write, or piece of one, counted with so much more, before the
// initiator asks again: so much its owner may have to keep.
inline constexpr std::uint64_t kPutOverhead = 256;
struct GetBody {
  std::uint64_t address;
  std::uint64_t length;
  std::uint32_t key;
  bool operator==(const GetBody&) const = default;
};
struct ImmediateBody {
  std::uint64_t length;  // of the Write
  std::uint32_t value;
};
enum class AtomicOperation : std::uint32_t { fetch_add, compare_swap };
struct AtomicBody {
  std::uint64_t address;
  std::uint64_t operand;  // what is added, or put in the place of `compare`
  std::uint64_t compare;
  std::uint32_t key;
  AtomicOperation operation;
};
static_assert(sizeof(AtomicBody) <= kCellBytes - kCellHeaderBytes);
// What of the other side's the sender of a `close` does not carry out.
enum class Refused : std::uint32_t { the_oldest, a_write, a_read, a_message };  // an atomic operation is a Read
struct CloseBody {
  Refused what;
  std::uint32_t which;  // a_read: so many before it are not answered; a_message: the number of its `announce`
};
struct AtomicDoneBody {
  std::uint64_t was;  // the word before
};
// Over the socket, with the descriptor of the file that the region lies in.
struct MappingBody {
  std::uint64_t address;  // of the region, at its owner
  std::uint64_t length;
  std::uint64_t offset;  // of its first byte in the file
  std::uint32_t key;
  std::uint32_t writable;
  std::uint64_t device;  // of the file, by which the receiver knows that it is the right one
  std::uint64_t inode;
};
// The marks of one adapter, in a memfd of its own, which is mapped by all its peers. A mark only says where to look: a
// peer that sets or clears those of others costs a look, or some time until the link is looked at anyway.
inline constexpr std::uint32_t kMarkSlots = 2048;
inline constexpr std::uint32_t kMarkGroup = 64;
inline constexpr std::size_t kMarkBytes = 4096;
struct Marks {
  alignas(64) std::atomic<std::uint8_t> groups[kMarkSlots / kMarkGroup];  // any slot of the group is marked
  alignas(64) std::atomic<std::uint8_t> slots[kMarkSlots];                // set before the group's
  // Written by the adapter: goes up as long as it polls so fast that what is published now is taken within
  // microseconds.
  alignas(64) std::atomic<std::uint32_t> passes;
};
static_assert(sizeof(Marks) <= kMarkBytes && std::atomic<std::uint8_t>::is_always_lock_free);

// What a side must know of the other's end to use its memory.
struct RdmaTerms {
  std::uint32_t zone;
  std::uint32_t scope;     // of windows that are for this connection alone, in the place of a zone
  std::uint32_t reads_in;  // Reads, and atomic operations, that it serves at once
  std::uint32_t takes;     // what it carries out beyond RDMA: `ability`
};
struct ConnectBody {
  Address remote;  // of the active side, as its peer shall see it
  Address local;   // that it asked for
  std::uint64_t remote_port;
  std::uint64_t qual;
  std::uint32_t connection;
  RdmaTerms rdma;
  std::uint32_t qos;
  std::uint32_t private_data_bytes;
  std::byte private_data[kPrivateDataMax];
};
inline constexpr std::size_t kScopeBytes = 16;  // the longest name of a network device, and a zero
struct ServicePointBody {
  std::uint64_t qual;
  char scope[kScopeBytes];  // zero-terminated
};
struct AcceptBody {
  ServicePointBody at;
  std::uint32_t connection;
  RdmaTerms rdma;
  std::uint32_t private_data_bytes;
  std::byte private_data[kPrivateDataMax];
};

// Over the socket, before the segments exist. One datagram each; the descriptors of a segment, of the region table
// and of the marks travel with `attach` and `attached`, in this order.
enum class GreetingKind : std::uint32_t { hello, welcome, attach, attached };
struct Greeting {
  std::uint32_t magic;
  std::uint32_t version;
  GreetingKind kind;
  std::uint32_t wants_fences;  // the kernel cannot fence us from afar: publishers must do it themselves
  std::uint8_t node[16];       // the sender's adapter instance, random
};

}  // namespace anydat::nic::soft::shm
