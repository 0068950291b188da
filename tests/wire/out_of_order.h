// SPDX-License-Identifier: BSD-3-Clause
// What the tests of messages whose segments overtake each other share.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "wire/sim_fixture.h"

namespace anydat::test {

class OutOfOrder : public SimTest {
 protected:
  explicit OutOfOrder(const Wire& wire_of_server = local_wire()) : SimTest(wire_of_server) {}
  static auto is_message(std::set<std::uint32_t> numbers) {
    return [numbers = std::move(numbers)](const nic::soft::iwarp::SegmentHeader& header) {
      return numbers.contains(header.sequence);
    };
  }
  static auto is_first_of(std::set<std::uint32_t> numbers) {
    return [numbers = std::move(numbers)](const nic::soft::iwarp::SegmentHeader& header) {
      return header.offset == 0 && numbers.contains(header.sequence);
    };
  }
  // By messages that have begun and are not delivered.
  static DAT_COUNT held_by(const std::vector<Connection>& pairs) {
    DAT_COUNT held = 0;
    for (const Connection& pair : pairs) held += recv_query(pair.server).allocated;
    return held;
  }
  // The next completions, all good, of messages `first` to `last` of client 0.
  void expect_messages(int first, int last, std::size_t length) {
    for (int number = first; number <= last; ++number) {
      const DAT_DTO_COMPLETION_EVENT_DATA dto = expect_completion(server.recv.get());
      EXPECT_EQ(dto.transfered_length, length) << number;
      EXPECT_TRUE(holds(dto.user_cookie, 0, number, length)) << number;
    }
    EXPECT_FALSE(poll_event(server.recv.get()));
  }
};

}  // namespace anydat::test
