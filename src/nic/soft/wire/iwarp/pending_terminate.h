// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nic/region_table.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/iwarp/format/rdmap.h"
#include "nic/soft/wire/iwarp/transmitter.h"

namespace anydat::nic::soft::iwarp {

// The Terminate with which this side ends a connection that does not end in order: why, and which of the peer's
// messages is at fault (RFC 5040, section 4.8). It is prepared where the fault is seen, and sent when the connection is
// closed. It takes memory, which most connections never need; without any it is not sent.
//
// With the engine held.
class PendingTerminate {
 public:
  bool prepared() const { return count_ != 0; }
  void blame_nobody(TerminateCode code) { blame(code, {}, 0); }
  // What has arrived of a segment, header first, and how long it is in all.
  void blame(TerminateCode code, std::span<const std::byte> segment, std::size_t segment_bytes);
  // A Send of which this much is known. `invalidates`: the STag that it names, or 0.
  void blame_send(TerminateCode code, std::uint32_t sequence, std::uint32_t invalidates);
  void send(Transmitter& line) const;

 private:
  using Message = std::array<std::byte, kTerminateBytesMax>;

  void write(const Terminate& message);

  std::unique_ptr<Message> message_;
  std::uint8_t count_ = 0;
};

// What the peer is told of an end for this reason, and what its own word says.
TerminateCode code_of(CloseReason reason);
CloseReason reason_of(TerminateCode code);
// What it is told where it may not touch the memory that it names. `reads`: it asks for what is there.
TerminateCode refusal_of(RegionCheck check, bool reads);

}  // namespace anydat::nic::soft::iwarp
