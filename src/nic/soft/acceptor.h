// SPDX-License-Identifier: BSD-3-Clause
// A socket that listens.
#pragma once

#include <functional>

#include "nic/engine.h"
#include "nic/soft/strangers.h"
#include "nic/types.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft {

// Accepts who calls, a bounded number in a turn, as long as strangers have room. With the engine held.
//
// A process without descriptors could not even tell its callers to go away: one is kept for that. Where that has no
// effect either, the socket is not listened to for a while, since the kernel would report it for ever; who calls
// meanwhile waits in its backlog.
class Acceptor final : public FdHandler {
 public:
  using Taker = std::function<void(os::UniqueFd caller, const Address& source)>;

  Acceptor(Engine& engine, Strangers& strangers, os::UniqueFd socket, Taker taker);
  ~Acceptor() override;
  // False when there is no descriptor or no memory for it.
  bool begin();
  // Those who have called before this have not called in vain, as far as there is room for them.
  void take_all_and_stop();
  // The socket stays bound. What local callers have brought may take long to close.
  void stop();

  void ready(std::uint32_t events) override;

 private:
  enum class Outcome : std::uint8_t { taken, nobody, no_room };

  Outcome accept_one();
  bool drop_local_callers();
  Outcome turn_away();
  void keep_spare();
  void pause();
  void resume();

  Engine& engine_;
  Strangers& strangers_;
  os::UniqueFd socket_;
  const Strangers::By way_;
  os::UniqueFd spare_;
  const Taker taker_;
  bool listens_ = false;
  bool has_callers_left_ = false;  // local ones, when it has stopped
  Timer pause_timer_;
};

}  // namespace anydat::nic::soft
