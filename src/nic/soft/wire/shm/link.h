// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "nic/engine.h"
#include "nic/region_table.h"
#include "nic/soft/wire/shm/cross_copy.h"
#include "nic/soft/wire/shm/doorbell.h"
#include "nic/soft/wire/shm/grants.h"
#include "nic/soft/wire/shm/hazard_slots.h"
#include "nic/soft/wire/shm/hazards.h"
#include "nic/soft/wire/shm/link_end.h"
#include "nic/soft/wire/shm/link_receiver.h"
#include "nic/soft/wire/shm/link_sender.h"
#include "nic/soft/wire/shm/link_set.h"
#include "nic/soft/wire/shm/link_users.h"
#include "nic/soft/wire/shm/mapping_exchange.h"
#include "nic/soft/wire/shm/marks.h"
#include "nic/soft/wire/shm/peer_death.h"
#include "os/slow_close.h"

namespace anydat::nic::soft::shm {

class Fabric;
class ShmStream;

using NodeId = std::array<std::uint8_t, 16>;

// Two segments and a socket between this adapter and another one (or itself): what all connections between the two
// share. The socket carries wake-ups, and its end of file tells that the other side is gone.
//
// What goes out goes by LinkSender, what comes in by LinkReceiver; how a link ends is in LinkEnd. Here is what it
// consists of, and its turn in a pass over the sources.
//
// Thread safety: as the parts say; all else with the engine held.
class Link final : public FdHandler, public std::enable_shared_from_this<Link> {
 public:
  // What both sides have shown each other before the link exists.
  struct Parts {
    os::LocalSocket socket;
    Segment inbound;
    Segment outbound;
    PeerRegions regions;
    MarkTable marks;  // of the peer
    NodeId peer;
    bool initiated;
    bool fences;
  };
  Link(Fabric& fabric, Parts parts);
  ~Link() override;
  bool start();  // false when descriptors have run out
  void stop();   // the reverse, for LinkEnd: nothing is watched any more, and no timer runs

  // The peer is that node of that process: a node's name alone is only what a process claims.
  bool leads_to(const NodeId& node, const os::PeerProcess& process) const {
    return peer_ == node && peer_death_.process().is_same_as(process) && !peer_gone();
  }
  bool initiated() const { return initiated_; }
  bool dead() const { return receiver_.stopped(); }
  LinkEnd& end() { return end_; }

  void add(ShmStream& stream);
  void remove(ShmStream& stream);
  LinkUsers& users() { return users_; }

  // Copying directly between the two processes (cross_copy.h, transfer_policy.h).
  PeerMemory& peer_memory() { return peer_memory_; }
  bool within_process() const { return within_process_; }  // the peer is this process
  LinkReceiver& receiver() { return receiver_; }
  LinkSender& sender() { return sender_; }
  Doorbell& doorbell() { return sender_.doorbell(); }
  const Doorbell& doorbell() const { return sender_.doorbell(); }
  const os::PeerProcess& process() const { return peer_death_.process(); }
  const Segment& inbound() const { return inbound_; }
  const Segment& outbound() const { return outbound_; }
  // Grants for the peer to copy from or to memory of this side.
  GrantTable& grants() { return grants_; }
  // The process at the other end has ended or has given the link up: it copies nothing any more. A process gives a link
  // up after its own copies. With the engine, or inside a post that has found the gate open.
  bool peer_gone() const { return peer_death_.has_come(doorbell().socket().get()); }
  const PeerRegions& peer_regions() const { return regions_; }
  // What the peer uses of this side's memory by RDMA, and the gates.
  Hazards& hazards() { return hazards_; }
  // For RDMA of this side on the peer's memory.
  HazardSlots& hazard_slots() { return hazard_slots_; }
  // Regions of the peer that are mapped here, and ours that are mapped there.
  MappingExchange& mappings() { return mappings_; }

  // For the set that it is in, which looks at it.
  LinkPlace& place() { return place_; }
  // Nothing has come, and nothing that is to go is waiting.
  bool quiet() const { return receiver_.empty() && !something_waits(); }
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
  bool go_through_turn() {
    // Should something be thrown, the turn is over as well.
    struct End {
      ~End() { link.end_turn(); }
      Link& link;
    } const end{*this};
    if (something_waits()) [[unlikely]]
      sender_.send_what_waits();
    progress_ |= receiver_.receive();
    return progress_;
  }
  void end_turn() { looking_ = false; }
  void want_room_again();
  // ---- for its parts
  bool in_turn() const { return looking_; }
  void note_progress(bool progress) { progress_ |= progress; }
  void something_is_to_go();
  void nothing_is_to_go() { something_waits_.store(false); }

  void ready(std::uint32_t events) override;

 private:
  // What each pass looks at.
  std::atomic<bool> something_waits_{false};
  bool looking_ = false;   // within a turn
  bool progress_ = false;  // by this turn
  LinkReceiver receiver_;

  Fabric& fabric_;
  Segment inbound_;
  Segment outbound_;
  const PeerRegions regions_;
  LinkPlace place_;
  MappingExchange mappings_;
  Hazards hazards_;
  const NodeId peer_;
  const bool initiated_;
  bool within_process_ = false;  // fixed by the constructor
  PeerMemory peer_memory_;

  LinkUsers users_;
  LinkEnd end_;
  LinkSender sender_;
  PeerDeath peer_death_;
  HazardSlots hazard_slots_;
  GrantTable grants_;
};

}  // namespace anydat::nic::soft::shm
