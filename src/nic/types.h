// SPDX-License-Identifier: BSD-3-Clause
// The plain values that cross the seam between the DAT objects and a NIC. Nothing of DAT is named here.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace anydat::nic {

// What a request to the NIC came to.
enum class Status : std::uint8_t {
  ok,
  queue_full,     // no free slot in a queue of fixed depth
  not_connected,  // the queue pair is in no state to do it
  no_memory,
  in_use,     // another service point listens there already
  none_free,  // no number left to hand out
  denied,
  unreachable,  // no such host, or no route to it
  unsupported,
  failed,
};

// How a piece of posted work ended.
enum class WorkStatus : std::uint8_t {
  success,
  flushed,
  local_length,
  local_ep,
  local_protection,
  bad_response,
  remote_access,
  remote_responder,
  transport,
  receiver_not_ready,
  partial_packet,
  bind_failed,
};

enum class WorkKind : std::uint8_t {
  recv,
  recv_immediate,   // completions only: a receive that the peer's Write with immediate data has taken
  recv_invalidate,  // completions only: a receive that a Send with Invalidate has filled
  send,
  send_invalidate,
  rdma_write,
  write_immediate,
  bind,
  // What the peer answers, and the limits of Reads are for (D2-ATOM-5).
  rdma_read,
  fetch_add,
  compare_swap,
};
constexpr bool is_receive(WorkKind kind) {
  return kind <= WorkKind::recv_invalidate;
}
constexpr bool is_read(WorkKind request) {
  return request >= WorkKind::rdma_read;
}
constexpr bool is_write(WorkKind request) {
  return request == WorkKind::rdma_write || request == WorkKind::write_immediate;
}

// What takes a receive of the peer.
constexpr bool is_message(WorkKind request) {
  return request == WorkKind::send || request == WorkKind::send_invalidate || request == WorkKind::write_immediate;
}

// What not every adapter can carry, nor every peer: a union of bits.
namespace ability {
inline constexpr std::uint32_t kImmediate = 1;   // Writes with immediate data
inline constexpr std::uint32_t kAtomics = 2;     // fetch-and-add, compare-and-swap
inline constexpr std::uint32_t kInvalidate = 4;  // Sends with Invalidate
inline constexpr std::uint32_t kAll = kImmediate | kAtomics | kInvalidate;
}  // namespace ability

// Rights of a memory region, a union of bits.
namespace access {
inline constexpr std::uint32_t kLocalRead = 0x01;
inline constexpr std::uint32_t kRemoteRead = 0x02;
inline constexpr std::uint32_t kLocalWrite = 0x10;
inline constexpr std::uint32_t kRemoteWrite = 0x20;
inline constexpr std::uint32_t kRemoteAtomic = 0x40;
// No right: the program and its peers name bytes of the region by their offset (D2-LMR-2).
inline constexpr std::uint32_t kZeroBased = 0x100;
// No right: it is a window's, which posts do not name as they name a region.
inline constexpr std::uint32_t kWindow = 0x200;
inline constexpr std::uint32_t kIndirect = kZeroBased | kWindow;
}  // namespace access

using ZoneId = std::uint32_t;  // of a protection zone; 0 is none
inline constexpr ZoneId kNoZone = 0;
inline constexpr ZoneId kAnyZone = ~ZoneId{0};  // in checks: whatever the zone is
// Zones have numbers up to this one. Those behind it are of queue pairs: a window that only one of them may use has its
// number in the place of a zone.
inline constexpr ZoneId kZoneMax = (ZoneId{1} << 31) - 1;

// A user of memory: one of a zone, which may be a queue pair with windows that no other may use.
struct RegionUser {
  RegionUser(ZoneId its_zone) : RegionUser(its_zone, its_zone) {}  // NOLINT: a zone is a user like any other
  RegionUser(ZoneId its_zone, ZoneId its_scope) : zone(its_zone), scope(its_scope) {}
  bool is(ZoneId of_region) const { return of_region == zone || of_region == scope || zone == kAnyZone; }

