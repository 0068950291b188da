// SPDX-License-Identifier: BSD-3-Clause
// Which way bytes take between the memory of two processes. The users of this find out the facts; what follows from
// them is said here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydat::nic::soft::shm {

// Of a large message: read out of the sender's memory by the receiver, or written into the receiver's buffer by the
// sender, both by a copy between processes; or in pieces through the bulk ring, the one way that is open to any two.
enum class MessageWay : std::uint8_t { pieces, pull, push };

struct MessageFacts {
  bool can_pull;  // the sender has told all of its memory, and the kernel lets us reach it
  bool can_push;  // the sender says that the kernel lets it reach ours
  // Of the messages that are arriving on the connection.
  std::size_t pulled;
  std::size_t pushed;
};

// Both processors copy: messages are pulled and pushed turn and turn about. A lone one is pulled, which saves a hop.
// `offer`: tells the sender's copy where to write, if that can be told now; asked only if it matters.
template <typename Offer>
MessageWay message_way(const MessageFacts& facts, Offer&& offer) {
  if (facts.can_pull && facts.pulled <= facts.pushed) return MessageWay::pull;
  if (facts.can_push && offer()) return MessageWay::push;
  return facts.can_pull ? MessageWay::pull : MessageWay::pieces;
}

// Of an RDMA whose region is not mapped: in this process's own memory; by a copy between processes; or the peer does
// it.
enum class RdmaWay : std::uint8_t { here, across, by_peer };

struct RdmaFacts {
  bool here;           // the region is in this process
  bool reachable;      // the kernel lets us reach the peer's memory
  bool begun_by_peer;  // the peer has been given a part of it, and so the rest is its own, too
};

constexpr RdmaWay rdma_way(const RdmaFacts& facts) {
  if (facts.here) return RdmaWay::here;
  return facts.begun_by_peer || !facts.reachable ? RdmaWay::by_peer : RdmaWay::across;
}

}  // namespace anydat::nic::soft::shm
