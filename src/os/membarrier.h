// SPDX-License-Identifier: BSD-3-Clause
// Fences in other threads and processes (membarrier(2)): where one side does something often and the other seldom, and
// each must see what the other did before (Dekker), the side that is often there needs no fence if the other calls
// remote_fence(), or thread_fence() in the same process.
#pragma once

namespace anydat::os {

// Lets remote_fence() reach this process. False: this kernel has no such thing, so fences must be one's own.
bool allow_remote_fences();

// When it returns, each thread of each process that allows it has been through a full fence, as has the caller. Takes
// some microseconds.
void remote_fence();

// Lets thread_fence() reach this process. False: this kernel has no such thing.
bool allow_thread_fences();

// When it returns, each thread of this process has been through a full fence, as has the caller. Takes a microsecond,
// or some tens of them if other threads run. Requires: allow_thread_fences() has said so.
void thread_fence();

}  // namespace anydat::os
