// SPDX-License-Identifier: BSD-3-Clause
// CRC32C: the examples of RFC 3720, appendix B.4, and each way of computing it against the plainest.
#include "nic/soft/wire/iwarp/format/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <span>

#include "unit/hex.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

Bytes on_the_wire(std::uint32_t crc) {
  Bytes bytes(kCrcBytes);
  store_crc(bytes.data(), crc);
  return bytes;
}

Bytes counting(std::size_t count, bool down) {
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(down ? count - 1 - i : i));
  return bytes;
}

// A bit at a time, as the polynomial is defined.
std::uint32_t plainest(std::span<const std::byte> bytes) {
  std::uint32_t rest = 0xffffffff;
  for (const std::byte byte : bytes) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      const bool carry = ((rest ^ (std::to_integer<std::uint32_t>(byte) >> bit)) & 1) != 0;
      rest = rest >> 1 ^ (carry ? 0x82f63b78u : 0u);
    }
  }
  return ~rest;
}

TEST(IwarpCrc32c, GivesTheExamplesOfTheStandardInTheirOrderOfBytes) {
  EXPECT_EQ(on_the_wire(crc32c(0, repeat(32, 0x00))), hex("aa 36 91 8a"));
  EXPECT_EQ(on_the_wire(crc32c(0, repeat(32, 0xff))), hex("43 ab a8 62"));
  EXPECT_EQ(on_the_wire(crc32c(0, counting(32, false))), hex("4e 79 dd 46"));
  EXPECT_EQ(on_the_wire(crc32c(0, counting(32, true))), hex("5c db 3f 11"));
  // A SCSI Read (10) command.
  EXPECT_EQ(on_the_wire(crc32c(0, hex("01 c0 00 00  00 00 00 00  00 00 00 00  00 00 00 00"
                                      "14 00 00 00  00 00 04 00  00 00 00 14  00 00 00 18"
                                      "28 00 00 00  00 00 00 00  02 00 00 00  00 00 00 00"))),
            hex("56 3a 96 d9"));
  EXPECT_EQ(crc32c(0, hex("'123456789'")), 0xe3069283u);
  EXPECT_EQ(crc32c(0, {}), 0u);
}

TEST(IwarpCrc32c, IsReadAsItIsStored) {
  for (const std::uint32_t crc : {0u, 1u, 0x12345678u, 0xfedcba98u, 0xffffffffu}) {
    EXPECT_EQ(load_crc(on_the_wire(crc).data()), crc);
  }
}

TEST(IwarpCrc32c, AllWaysAgreeAtEveryLengthAndPlace) {
  std::mt19937_64 random(20);
  Bytes bytes(8 << 10);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (std::size_t length = 0; length < 600; ++length) {
    const std::span<const std::byte> part = std::span(bytes).subspan(random() % 64, length);
    const std::uint32_t expected = plainest(part);
    ASSERT_EQ(crc32c(0, part), expected) << length;
    ASSERT_EQ(crc32c_by_table(0, part), expected) << length;
    if (processor_has_crc32c()) {
      ASSERT_EQ(crc32c_by_instruction(0, part), expected) << length;
    }
  }
  EXPECT_EQ(crc32c(0, bytes), plainest(bytes));
}

TEST(IwarpCrc32c, PiecesGiveTheSumOfTheWhole) {
  std::mt19937_64 random(21);
  for (int round = 0; round < 300; ++round) {
    Bytes bytes(random() % 2000);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    std::uint32_t crc = 0;
    for (std::span<const std::byte> rest = bytes; !rest.empty();) {
      const std::size_t some = random() % (rest.size() + 1);
      crc = crc32c(crc, rest.first(some));
      rest = rest.subspan(some);
    }
    ASSERT_EQ(crc, plainest(bytes)) << "round " << round;
  }
}

}  // namespace
}  // namespace anydat::test
