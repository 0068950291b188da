// SPDX-License-Identifier: BSD-3-Clause
// Where handles lie: in chunks that are found by their addresses, wherever the system has room for them.
#include "dapl/handle_table.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace anydat::test {
namespace {

using dapl::HandleSlot;
using dapl::HandleTable;

TEST(HandleTable, IsAsLargeAsEverWhereverTheSystemHasRoomForIt) {
  constexpr std::size_t kWanted = 1'500'000;
  const int provider = 0;  // never looked at
  auto& object = reinterpret_cast<dapl::Object&>(const_cast<int&>(provider));  // never looked at
  HandleTable& table = HandleTable::instance();
  std::vector<HandleSlot*> all;
  std::vector<std::pair<void*, std::size_t>> others;
  while (all.size() < kWanted) {
    if (all.size() % 700 == 0) {  // other memory in between, so that the chunks are far apart
      const std::size_t bytes = all.size() % 1400 == 0 ? 33u << 20 : 400u << 10;
      others.emplace_back(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), bytes);
    }
    HandleSlot* const slot = table.add(&provider, dapl::HandleType::ia, object);
    ASSERT_NE(slot, nullptr) << all.size();
    all.push_back(slot);
  }
  for (HandleSlot* slot : all) ASSERT_EQ(HandleTable::find(slot), slot);
  for (HandleSlot* slot : all) table.remove(slot);
  for (HandleSlot* slot : all) {
    ASSERT_EQ(HandleTable::find(slot), nullptr);
    ASSERT_TRUE(HandleTable::owns(slot));
  }
  for (const auto& [memory, bytes] : others) {
    if (memory != MAP_FAILED) munmap(memory, bytes);
  }
}

}  // namespace
}  // namespace anydat::test
