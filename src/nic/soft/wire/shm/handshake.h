// SPDX-License-Identifier: BSD-3-Clause
// The two sides of setting a link up over a local socket (hello, welcome, attach, attached), each a small state machine
// driven by the engine. Peers of another user are turned away.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "nic/engine.h"
#include "nic/soft/strangers.h"
#include "nic/soft/wire/shm/layout.h"
#include "nic/soft/wire/shm/link.h"
#include "nic/soft/wire/shm/segment.h"
#include "os/peer_process.h"
#include "os/slow_close.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft::shm {

class Fabric;
class ShmStream;

// What travels with a greeting: the descriptors of a segment, of the region table and of the marks.
using PassedDescriptors = std::array<os::PassedFd, 3>;

// The connecting side, on behalf of one stream. It lives until it has a link for the stream or gives up.
class ActiveHandshake final : public FdHandler {
 public:
  ActiveHandshake(Fabric& fabric, ShmStream& stream, std::deque<std::string> names);
  ~ActiveHandshake() override;
  void begin();
  void descriptors_lost() { give_up(); }

  ShmStream& stream() const { return stream_; }
  bool attaching_to(const NodeId& node, const os::PeerProcess& process) const {
    return state_ == State::attaching && peer_ == node && process_.is_same_as(process);
  }
  bool has_socket() const { return static_cast<bool>(socket_); }
  void ready(std::uint32_t events) override;

 private:
  enum class State : std::uint8_t { idle, greeting, attaching, following, done };

  void try_next();
  void heard(const Greeting& greeting, const PassedDescriptors& descriptors);
  void welcomed(const Greeting& greeting);
  void attached(const Greeting& greeting, const PassedDescriptors& descriptors);
  void use(const std::shared_ptr<Link>& link);
  void give_up();
  void drop_socket();

  Fabric& fabric_;
  ShmStream& stream_;
  std::deque<std::string> names_;  // still to be tried
  State state_ = State::idle;
  os::LocalSocket socket_;
  Segment inbound_;
  NodeId peer_{};
  os::PeerProcess process_;  // whose name that is, once it has been heard
  std::vector<ActiveHandshake*> followers_;
  ActiveHandshake* leader_ = nullptr;
  Timer retry_timer_;
};

// The listening side of one socket.
class PassiveHandshake final : public FdHandler, public Stranger {
 public:
  PassiveHandshake(Fabric& fabric, os::LocalSocket socket);
  ~PassiveHandshake() override;
  bool begin();
  void ready(std::uint32_t events) override;
  void turn_out() override;

 private:
  bool step(const Greeting& greeting, const PassedDescriptors& descriptors);

  Fabric& fabric_;
  os::LocalSocket socket_;
  bool greeted_ = false;
  bool peer_wants_fences_ = false;
  NodeId peer_{};
  Timer patience_;
};

}  // namespace anydat::nic::soft::shm
