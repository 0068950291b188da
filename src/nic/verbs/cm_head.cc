// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/cm_head.h"

#include <algorithm>
#include <cstring>

#include "base/big_endian.h"

namespace anydat::nic::verbs {

CmMessage::CmMessage(const CmHead& head, std::span<const std::byte> data) : bytes{} {
  CmHead whole = head;
  whole.length = static_cast<std::uint16_t>(data.size());
  std::memcpy(bytes.data(), &whole, sizeof whole);
  std::copy(data.begin(), data.end(), bytes.begin() + sizeof whole);
  length = sizeof whole + data.size();
}

std::optional<CmParsed> parse(std::span<const std::byte> private_data) {
  CmParsed result;
  if (private_data.size() < sizeof result.head) return std::nullopt;
  std::memcpy(&result.head, private_data.data(), sizeof result.head);
  if (result.head.magic != CmHead::kMagic || result.head.kind > CmHead::Kind::part_to) return std::nullopt;
  const std::span<const std::byte> rest = private_data.subspan(sizeof result.head);
  if (result.head.length > rest.size()) return std::nullopt;
  if (std::size_t{result.head.offset} + result.head.length > kIbPrivateDataMax + kQualBytes) return std::nullopt;
  result.data = rest.first(result.head.length);
  if (result.head.kind == CmHead::Kind::data_to || result.head.kind == CmHead::Kind::part_to) {
    if (result.data.size() < kQualBytes) return std::nullopt;
    result.to = base::load_big<std::uint64_t>(result.data.data());
    result.data = result.data.subspan(kQualBytes);
    result.head.kind = result.head.kind == CmHead::Kind::data_to ? CmHead::Kind::data : CmHead::Kind::part;
  }
  return result;
}

}  // namespace anydat::nic::verbs
