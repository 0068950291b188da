// SPDX-License-Identifier: BSD-3-Clause
// A program that closes all descriptors, ours among them, and has other files by their numbers: nobody touches those,
// connections end, and the adapter can be closed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>

#include "neighbour.h"
#include "support/dat_events.h"

namespace anydat::test {
namespace {

using Case = std::tuple<Wire, std::string>;

class ClosedDescriptors : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    victim_.emplace(wire());
    other_.emplace(wire());
    other_->connect_to(*victim_);
    other_->send(1);
    victim_->receive(1);
  }
  const Wire& wire() const { return std::get<Wire>(GetParam()); }
  void take() { victim_->tell("take-descriptors " + std::get<std::string>(GetParam())); }
  void expect_untouched() { EXPECT_EQ(victim_->tell("untouched"), "yes"); }

  std::optional<Neighbour> victim_;
  std::optional<Neighbour> other_;
};

TEST_P(ClosedDescriptors, EndConnectionsAndHarmNoFileOfTheProgram) {
  take();
  victim_->tell("attempt");
  expect_untouched();
  EXPECT_EQ(victim_->connection_event(), event_name(DAT_CONNECTION_EVENT_BROKEN));
  // Connection management of a device says of an end only that it came (docs/verbs.md).
  const bool device = wire().ia_name.starts_with("verbs-");
  EXPECT_THAT(other_->connection_event(),
              testing::AnyOf(event_name(DAT_CONNECTION_EVENT_BROKEN),
                             event_name(device ? DAT_CONNECTION_EVENT_DISCONNECTED : DAT_CONNECTION_EVENT_BROKEN)));
  victim_->tell("attempt");
  expect_untouched();
  victim_->tell("begin-anew");
  expect_untouched();
}

// The child of a fork closes what the library has open.
TEST_P(ClosedDescriptors, AreNotClosedInAChildWhereTheyAreTheProgramsNow) {
  take();
  EXPECT_EQ(victim_->tell("untouched-in-a-child"), "yes");
  expect_untouched();
}

// EVT-35: nothing is asked of the adapter in between. Another one is opened first, which may get the numbers.
TEST_P(ClosedDescriptors, LeaveAnAdapterThatCanBeClosedAndAnotherOpened) {
  take();
  victim_->tell("begin-anew");
  expect_untouched();
  Neighbour third(wire());
  third.connect_to(*victim_);
  third.send(2);
  victim_->receive(2);
  victim_->send(3);
  third.receive(3);
  expect_untouched();
}

INSTANTIATE_TEST_SUITE_P(Wires, ClosedDescriptors,
                         testing::Combine(testing::ValuesIn(all_wires()),
                                          testing::Values("none", "files", "counters", "sockets")),
                         [](const testing::TestParamInfo<Case>& each) {
                           return fmt::format("{}_{}", std::get<Wire>(each.param).name,
                                              std::get<std::string>(each.param));
                         });

}  // namespace
}  // namespace anydat::test
