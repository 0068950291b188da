// SPDX-License-Identifier: BSD-3-Clause
// What the kernel tells of this host's addresses as they come and go, alone or with their devices (rtnetlink).
#pragma once

#include "os/unique_fd.h"

namespace anydat::os {

// A descriptor that is readable when an address of this network namespace has come or gone since it was last drained,
// or a device has gone up or down: an IPv4 address stays where it is then, and nothing is told of it.
// Empty where the kernel does not tell.
UniqueFd open_address_news();
void drain_address_news(int fd);

}  // namespace anydat::os
