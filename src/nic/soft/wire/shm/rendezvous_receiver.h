// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nic/soft/incoming.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/ring.h"
#include "nic/soft/wire/shm/transfer_policy.h"

namespace anydat::nic::soft::shm {

class ShmStream;

// Messages of the peer that have their receive buffer and are not complete: large ones, which come by rendezvous, and
// with them small ones that wait for the memory of their buffer or for a window to be taken back.
//
// A large one is pulled out of the sender's memory, or pushed into its buffer by the sender, turn and turn about, so
// that both processors copy; or it comes in pieces through the bulk ring, where the kernel forbids that. They complete
// in the order in which they were sent, however they crossed.
//
// With the engine held. Lives and dies with its stream.
class RendezvousReceiver {
 public:
  explicit RendezvousReceiver(ShmStream& stream) : stream_(stream) {}
  RendezvousReceiver(const RendezvousReceiver&) = delete;
  RendezvousReceiver& operator=(const RendezvousReceiver&) = delete;

  // ---- messages for which there may be a buffer; false: there is none now, or the connection has ended
  bool accept(const AnnounceBody& body, std::uint32_t sequence, bool solicited);
  // A small one, when no other is arriving.
  bool take_small(const std::byte* bytes, std::size_t length, bool solicited, std::uint32_t key);

  // ---- what the sender says of one; false: malformed
  void part_arrived(std::uint32_t sequence, const std::byte* bytes, std::size_t count);
  bool pushed_arrived(std::uint32_t sequence);
  bool cannot_push_arrived(std::uint32_t sequence);

  // ---- turns
  void place_held();  // a small one whose memory has come
  void clear_pieces();
  bool pull_some();  // true if there is more to do
  // Completes those that can be, and delivers what waited for that.
  void finish();

  bool any() const { return !arriving_.empty(); }
  bool first_has_come() const { return any() && arriving_.front().done; }
  bool all_have_come() const;  // what is missing of one has been lost with the peer

  // ---- ends
  // The memory at that address is not to be had: the message that is to come there fails.
  void fail(std::uint64_t address);
  bool region_removed();  // as Stream
  // Of a connection that is over: takes buffers back from the peer. False: it is still writing into one.
  bool take_back();
  // The number of the message that ends the connection on its own account.
  std::optional<std::uint32_t> at_fault() const;

 private:
  // In the order of its queue pair's Incoming.
  struct Arriving {
    Incoming* message;
    std::uint32_t sequence;
    MessageWay way;
    bool done = false;
    bool cleared = false;                 // when it comes in pieces
    MemoryBody memory{};                  // the sender's for a pull; ours, with our grant, for a push
    std::unique_ptr<std::byte[]> held{};  // a small one, which waits for its buffer's pages
  };
  struct PulledShare {
    Arriving* message = nullptr;
    std::uint64_t bytes = 0;
  };

  Incoming* begin(std::uint64_t length, bool solicited, std::uint32_t invalidates);
  MessageWay choose_way(const AnnounceBody& body, Arriving& large);
  bool offer(const AnnounceBody& body, bool can_pull, Arriving& large);
  void take_in_pieces(Arriving& large);
  Arriving* pushed(std::uint32_t sequence);
  bool pulled(std::span<const PulledShare> shares, CopyOutcome outcome);
  bool complete();
  bool withdraw(const Arriving& large);
  void fail(const Arriving& large, WorkStatus status);

  ShmStream& stream_;
  std::vector<Arriving> arriving_;          // of a connection that is over: those that the peer is still writing
  std::optional<std::uint32_t> beginning_;  // the number of one that is not among them yet
};

}  // namespace anydat::nic::soft::shm
