// SPDX-License-Identifier: BSD-3-Clause
// The table of an endpoint's states, beside tables 2.2 and 2.3 of the rules as they are written there: a line for each
// step, a column for each state.
#include "dapl/ep_state.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace anydat::dapl {
namespace {

constexpr std::array kStates{EpState::unconnected,
                             EpState::reserved,
                             EpState::passive_connection_pending,
                             EpState::tentative_connection_pending,
                             EpState::active_connection_pending,
                             EpState::completion_pending,
                             EpState::connected,
                             EpState::disconnect_pending,
                             EpState::disconnected};

// "-": not allowed; "ok": the state stays; else the letter of the state it leads to.
constexpr std::string_view kLetters = "URPTACODX";

struct Line {
  EpStep step;
  const char* name;
  const char* cells;
};
constexpr Line kLines[] = {
    // U  R  P  T  A  C  O  D  X
    {EpStep::connect, "dat_ep_connect", "A - - - - - - - -"},
    {EpStep::duplicate, "dat_ep_dup_connect", "- - - - - - ok - -"},
    {EpStep::reserve, "dat_rsp_create", "R - - - - - - - -"},
    {EpStep::release, "dat_rsp_free of an RSP without a request", "- U - - - - - - -"},
    {EpStep::make_tentative, "a PSP makes it", "T - - - - - - - -"},
    {EpStep::offer, "a request comes", "- P - - - - - - -"},
    {EpStep::take_offer_back, "the request finds no room", "- - R - - - - - -"},
    {EpStep::accept, "dat_cr_accept", "C - C C - - - - -"},
    {EpStep::reject, "dat_cr_reject", "- - U - - - - - -"},
    {EpStep::modify_zone, "dat_ep_modify, PZ", "ok - - ok - - - - -"},
    {EpStep::modify_parts, "dat_ep_modify, EVDs and attributes", "ok ok ok ok - - - - -"},
    {EpStep::modify_named, "dat_ep_modify, specific attributes", "ok - - - - - - - -"},
    {EpStep::post_request, "posts but receives", "- - - - - - ok - ok"},
    {EpStep::disconnect, "dat_ep_disconnect", "- - - - ok ok D ok ok"},
    {EpStep::reset, "dat_ep_reset", "ok - - - - - - - U"},
    {EpStep::free, "dat_ep_free", "ok - - - ok ok ok ok ok"},
    {EpStep::established, "EP-SM-10, 16", "- - - - O O - - -"},
    {EpStep::connect_failed, "EP-SM-11 to 14", "- - - - X - - - -"},
    {EpStep::accept_failed, "EP-SM-17", "- - - - - X - - -"},
    {EpStep::closed, "EP-SM-18 to 21", "- - - - X X X X -"},
};

std::string cell_of(EpState state, EpStep step) {
  const EpTransition* const transition = find_transition(state, step);
  if (!transition) return "-";
  if (!transition->to) return "ok";
  for (std::size_t i = 0; i < kStates.size(); ++i) {
    if (kStates[i] == *transition->to) return std::string(1, kLetters[i]);
  }
  return "a state that is never reported (EP-SM-1)";
}

TEST(EpStateTest, EachCellIsThatOfTheRules) {  // EP-SM-4
  for (const Line& line : kLines) {
    std::istringstream cells(line.cells);
    for (const EpState state : kStates) {
      std::string cell;
      cells >> cell;
      EXPECT_EQ(cell_of(state, line.step), cell) << line.name << " in " << name_of(state);
    }
  }
}

TEST(EpStateTest, EachStepHasALine) {
  std::set<EpStep> lines;
  for (const Line& line : kLines) EXPECT_TRUE(lines.insert(line.step).second) << line.name;
  for (const EpTransition& transition : kEpTransitions) {
    EXPECT_TRUE(lines.contains(transition.step)) << static_cast<int>(transition.step);
  }
}

TEST(EpStateTest, NoTwoRowsOfAStepHaveAStateInCommon) {
  for (const EpState state : kStates) {
    for (const Line& line : kLines) {
      int rows = 0;
      for (const EpTransition& transition : kEpTransitions) {
        rows += transition.step == line.step && transition.from.contain(state) ? 1 : 0;
      }
      EXPECT_LE(rows, 1) << line.name << " in " << name_of(state);
    }
  }
}

TEST(EpStateTest, AStateOfAnEndCanBeLeftByResetAlone) {  // EP-SM-23
  for (const Line& line : kLines) {
    const EpTransition* const transition = find_transition(EpState::disconnected, line.step);
    EXPECT_EQ(transition && transition->to, line.step == EpStep::reset) << line.name;
  }
}

TEST(EpStateTest, TheStatesForPostsAreThoseOfTheTable) {
  constexpr EpStates kOpen = states_that_allow(EpStep::post_request);
  for (const EpState state : kStates) EXPECT_EQ(kOpen.contain(state), allows(state, EpStep::post_request));
}

}  // namespace
}  // namespace anydat::dapl
