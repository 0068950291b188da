// SPDX-License-Identifier: BSD-3-Clause
// Keys of regions: what they open, when they come again, and that a peer cannot foresee them.
#include "nic/region_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "nic/soft/scopes.h"

namespace anydat::test {
namespace {

using namespace nic;

Region region(std::uint64_t address, std::uint64_t length = 100) {
  return {.address = address, .length = length, .zone = 7, .rights = access::kLocalRead | access::kRemoteRead};
}

TEST(RegionTable, AKeyOpensItsRangeToItsZoneWithItsRights) {
  RegionTable table;
  const std::uint32_t key = table.add(region(1000));
  ASSERT_NE(key, 0u);
  EXPECT_EQ(table.check(key, 1000, 100, 7, access::kRemoteRead), RegionCheck::ok);
  EXPECT_EQ(table.check(key, 1099, 1, kAnyZone, access::kLocalRead), RegionCheck::ok);
  EXPECT_EQ(table.check(key, 999, 2, 7, access::kRemoteRead), RegionCheck::out_of_bounds);
  EXPECT_EQ(table.check(key, 1099, 2, 7, access::kRemoteRead), RegionCheck::out_of_bounds);
  EXPECT_EQ(table.check(key, 1050, ~std::uint64_t{0}, 7, access::kRemoteRead), RegionCheck::out_of_bounds);
  EXPECT_EQ(table.check(key, ~std::uint64_t{0}, 2, 7, access::kRemoteRead), RegionCheck::out_of_bounds);
  EXPECT_EQ(table.check(key, 1000, 100, 8, access::kRemoteRead), RegionCheck::wrong_zone);
  EXPECT_EQ(table.check(key, 1000, 100, 7, access::kRemoteWrite), RegionCheck::no_right);
  EXPECT_EQ(table.check(0, 1000, 100, 7, access::kRemoteRead), RegionCheck::unknown_key);
  table.remove(key);
  EXPECT_EQ(table.check(key, 1000, 100, 7, access::kRemoteRead), RegionCheck::unknown_key);
}

// D2-RMR-2: what has a queue pair's number in the place of a zone is that one's alone, and its zone's are its own as
// well.
TEST(RegionTable, WhatIsOfOneQueuePairOpensToNobodyElse) {
  RegionTable table;
  const ZoneId scope = kZoneMax + 5;
  const std::uint32_t own = table.add({1000, 100, scope, access::kRemoteRead | access::kWindow});
  const std::uint32_t shared = table.add({2000, 100, 7, access::kRemoteRead});
  const auto check = [&](std::uint32_t key, RegionUser user) {
    std::uint64_t where = 0;
    return table.resolve(key, key == own ? 1000 : 2000, 100, user, access::kRemoteRead, where);
  };
  EXPECT_EQ(check(own, {7, scope}), RegionCheck::ok);
  EXPECT_EQ(check(shared, {7, scope}), RegionCheck::ok);
  EXPECT_EQ(check(own, {7, scope + 1}), RegionCheck::wrong_zone);
  EXPECT_EQ(check(own, 7), RegionCheck::wrong_zone);
  EXPECT_EQ(check(shared, {8, scope}), RegionCheck::wrong_zone);
}

TEST(Scopes, AreNoZonesAndNoneIsUsedAgainAtOnce) {
  soft::Scopes all;
  std::set<ZoneId> seen;
  for (int i = 0; i < 100'000; ++i) {
    const ZoneId number = all.next();
    EXPECT_GT(number, kZoneMax);
    EXPECT_NE(number, kAnyZone);
    EXPECT_TRUE(seen.insert(number).second);
  }
}

// RFC 5042, section 6: each single bit of a key that is not the right one's leads nowhere.
TEST(RegionTable, NoKeyNextToALiveOneOpensAnything) {
  RegionTable table;
  const std::uint32_t key = table.add(region(1000));
  for (unsigned bit = 0; bit < 32; ++bit) {
    EXPECT_EQ(table.check(key ^ 1u << bit, 1000, 1, kAnyZone, 0), RegionCheck::unknown_key) << bit;
  }
}

TEST(RegionTable, AReservedKeyOpensNothingUntilItIsPublished) {
  RegionTable table;
  const std::uint32_t key = table.reserve();
  ASSERT_NE(key, 0u);
  EXPECT_FALSE(table.find(key));
  table.publish(key, region(5));
  ASSERT_TRUE(table.find(key));
  EXPECT_EQ(table.find(key)->address, 5u);
  table.remove(key);
  const std::uint32_t other = table.reserve();
  table.remove(other);
  EXPECT_FALSE(table.find(other));
}

TEST(RegionTable, RemovingTwiceRemovesNobodyElse) {
  RegionTable table(2);
  const std::uint32_t first = table.add(region(1));
  const std::uint32_t second = table.add(region(2));
  EXPECT_EQ(table.add(region(3)), 0u);  // no more room
  table.remove(first);
  table.remove(first);
  EXPECT_TRUE(table.find(second));
  EXPECT_NE(table.add(region(3)), 0u);
  EXPECT_EQ(table.add(region(4)), 0u);
}

// LMR-FREE-9: as programs register and free, a key that was freed does not come again for a long time.
TEST(RegionTable, KeysAreNeverZeroAndNotSoonReused) {
  RegionTable table;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> keys_of_slot;
  for (int i = 0; i < 400000; ++i) {
    const std::uint32_t key = table.add(region(1));
    ASSERT_NE(key, 0u);
    table.remove(key);
    keys_of_slot[table.slot_of(key)].push_back(key);
  }
  EXPECT_GE(keys_of_slot.size(), 1000u);
  EXPECT_LE(keys_of_slot.size(), 2000u);  // each costs memory
  for (const auto& [slot, keys] : keys_of_slot) {
    ASSERT_NE(slot, 0u);
    ASSERT_EQ(std::set(keys.begin(), keys.end()).size(), keys.size());
  }
}

TEST(RegionTable, LiveKeysAreDistinct) {
  RegionTable table;
  std::unordered_set<std::uint32_t> keys;
  for (std::uint32_t i = 0; i < 100000; ++i) ASSERT_TRUE(keys.insert(table.add(region(i + 1))).second);
  EXPECT_EQ(keys.count(0), 0u);
}

// Who knows some keys knows nothing of the others: every bit is as often set as not, changes from one key to the next
// as often as not, and another table gives other keys. (Limits that chance crosses less than once in 10^9 runs.)
TEST(RegionTable, KeysCannotBeForeseen) {
  constexpr int kCount = 8192;
  RegionTable table;
  RegionTable other;
  std::array<int, 32> set{};
  std::array<int, 32> changed{};
  int same = 0;
  std::uint32_t last = 0;
  for (int i = 0; i < kCount; ++i) {
    const std::uint32_t key = table.add(region(1));
    if (key == other.add(region(1))) ++same;
    for (unsigned bit = 0; bit < 32; ++bit) {
      set[bit] += static_cast<int>(key >> bit & 1);
      changed[bit] += static_cast<int>((key ^ last) >> bit & 1);
    }
    last = key;
  }
  for (unsigned bit = 0; bit < 32; ++bit) {
    EXPECT_NEAR(set[bit], kCount / 2, 320) << bit;  // seven standard deviations
    EXPECT_NEAR(changed[bit], kCount / 2, 320) << bit;
  }
  EXPECT_LE(same, 4);
}

// Who has seen one key of a slot does not know the one after it.
TEST(RegionTable, TheNextKeyOfASlotCannotBeForeseen) {
  RegionTable table;
  std::unordered_map<std::uint32_t, std::uint32_t> last_of_slot;
  std::unordered_map<std::uint32_t, int> steps;
  int count = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t key = table.add(region(1));
    table.remove(key);
    auto [place, first] = last_of_slot.try_emplace(table.slot_of(key), key);
    if (!first) {
      ++steps[key - place->second];
      ++count;
    }
    place->second = key;
  }
  ASSERT_GT(count, 1000);
  // There are 2048 steps; with 1024 slots, most have one of their own.
  EXPECT_GT(steps.size(), 500u);
}

TEST(RegionTable, AFullTableHasAKeyForEachRegion) {
  RegionTable table;
  std::vector<std::uint32_t> keys;
  for (std::uint32_t i = 0; i < kRegionsMax - 1; ++i) {
    keys.push_back(table.add(region(i)));
    ASSERT_NE(keys.back(), 0u) << i;
    ASSERT_NE(table.slot_of(keys.back()), 0u) << i;
  }
  EXPECT_EQ(table.add(region(1)), 0u);
  for (std::uint32_t i = 0; i < keys.size(); ++i) ASSERT_EQ(table.find(keys[i]).value().address, i);
  table.remove(keys[12345]);
  const std::uint32_t again = table.add(region(77));
  EXPECT_NE(again, 0u);
  EXPECT_NE(again, keys[12345]);
  EXPECT_EQ(table.slot_of(again), table.slot_of(keys[12345]));
}

TEST(RegionTable, APeerThatMapsItSeesTheSame) {
  RegionTable table;
  const PeerRegions peer(table.descriptor());
  ASSERT_TRUE(peer);
  const std::uint32_t key = table.add(region(1000));
  EXPECT_EQ(peer.check(key, 1000, 100, 7, access::kRemoteRead), RegionCheck::ok);
  table.remove(key);
  EXPECT_EQ(peer.check(key, 1000, 100, 7, access::kRemoteRead), RegionCheck::unknown_key);
}

// The table grows behind the back of those who have mapped it. Before, a key that leads there opens nothing.
TEST(RegionTable, APeerThatMapsItSeesItGrow) {
  RegionTable table;
  const PeerRegions peer(table.descriptor());
  ASSERT_TRUE(peer);
  for (std::uint32_t key = 1; key != 0 && key < 1u << 31; key *= 3) EXPECT_FALSE(peer.find(key));
  std::vector<std::uint32_t> keys;
  for (std::uint32_t i = 0; i < 100'000; ++i) keys.push_back(table.add(region(i)));
  for (std::uint32_t i = 0; i < keys.size(); ++i) ASSERT_EQ(peer.find(keys[i]).value().address, i);
  const PeerRegions later(table.descriptor());
  for (std::uint32_t i = 0; i < keys.size(); ++i) ASSERT_EQ(later.find(keys[i]).value().address, i);
}

// A process that has the descriptor may make the file longer, which does no harm, but neither write it nor make it
// shorter, nor keep the table from growing.
TEST(RegionTable, APeerThatHasItsFileDoesNoHarm) {
  RegionTable table;
  const int fd = table.descriptor();
  EXPECT_NE(::ftruncate(fd, 0), 0);
  EXPECT_NE(::ftruncate(fd, RegionView::kFirstBytes - 4096), 0);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_LT(::pwrite(fd, &fd, sizeof fd, 0), 0);
  EXPECT_NE(::fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
  ASSERT_EQ(::ftruncate(fd, std::int64_t{1} << 40), 0);
  const PeerRegions peer(fd);
  std::vector<std::uint32_t> keys;
  for (std::uint32_t i = 0; i < 100'000; ++i) keys.push_back(table.add(region(i)));
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(table.find(keys[i]).value().address, i);
    ASSERT_EQ(peer.find(keys[i]).value().address, i);
  }
}

// A table of a peer that is made by hand: nothing of it is taken on trust.
TEST(RegionTable, AHostileTableIsHarmless) {
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{4096}, std::uint64_t{RegionView::kFirstBytes - 1}}) {
    const int fd = ::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(bytes)), 0);
    ASSERT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    EXPECT_FALSE(PeerRegions(fd)) << bytes;
    ::close(fd);
  }
  for (const std::uint64_t spread : {std::uint64_t{0}, std::uint64_t{2}, ~std::uint64_t{0}}) {
    const int fd = ::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(::ftruncate(fd, RegionView::kFirstBytes), 0);
    ASSERT_EQ(::pwrite(fd, &spread, sizeof spread, offsetof(RegionEntry, address)), 8);
    const std::uint64_t magic = kRegionTableMagic;
    ASSERT_EQ(::pwrite(fd, &magic, sizeof magic, offsetof(RegionEntry, length)), 8);
    EXPECT_FALSE(PeerRegions(fd));  // it could shrink
    ASSERT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    const PeerRegions peer(fd);
    ASSERT_TRUE(peer);
    for (std::uint32_t key = 1; key < 1u << 30; key = key * 3 + 1) EXPECT_FALSE(peer.find(key));
    const std::uint64_t other = magic + 1;
    ASSERT_EQ(::pwrite(fd, &other, sizeof other, offsetof(RegionEntry, length)), 8);
    EXPECT_FALSE(PeerRegions(fd));
    ::close(fd);
  }
}

}  // namespace
}  // namespace anydat::test
