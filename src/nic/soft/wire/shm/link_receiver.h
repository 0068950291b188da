// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "nic/soft/delivery_batch.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/ring.h"

namespace anydat::nic::soft::shm {

class Fabric;
class Link;
class ShmStream;

// The receiving half of a link: takes messages out of the ring of this side's segment, gives each to its connection or
// to the part of the link that it is for, and tells the peer how far it has come.
//
// With the engine held. Lives and dies with its link.
class LinkReceiver {
 public:
  // `fences`: the two processes cannot fence each other from afar.
  LinkReceiver(Link& link, Fabric& fabric, const Segment& inbound, bool fences);
  LinkReceiver(const LinkReceiver&) = delete;
  LinkReceiver& operator=(const LinkReceiver&) = delete;

  bool empty() const { return ring_.empty(); }  // nothing has come
  // Within a turn of the link: what there is, up to a bounded amount; true if there was anything.
  bool receive();
  // The same up to the first message of which a program learns.
  void take_first_message();

  // The stream has done what the peer waits for: IncomingWrites::tell_done() before anything else goes by, and soon.
  void owes_done(ShmStream& stream) {
    if (owing_ && owing_ != &stream) tell_done();
    owing_ = &stream;
  }
  void forget(ShmStream& stream);

  // ---- the link is over
  void drain();  // what has come until now
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }  // nothing is taken out of the ring any more

 private:
  bool receive_otherwise();                     // one message; false: the link is over
  ShmStream* stream(std::uint32_t connection);  // null: there is none by this name
  bool dispatch(const CellView& view);          // false: malformed
  void publish_consumed();
  void tell_done();

  // What each pass looks at.
  RingReader ring_;
  ShmStream* latest_ = nullptr;  // of the streams, to which a message came; or null
  ShmStream* owing_ = nullptr;   // of them, which has Writes to tell of; or null
  bool stopped_ = false;
  const bool fences_;
  SegmentHeader& header_;  // of this side's segment
  DeliveryBatch& batch_;   // the adapter's
  Link& link_;
  Fabric& fabric_;
};

}  // namespace anydat::nic::soft::shm
