// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/format/crc32c.h"

#ifdef ANYDAT_HAVE_ISAL
#include <isa-l/crc.h>
#endif

#include <array>
#include <cstring>

namespace anydat::nic::soft::iwarp {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // 0x1edc6f41, reflected

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ ((rest & 1) != 0 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

}  // namespace

std::uint32_t crc32c_by_table(std::uint32_t crc, std::span<const std::byte> bytes) {
  std::uint32_t rest = ~crc;
  for (const std::byte byte : bytes) rest = rest >> 8 ^ kTable[(rest ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  return ~rest;
}

#ifdef __x86_64__

bool processor_has_crc32c() {
  return __builtin_cpu_supports("sse4.2") != 0;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::uint32_t crc,
                                                                      std::span<const std::byte> bytes) {
  std::uint64_t rest = ~crc;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= sizeof(std::uint64_t); left -= sizeof(std::uint64_t), at += sizeof(std::uint64_t)) {
    std::uint64_t eight;
    std::memcpy(&eight, at, sizeof eight);
    rest = __builtin_ia32_crc32di(rest, eight);
  }
  std::uint32_t narrow = static_cast<std::uint32_t>(rest);
  for (; left > 0; --left, ++at) narrow = __builtin_ia32_crc32qi(narrow, std::to_integer<unsigned char>(*at));
  return ~narrow;
}

#else

bool processor_has_crc32c() {
  return false;
}
std::uint32_t crc32c_by_instruction(std::uint32_t crc, std::span<const std::byte> bytes) {
  return crc32c_by_table(crc, bytes);
}

#endif

std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> bytes) {
  // Below this the library, which folds many bytes at a time, costs more to call than it saves.
  constexpr std::size_t kShort = 192;
  const bool instruction = processor_has_crc32c();
  if (instruction && bytes.size() < kShort) return crc32c_by_instruction(crc, bytes);
#ifdef ANYDAT_HAVE_ISAL
  // It wants a pointer to what it only reads, in older versions, and leaves inversion to the caller.
  auto* at = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
  if (bytes.size() <= 0x7fffffff) return ~crc32_iscsi(at, static_cast<int>(bytes.size()), ~crc);
#endif
  return instruction ? crc32c_by_instruction(crc, bytes) : crc32c_by_table(crc, bytes);
}

}  // namespace anydat::nic::soft::iwarp