  ZoneId zone;
  ZoneId scope;
};

using ConnQual = std::uint64_t;

// One piece of local memory. Segments of length 0 mean nothing and are skipped, whatever else they hold (TYPE-2).
struct Segment {
  std::uint32_t key;
  std::uint32_t pad;
  std::uint64_t address;
  std::uint64_t length;
};

// IPv4 or IPv6 without a port; the port number is the connection qualifier.
union Address {
  sockaddr generic;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

// How a request is to be done and to end: a union of bits, which are those of DAT's completion flags.
class WorkFlags {
 public:
  static constexpr std::uint8_t kSuppress = 1, kSolicited = 2, kUnsignalled = 4, kFence = 8;

  WorkFlags() = default;
  explicit WorkFlags(std::uint8_t bits) : bits_(bits) {}

  bool suppress() const { return (bits_ & kSuppress) != 0; }        // no completion if it succeeds
  bool solicited() const { return (bits_ & kSolicited) != 0; }      // a Send: the receive may wake a solicited waiter
  bool unsignalled() const { return (bits_ & kUnsignalled) != 0; }  // the completion wakes no thread
  bool fence() const { return (bits_ & kFence) != 0; }              // not before earlier RDMA Reads have completed

 private:
  std::uint8_t bits_ = 0;
};

struct RecvRequest {
  std::uint64_t cookie;
  std::span<const Segment> segments;
  bool unsignalled = false;
  ZoneId zone = kNoZone;           // that the segments were checked for
  std::uint64_t regions_seen = 0;  // as in SendRequest
};

// Memory of the peer, as it told us; the length is that of the request.
struct RemoteSegment {
  std::uint64_t address;
  std::uint32_t key;
  std::uint32_t value = 0;  // not of the memory: the immediate data of a Write
};

// A Send, an RDMA Read or an RDMA Write.
struct SendRequest {
  std::uint64_t cookie;
  std::span<const Segment> segments;
  std::uint64_t length;  // what moves: the sum of the segment lengths, but for a Read, which may leave some unused
  WorkFlags flags;
  WorkKind kind = WorkKind::send;
  RemoteSegment remote{};          // of an RDMA
  std::uint64_t regions_seen = 0;  // RegionTable::removals() before the segments were checked; 0: they may have gone
};

// A request of a kind for which peers need an ability.
struct ExtendedRequest : SendRequest {
  // Of an atomic operation: what is added, or put in the place of `compare`. It has one segment, of 8 bytes, which
  // takes the word as it was.
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
};

// An RDMA of one segment.
struct SingleRdma {
  std::uint64_t cookie;
  Segment local;
  std::uint64_t length;  // as in SendRequest
  WorkFlags flags;
  RemoteSegment remote;
};

// Many receives or Sends of one segment each, posted by one call (QueuePair::post_sends() and its like). The segments
// are none of them empty, and have been checked, all for one zone. No row is longer than this: a lock is held for the
// whole of it, and what is not short is cut into several.
inline constexpr std::size_t kRowMax = 16;

struct SingleRecv {
  std::uint64_t cookie;
  Segment segment;
};
struct RecvRow {
  std::span<const SingleRecv> receives;
  ZoneId zone = kNoZone;           // as in RecvRequest
  std::uint64_t regions_seen = 0;  // before the first was checked

  RecvRequest request(std::size_t index) const {
    return {receives[index].cookie, {&receives[index].segment, 1}, false, zone, regions_seen};
  }
};

struct SingleSend {
  std::uint64_t cookie;
  Segment segment;
  WorkFlags flags;
};
struct SendRow {
  std::span<const SingleSend> sends;
  std::uint64_t regions_seen = 0;  // as in RecvRow

  SendRequest request(std::size_t index) const {
    const SingleSend& send = sends[index];
    return {send.cookie, {&send.segment, 1}, send.segment.length, send.flags, WorkKind::send, {}, regions_seen};
  }
  SendRow behind(std::size_t count) const { return {sends.subspan(count), regions_seen}; }
};

}  // namespace anydat::nic
