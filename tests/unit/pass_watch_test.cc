// SPDX-License-Identifier: BSD-3-Clause
// Whether a peer is seen to poll.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "nic/soft/wire/shm/marks.h"
#include "os/unique_fd.h"

namespace anydat::nic::soft::shm {
namespace {

class PassWatchTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(table_); }

  // One pass after another, with looks between them: threads that pass and that look would be on two processors at once
  // as luck has it, and where they take turns no thread is seen to poll.
  bool comes_to(bool polls) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    do {
      if (polls) table_.count_pass();
      if (watch_.polls(table_) == polls) return true;  // by the next look, the thread may have been interrupted
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }

  os::UniqueFd fd_;
  MarkTable table_ = MarkTable::create(fd_);
  PassWatch watch_;
};

TEST_F(PassWatchTest, SeesThatPassesGoOnAndThatTheyHaveEnded) {
  EXPECT_FALSE(watch_.polls(table_));
  EXPECT_TRUE(comes_to(true));
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
