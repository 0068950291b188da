// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nic/types.h"
#include "nic/verbs/resources.h"

namespace anydat::nic::verbs {

// librdmacm opens each device for itself, for the life of the process, and asks what it has opened for a protection
// domain when the first identifier of the device is bound, and again whenever there was none. Where the program has
// closed all descriptors that would fail for ever, and the child of a fork may not ask by what its parent has opened.
// So one identifier of each device that has ever been opened stays bound, at `address`, by this process or the one that
// it has been forked from. Any thread.
void keep_bound(ibv_device* device, const Address& address);

}  // namespace anydat::nic::verbs
