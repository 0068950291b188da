// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/format/wanted.h"

#include <algorithm>
#include <cassert>

#include "base/big_endian.h"
#include "nic/service_ports.h"

namespace anydat::nic::soft::iwarp {
namespace {

constexpr std::uint64_t kMagic = 0x616e'7964'6174'2d71;  // "anydat-q"
constexpr std::size_t kQualAt = 8;
constexpr std::size_t kKindAt = 16;
constexpr std::size_t kLengthAt = 18;
constexpr std::size_t kDataAt = 24;
static_assert(kDataAt + kPrivateDataMax == kWantedBytes);

}  // namespace

std::array<std::byte, kWantedBytes> write_wanted(const Wanted& wanted) {
  assert(!is_port(wanted.qual) && wanted.private_data.size() <= kPrivateDataMax);
  std::array<std::byte, kWantedBytes> bytes{};
  base::store_big(bytes.data(), kMagic);
  base::store_big(bytes.data() + kQualAt, wanted.qual);
  base::store_big(bytes.data() + kKindAt, static_cast<std::uint16_t>(wanted.kind));
  base::store_big(bytes.data() + kLengthAt, static_cast<std::uint16_t>(wanted.private_data.size()));
  std::copy(wanted.private_data.begin(), wanted.private_data.end(), bytes.begin() + kDataAt);
  return bytes;
}

WantedParsed parse_wanted(std::span<const std::byte> private_data, Wanted& wanted) {
  if (private_data.size() != kWantedBytes || base::load_big<std::uint64_t>(private_data.data()) != kMagic) {
    return WantedParsed::nothing;
  }
  const auto qual = base::load_big<std::uint64_t>(private_data.data() + kQualAt);
  const auto kind = base::load_big<std::uint16_t>(private_data.data() + kKindAt);
  const std::size_t length = base::load_big<std::uint16_t>(private_data.data() + kLengthAt);
  const bool known = kind == static_cast<std::uint16_t>(Wanted::Kind::whose) ||
                     kind == static_cast<std::uint16_t>(Wanted::Kind::connection);
  if (is_port(qual) || !known || length > kPrivateDataMax) return WantedParsed::bad;
  wanted = {static_cast<Wanted::Kind>(kind), qual, private_data.subspan(kDataAt, length)};
  return WantedParsed::good;
}

}  // namespace anydat::nic::soft::iwarp
