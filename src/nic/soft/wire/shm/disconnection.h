// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <new>
#include <optional>

#include "nic/soft/stream.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/ring.h"
#include "nic/timer.h"
#include "os/clock.h"

namespace anydat::nic::soft::shm {

class ShmStream;

// How a connection over shared memory ends: what the peer is told, and which of its messages is at fault; what the peer
// says of an end; and after it, that the peer lets go of memory of this side, which it may be in the middle of writing.
//
// With the engine held. Lives and dies with its stream.
class Disconnection {
 public:
  explicit Disconnection(ShmStream& stream);
  ~Disconnection();
  Disconnection(const Disconnection&) = delete;
  Disconnection& operator=(const Disconnection&) = delete;

  // ---- ends by this side; the first two as Stream has them
  void close(CloseReason reason);
  bool let_go();
  // Whether the peer has had its time to let go of what it uses of this connection, which begins with the first look
  // that finds it at it, or with the end of the link.
  bool out_of_patience();
  // For something that the peer has asked for, and says for what.
  void refuse(const CloseBody& what, CloseReason reason);
  void violated(const char* what);  // by a peer that does what it must not
  // Whatever is done for a connection that has been established may lack memory; then the connection breaks.
  template <typename Work>
  void or_break(Work&& work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      violated("no memory is left for what it sends");
    }
  }

  // ---- ends by the peer
  bool arrived(const CellView& view);  // false: malformed
  void arrived(CloseReason reason, const CloseBody& refused = {});
  void link_lost(WorkStatus why);

 private:
  void drop_undelivered();
  CloseReason blame_message(CloseReason reason);
  bool past_gate();
  void let_go_again();

  ShmStream& stream_;
  CloseBody refused_{};
  std::optional<std::uint32_t> gate_;    // of the end of this connection; RDMA of the peer may not be past it
  os::Nanoseconds let_go_patience_ = 0;  // until then the peer may use memory; 0: it does not, as far as is known
  Timer let_go_timer_;
  os::Nanoseconds let_go_delay_ = 0;
};

}  // namespace anydat::nic::soft::shm
