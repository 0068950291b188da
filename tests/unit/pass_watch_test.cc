// SPDX-License-Identifier: BSD-3-Clause
// Whether a peer is seen to poll.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/unique_fd.h"
#include "nic/soft/wire/shm/activity.h"

namespace anydat::nic::soft::shm {
namespace {

class PassWatchTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(table_); }

  // In time, which is some microseconds unless the machine is busy.
  bool comes_to(bool polls) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    do {
      if (watch_.polls(table_) == polls) return true;  // by the next look, whoever polls may have been interrupted
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }

  base::UniqueFd fd_;
  ActivityTable table_ = ActivityTable::create(fd_);
  PassWatch watch_;
};

TEST_F(PassWatchTest, SeesThatPassesGoOnAndThatTheyHaveEnded) {
  EXPECT_FALSE(watch_.polls(table_));
  std::atomic<bool> ends = false;
  std::thread polls([&] {
    while (!ends) table_.count_pass();
  });
  EXPECT_TRUE(comes_to(true));
  ends = true;
  polls.join();
  EXPECT_TRUE(comes_to(false));
}

// What went on some time ago says nothing of now.
TEST_F(PassWatchTest, DoesNotTakeThePastForNow) {
  EXPECT_FALSE(watch_.polls(table_));
  table_.count_pass();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // longer than it looks back
  EXPECT_FALSE(watch_.polls(table_));
}

}  // namespace
}  // namespace anydat::nic::soft::shm
