// SPDX-License-Identifier: BSD-3-Clause
// Letting the adapters of this process move on, in place of waiting for some time in which nothing comes.
#pragma once

#include <dat/udat.h>

namespace anydat::test {

// An instance that settle() sees to, from its opening on until it is closed. `polled`: whether a thread that polls it
// makes all of its progress, as with the software adapters, and no device beside it.
void note_open(DAT_IA_HANDLE ia, bool polled);
bool note_closed(DAT_IA_HANDLE ia);  // whether it was polled

// Something else on which what adapters here do may depend, as long as it lives: another process, say.
class Bystander {
 public:
  Bystander();
  ~Bystander();
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;
};

// Drives all adapters of this process in turn. When it returns true, what had been posted, put off or sent before has
// been carried out and reported, and what that brought about at the other side, too; but for what waits for memory, for
// another thread, or for a timer of more than two milliseconds. False if it cannot know, since that depends on
// something else, too (a bystander, a device): then only time tells.
bool settle();

}  // namespace anydat::test
