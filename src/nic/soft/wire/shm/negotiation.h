// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>

#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/ring.h"

namespace anydat::nic::soft::shm {

class ShmStream;

// How a connection over shared memory comes about, once there is a link: the request of the active side, and what it is
// answered. The passive side's answer is in ShmRequest, how the link is made in ActiveHandshake and PassiveHandshake.
//
// With the engine held. Lives and dies with its stream.
class Negotiation {
 public:
  explicit Negotiation(ShmStream& stream) : stream_(stream) {}
  Negotiation(const Negotiation&) = delete;
  Negotiation& operator=(const Negotiation&) = delete;

  RdmaTerms terms() const;  // of this end

  // ---- active side
  // What is asked for. It is kept until the answer, since a redirection has it asked for again elsewhere.
  void set_request(const ConnectBody& body) { request_ = std::make_unique<ConnectBody>(body); }
  void ask();  // Requires: the stream is attached
  void nobody_listens();
  // Answers; false: malformed.
  bool accept_arrived(const CellView& view);
  bool reject_arrived(const CellView& view);
  bool redirect_arrived(const CellView& view);

  // ---- passive side: the connection has been accepted, and stands when the peer says that it is ready
  bool awaits_ready_from(std::uint32_t remote) const;

 private:
  ShmStream& stream_;
  std::unique_ptr<ConnectBody> request_;
};

}  // namespace anydat::nic::soft::shm
