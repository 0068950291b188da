// SPDX-License-Identifier: BSD-3-Clause
// Two programs that talk to each other, for each version of the interface to play each part: compiled for both.
#pragma once

#include <functional>
#include <string>

#include "support/wire.h"

namespace anydat::test {

// Rejects the first request with private data as far as the version has them, accepts the second; then writes into and
// reads from the memory that the caller names in a message, and answers. `tell` is given the qualifier when it listens.
void serve_conversation(const Wire& wire, const std::function<void(const std::string&)>& tell);
void call_for_conversation(const Wire& wire, const std::string& qualifier);

// Accepts one connection, whose peer then wants a region to be invalidated, by a message that is not received. `tell`
// is given the qualifier, then the context of the region.
void serve_invalidation(const Wire& wire, const std::function<void(const std::string&)>& tell);

}  // namespace anydat::test
