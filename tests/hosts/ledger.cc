// SPDX-License-Identifier: BSD-3-Clause
#include "ledger.h"

#include <gtest/gtest.h>

#include "support/dat_events.h"

namespace anydat::test {

void Ledger::complete(const DAT_DTO_COMPLETION_EVENT_DATA& completion) {
  EXPECT_EQ(open_.erase(completion.user_cookie.as_64), 1u)
      << "DTO " << completion.user_cookie.as_64 << " completed twice, or was never posted";
  successes_ += completion.status == DAT_DTO_SUCCESS;
}

void EndOfConnection::tell(DAT_EVENT_NUMBER number) {
  story_ += (story_.empty() ? "" : ", ") + event_name(number);
  EXPECT_FALSE(over_) << "an event after the end: " << story_;
  if (number == DAT_CONNECTION_EVENT_ESTABLISHED) {
    EXPECT_FALSE(established_) << story_;
    established_ = true;
    return;
  }
  const bool of_a_connection = number == DAT_CONNECTION_EVENT_DISCONNECTED || number == DAT_CONNECTION_EVENT_BROKEN;
  EXPECT_EQ(established_, of_a_connection) << "not the end of what it ends: " << story_;
  over_ = true;
}

}  // namespace anydat::test
