// SPDX-License-Identifier: BSD-3-Clause
// The states of a connection: what follows what, and what is done about what befalls it, for each state.
#include "nic/connection_state.h"

#include <gtest/gtest.h>

#include <string>

namespace anydat::nic {
namespace {

ConnectionState connection_state(std::size_t number) {
  return static_cast<ConnectionState>(number);
}

// One letter for each state: idle, connecting (a), accepting (b), Connected, draining, ending, closed (x).
constexpr const char* kLetters = "iabcdex";

std::string followers(std::size_t from) {
  std::string result;
  for (std::size_t to = 0; to < kConnectionStates; ++to) {
    if (may_follow(connection_state(from), connection_state(to))) result += kLetters[to];
  }
  return result;
}

TEST(ConnectionStates, FollowEachOther) {
  const char* const expected[] = {"iab", "ce", "ce", "de", "e", "ex", "i"};
  for (std::size_t from = 0; from < kConnectionStates; ++from) EXPECT_EQ(followers(from), expected[from]) << from;
}

TEST(ConnectionStates, AreLeftOnlyForward) {
  // What has ended never stands again but by way of idle, and nothing closes that has not ended.
  for (std::size_t to = 0; to < kConnectionStates; ++to) {
    const ConnectionState next = connection_state(to);
    EXPECT_EQ(may_follow(ConnectionState::ending, next), is_over(next)) << to;
    if (next != ConnectionState::ending) {
      EXPECT_EQ(may_follow(next, ConnectionState::closed), false) << to;
    }
  }
}

std::string steps(Occurrence occurrence) {
  std::string result;
  for (std::size_t state = 0; state < kConnectionStates; ++state) {
    result += "-dcrae"[static_cast<std::size_t>(step_for(occurrence, connection_state(state)))];
  }
  return result;
}

// In the order of the states. EP-DISC-7 to -9, EP-DISC-12: a request and an accept are given up, a connection is
// drained or closed, and one that has ended already is let be. r: the request fails, a: the accept fails, e: the
// connection ends.
TEST(ConnectionStates, SayWhatIsToBeDone) {
  EXPECT_EQ(steps(Occurrence::disconnect_in_order), "-ccd---");
  EXPECT_EQ(steps(Occurrence::disconnect_at_once), "-cccc--");
  EXPECT_EQ(steps(Occurrence::peer_gone), "-raee--");
  EXPECT_EQ(steps(Occurrence::failure), "---ee--");
}

}  // namespace
}  // namespace anydat::nic
