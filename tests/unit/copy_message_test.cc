// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/copy_message.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace anydat::nic::soft {
namespace {

// Every byte, and none before or behind; what is read is exactly as long, which the address sanitizer sees.
TEST(CopyMessage, CopiesWhatItShallAndNoMore) {
  constexpr std::byte kOther{0xee};
  for (std::size_t count = 0; count <= 100; ++count) {
    const auto from = std::make_unique<std::byte[]>(count);
    for (std::size_t i = 0; i < count; ++i) from[i] = static_cast<std::byte>(i + 1);
    std::vector<std::byte> to(count + 2, kOther);
    copy_message(to.data() + 1, from.get(), count);
    EXPECT_EQ(to.front(), kOther);
    EXPECT_EQ(to.back(), kOther);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(to[i + 1], from[i]) << count;
  }
}

}  // namespace
}  // namespace anydat::nic::soft
