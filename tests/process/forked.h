// SPDX-License-Identifier: BSD-3-Clause
// A child that is not executed anew: what a fork() of a program that uses the library leaves behind.
#pragma once

#include <sys/types.h>

#include <functional>

#include "support/caller.h"

namespace anydat::test {

// Forks. True if `what` came back with true in the child, in time; the child is gone afterwards.
bool holds_in_child(const std::function<bool()>& what, Caller caller = Caller::here());

// A child that does nothing until it is killed, or until the time of any test is up.
class IdleChild {
 public:
  IdleChild();
  ~IdleChild();
  IdleChild(const IdleChild&) = delete;
  IdleChild& operator=(const IdleChild&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// What such a child does. Never returns.
[[noreturn]] void idle_until_killed();

}  // namespace anydat::test
