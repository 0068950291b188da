// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "nic/soft/resident_pages.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/shm/flow_control.h"
#include "nic/soft/wire/shm/layout.h"

namespace anydat::nic::soft {
class SendQueue;
class SoftAdapter;
}  // namespace anydat::nic::soft

namespace anydat::nic::soft::shm {

class Link;
class ShmStream;

// Small Sends over shared memory: each is written into the link's ring by the posting thread and is done. It needs room
// in the connection's window.
//
// Thread safety: with the queue pair's send lock, but for the set-up and credit_arrived(): with the engine. Lives and
// dies with its stream.
class MessageSender {
 public:
  explicit MessageSender(ShmStream& stream);
  MessageSender(const MessageSender&) = delete;
  MessageSender& operator=(const MessageSender&) = delete;

  void set_link(Link* link) { link_ = link; }
  void set_remote(std::uint32_t remote) { remote_ = remote; }

  // ---- as in Stream
  template <CellKind kind>
  SendOutcome send(const SendRequest& message, Progress& progress);
  bool send_again(const SingleSend& send);
  std::size_t send_row(const SendRow& row);

  SendWindow& window() { return window_; }
  bool credit_arrived(std::uint32_t cells);  // false: malformed

 private:
  bool source_there(const SendRequest& message);
  // Whether memory can be read, at a glance.
  bool seen_lately(const nic::Segment& memory, std::uint64_t moment);

  ShmStream& stream_;
  SendQueue& sends_;
  SoftAdapter& adapter_;
  Link* link_ = nullptr;  // this and remote_ are the stream's; fixed before the connection stands
  std::uint32_t remote_ = 0;
  SendWindow window_;
  ResidentPages::Stretch seen_;
};

}  // namespace anydat::nic::soft::shm
