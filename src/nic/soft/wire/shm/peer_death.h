// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "nic/engine.h"
#include "os/clock.h"
#include "os/peer_process.h"

namespace anydat::nic::soft::shm {

class Link;

// By what a link notices that the process at its other end has ended. The kernel closes that end of the link's socket
// then, unless a child of the process has inherited it; so the process itself is watched as well, where the kernel
// gives a descriptor for that.
//
// With the engine held. Lives and dies with its link, which it cuts.
class PeerDeath final : public FdHandler {
 public:
  // Looks for the process at the other end of the socket.
  PeerDeath(Link& link, Engine& engine, int socket) : link_(link), engine_(engine), process_(socket) {}

  const os::PeerProcess& process() const { return process_; }
  bool watch();  // false when descriptors have run out
  void stop_watching();
  // Whether it has ended or has given up its end of the socket: it copies nothing any more. Also inside a post.
  bool has_come(int socket) const;

  void ready(std::uint32_t events) override;

 private:
  Link& link_;
  Engine& engine_;
  const os::PeerProcess process_;
};

}  // namespace anydat::nic::soft::shm
