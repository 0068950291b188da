// SPDX-License-Identifier: BSD-3-Clause
// What the tests that kill a process have in common.
#pragma once

#include <dat/udat.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "peer.h"
#include "support/dat_fixture.h"
#include "support/wire.h"

namespace anydat::test {

// With how many processes a test runs beside the two that it is about: none, or seven more clients.
struct Company {
  Wire wire;
  int others;
};
std::ostream& operator<<(std::ostream& out, const Company& company);
std::vector<Company> all_companies();
std::string company_name(const testing::TestParamInfo<Company>& info);

// Kills the peer, and returns how long the next event of `evd` took from then on, and which it is.
struct Heard {
  DAT_EVENT_NUMBER event;
  std::chrono::milliseconds after;
};
Heard kill_and_hear(Peer& victim, DAT_EVD_HANDLE evd, Caller caller = Caller::here());

// CONN-SEQ-15: how a connection may end whose peer was killed.
MATCHER(IsEndByDeath, "is BROKEN or DISCONNECTED") {
  *result_listener << "which is " << event_name(arg.event) << " after " << arg.after.count() << " ms";
  return arg.event == DAT_CONNECTION_EVENT_BROKEN || arg.event == DAT_CONNECTION_EVENT_DISCONNECTED;
}
MATCHER_P(IsEvent, number, "is " + event_name(number)) {
  *result_listener << "which is " << event_name(arg.event) << " after " << arg.after.count() << " ms";
  return arg.event == number;
}

// Reaps the completions of `count` sends: each comes once, in order, and after the first that failed all fail (INV-2).
// Returns how many succeeded.
int reap_sends(DAT_EVD_HANDLE evd, int count, Caller caller = Caller::here());

}  // namespace anydat::test
