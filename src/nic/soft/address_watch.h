// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "base/unique_fd.h"
#include "nic/engine.h"

namespace anydat::nic::soft {

// Tells those who listen at addresses of this host when addresses come or go. It costs a descriptor while there is
// somebody to be told. With the engine held.
class AddressWatch final : public FdHandler {
 public:
  class Follower {
   public:
    virtual ~Follower() = default;
    virtual void addresses_changed() = 0;

   private:
    friend class AddressWatch;
    base::ListLinks<Follower> place_;
  };

  explicit AddressWatch(Engine& engine) : engine_(engine) {}
  ~AddressWatch() override = default;  // Requires: nobody follows.

  // Where the kernel does not tell, or no descriptor is left, that is logged, and nothing follows.
  void add(Follower& follower);
  void remove(Follower& follower);

  void ready(std::uint32_t events) override;

 private:
  Engine& engine_;
  base::UniqueFd news_;
  base::List<Follower, &Follower::place_> followers_;
};

}  // namespace anydat::nic::soft
