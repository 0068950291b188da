// SPDX-License-Identifier: BSD-3-Clause
// Which connection of a link notes its RDMA in which slot.
#include <gtest/gtest.h>

#include <set>

#include "nic/soft/wire/shm/rdma_uses.h"

namespace anydat::test {
namespace {

namespace shm = nic::soft::shm;

constexpr std::uint32_t kOwnSlots = shm::kRdmaSlots - shm::kSharedRdmaSlots;
constexpr std::uint32_t kSlotsPerLine = 64 / sizeof(std::uint32_t);

TEST(ConnectionSlots, EachIsOfOneConnectionUntilNoneIsLeft) {
  shm::ConnectionSlots slots;
  std::set<std::uint32_t> taken;
  for (std::uint32_t i = 0; i < kOwnSlots; ++i) {
    const std::uint32_t slot = slots.take();
    EXPECT_GE(slot, shm::kSharedRdmaSlots);
    EXPECT_LT(slot, shm::kRdmaSlots);
    EXPECT_TRUE(taken.insert(slot).second) << slot;
  }
  EXPECT_EQ(slots.take(), 0u);
  for (const std::uint32_t slot : taken) {
    slots.give_back(slot);
    EXPECT_EQ(slots.take(), slot);
  }
  slots.give_back(0);  // a shared one is no connection's
  EXPECT_EQ(slots.take(), 0u);
}

TEST(ConnectionSlots, NeighboursInTimeAreNotNeighboursInMemory) {
  shm::ConnectionSlots slots;
  std::set<std::uint32_t> lines;
  for (std::uint32_t i = 0; i < kOwnSlots / kSlotsPerLine; ++i) lines.insert(slots.take() / kSlotsPerLine);
  EXPECT_EQ(lines.size(), kOwnSlots / kSlotsPerLine);
}

}  // namespace
}  // namespace anydat::test
