// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "nic/types.h"

namespace anydat::nic::soft {

inline constexpr std::uint64_t kAtomicBytes = 8;

// Carries out an atomic operation and answers the word as it was. All operations on all words of this process are
// carried out here, so that they have one order, whatever way they came (D2-ATOM-4). Requires: the address is a
// multiple of 8.
inline std::uint64_t carry_out(WorkKind operation, std::uint64_t address, std::uint64_t operand,
                               std::uint64_t compare) {
  const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(address));
  static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);
  if (operation == WorkKind::fetch_add) return word.fetch_add(operand);
  std::uint64_t found = compare;
  word.compare_exchange_strong(found, operand);
  return found;
}

}  // namespace anydat::nic::soft
