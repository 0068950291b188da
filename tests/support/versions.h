// SPDX-License-Identifier: BSD-3-Clause
// What the structures of uDAPL 1.2 and 2.0 do not share, for suites that are compiled for both (face20/dat/udat.h).
#pragma once

#include <dat/udat.h>

#include <cstdint>
#include <limits>

// The facts of the version's ABI, to be included.
#if DAT_VERSION_MAJOR == 1
#define ANYDAT_ABI_FACTS "unit/abi_facts.inc"
#else
#define ANYDAT_ABI_FACTS "unit/abi2_facts.inc"
#endif

namespace anydat::test {

inline constexpr bool kIsVersion1 = DAT_VERSION_MAJOR == 1;

// What no version knows: 2.0 gives 1 to an extension (D2-EXT-3).
inline constexpr auto kNoServiceType = static_cast<DAT_SERVICE_TYPE>(kIsVersion1 ? 1 : 2);

// What the extension of 2.0 adds to the kinds of events (D2-EVT-10) and to the privileges (D2-LMR-7).
inline constexpr unsigned kExtensionEvents = kIsVersion1 ? 0 : 0x200;
inline constexpr unsigned kExtensionPrivileges = kIsVersion1 ? 0 : 0x40;

// The padding of a triplet, which 2.0's has not.
template <typename Triplet>
void set_padding(Triplet& triplet, std::uint32_t value) {
  if constexpr (requires { triplet.pad; }) triplet.pad = value;
}

// Of a segment, as far as its type goes: 64 bits of 1.2, 32 of 2.0 (D2-TYPE-3).
using SegmentLength = decltype(DAT_LMR_TRIPLET::segment_length);
inline constexpr SegmentLength kSegmentLengthMax = std::numeric_limits<SegmentLength>::max();

}  // namespace anydat::test
