// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/list.h"
#include "nic/engine.h"
#include "nic/timer.h"
#include "nic/types.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft {

// Tells those who listen at an adapter's addresses, of either wire, when addresses come or go. It costs a descriptor
// while there is a follower to be told. With the engine held.
class AddressWatch final : public FdHandler {
 public:
  class Follower {
   public:
    virtual ~Follower() = default;
    // `now`: all that the adapter has. No follower comes or goes because of it.
    virtual void addresses_changed(const std::vector<Address>& now) = 0;

   private:
    friend class AddressWatch;
    base::ListLinks<Follower> place_;
    bool wants_another_look_ = false;
  };

  // The scope: "*", or the device whose addresses are meant.
  AddressWatch(Engine& engine, std::string scope)
      : engine_(engine), scope_(std::move(scope)), again_timer_([this] { tell(); }) {}
  ~AddressWatch() override = default;  // Requires: no follower is left.

  // Where the kernel does not tell, or no descriptor is left, that is logged once, and nothing follows.
  void add(Follower& follower);
  void remove(Follower& follower);
  // It could not do what it wants to, and is told again in a moment of what the adapter has then.
  void look_again(Follower& follower);

  void ready(std::uint32_t events) override;

 private:
  void tell();  // those who want it

  Engine& engine_;
  const std::string scope_;
  os::UniqueFd news_;
  bool warned_ = false;
  bool blind_ = false;  // addresses cannot be looked up
  Timer again_timer_;
  base::List<Follower, &Follower::place_> followers_;
};

}  // namespace anydat::nic::soft
