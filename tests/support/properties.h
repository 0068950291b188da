// SPDX-License-Identifier: BSD-3-Clause
// What an adapter says of itself beyond the standard's attributes, for tests of rules that not every device can keep.
#pragma once

#include <string>
#include <string_view>

#include "support/dat_fixture.h"

namespace anydat::test {

// The value of an attribute that is the provider's own; throws if it has none of that name.
std::string provider_attribute(const Ia& ia, std::string_view name);

// Whether a message that finds no receive waits for one (SRQ-ARR-3); over an iWARP device it ends the connection.
bool messages_wait(const Ia& ia);

// Whether a request that the other side has refused says so by its status; over an iWARP device it is flushed, or
// cut off, and the connection ends.
bool remote_errors_told(const Ia& ia);

}  // namespace anydat::test

// Ends a test whose rule is about messages that wait for a receive, where they do not.
#define ANYDAT_NEEDS_WAITING_MESSAGES(ia)                                                                      \
  if (!anydat::test::messages_wait(ia)) {                                                                      \
    GTEST_SKIP() << "a message that finds no receive ends the connection (ANYDAT_RECEIVER_NOT_READY_MS is 0)"; \
  }

// Ends a test whose rule is about receives that do not notify, where each notifies as if its sender had asked for it.
#define ANYDAT_NEEDS_SOLICITED(ia)                                                                    \
  if (anydat::test::provider_attribute(ia, "ANYDAT_SOLICITED") == "always") {                         \
    GTEST_SKIP() << "every message counts as one that its sender wants to notify (ANYDAT_SOLICITED)"; \
  }

// Ends a test whose rule is about an accept that the active side has yet to confirm, where nothing of the kind is
// awaited.
#define ANYDAT_NEEDS_CONFIRMED_ACCEPTS(ia)                                                               \
  if (anydat::test::provider_attribute(ia, "ANYDAT_ACCEPT_COMPLETES") != "confirmed") {                  \
    GTEST_SKIP() << "the passive side is established by accepting (ANYDAT_ACCEPT_COMPLETES is at once)"; \
  }
