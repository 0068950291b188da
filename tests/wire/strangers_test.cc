// SPDX-License-Identifier: BSD-3-Clause
// Who has to go when the descriptors for sockets that are no connection are used up.
#include "nic/soft/strangers.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>
#include <vector>

#include "support/patience.h"

namespace anydat::nic::soft {
namespace {

using Stage = Stranger::Stage;

class Someone final : public Stranger {
 public:
  Someone(Strangers& all, Stage stage) : Stranger(all, {}, stage) {}
  void turn_out() override { gone_ = true; }
  bool gone() const { return gone_; }

 private:
  bool gone_ = false;
};

class StrangersOfAnAdapter : public testing::Test {
 protected:
  static constexpr std::size_t kShare = 16;

  StrangersOfAnAdapter() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = 4 * kShare;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~StrangersOfAnAdapter() override { setrlimit(RLIMIT_NOFILE, &before_); }
  void add(std::size_t count, Stage stage) {
    while (count-- > 0) everybody_.push_back(std::make_unique<Someone>(strangers_, stage));
  }
  std::size_t gone() const {
    std::size_t count = 0;
    for (const auto& one : everybody_) count += one->gone() ? 1 : 0;
    return count;
  }

  Strangers strangers_;
  std::vector<std::unique_ptr<Someone>> everybody_;

 private:
  rlimit before_{};
};

TEST_F(StrangersOfAnAdapter, HaveTheirShareHoweverManyConnectionsEnd) {
  add(kShare - 1, Stage::parting);
  add(kShare - 1, Stage::asking);  // the program owes them the answer
  EXPECT_TRUE(strangers_.make_room());
  EXPECT_EQ(gone(), 0u);
  add(1, Stage::asking);
  EXPECT_FALSE(strangers_.make_room());
  EXPECT_EQ(gone(), 0u);
}

// EP-DISC-4: a peer that has just heard of the end has time to take what was sent to it, whoever wants to come in.
TEST_F(StrangersOfAnAdapter, WaitForEndsThatHaveJustBegunAndTakeThePlaceOfOldOnes) {
  add(kShare + 3, Stage::parting);
  EXPECT_FALSE(strangers_.make_room());
  EXPECT_EQ(gone(), 0u);
  EXPECT_TRUE(test::eventually([&] { return strangers_.make_room(); }));
  // As many as it takes, the oldest first.
  EXPECT_EQ(gone(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(everybody_[i]->gone());
}

// Their end costs nobody else his.
TEST_F(StrangersOfAnAdapter, AreNotTurnedOutForEndsOfConnections) {
  add(kShare + 3, Stage::parting);
  add(2, Stage::silent);
  EXPECT_TRUE(test::eventually([&] { return strangers_.make_room(); }));
  for (std::size_t i = kShare + 3; i < everybody_.size(); ++i) EXPECT_FALSE(everybody_[i]->gone());
}

}  // namespace
}  // namespace anydat::nic::soft
