// SPDX-License-Identifier: BSD-3-Clause
// The values of DAT as the objects know them. No C header is behind them: the two versions of the interface lay some of
// them out differently, and a face converts (face/). Where both versions give a value the same number, it has that
// number here too, so that a face may convert it by a cast; face/values.cc asserts that it may.
#pragma once

#include <cstdint>

#include "nic/types.h"

namespace anydat::dapl {

using Handle = void*;
using Count = std::int32_t;
using Microseconds = std::uint32_t;
using nic::Segment;  // local, or of a peer: the key is then what the peer told

// The same as programs of version 2.0 lay it out. Posts take either, and read each where they copy it in any case, so
// that no version's face has to convert any on the hot path.
struct PackedSegment {
  std::uint64_t address;
  std::uint32_t length;
  std::uint32_t key;
};
inline const Segment& whole(const Segment& segment) {
  return segment;
}
inline Segment whole(const PackedSegment& segment) {
  return {segment.key, 0, segment.address, segment.length};
}

inline constexpr Microseconds kInfinite = ~Microseconds{0};
inline constexpr Count kNoWatermark = -1;
inline constexpr Count kUnknownCount = -2;

// In place of an asynchronous EVD: one that exists elsewhere (in), one that is out of scope (out).
inline const Handle kEvdExists = reinterpret_cast<Handle>(std::uintptr_t{1});
inline const Handle kEvdOutOfScope = reinterpret_cast<Handle>(std::uintptr_t{2});

enum class HandleType : std::uint32_t { cr, ep, evd, ia, lmr, psp, pz, rmr, rsp, cno, srq, csp, query };
inline constexpr std::size_t kHandleTypes = 12;  // of the objects of an instance, which the last is none of

enum class EpState : std::uint32_t {
  unconnected,
  unconfigured_unconnected,
  reserved,
  unconfigured_reserved,
  passive_connection_pending,
  unconfigured_passive,
  active_connection_pending,
  tentative_connection_pending,
  unconfigured_tentative,
  connected,
  disconnect_pending,
  disconnected,
  completion_pending,
};

enum class CloseFlags : std::uint32_t { abrupt, graceful };
enum class PspFlags : std::uint32_t { consumer, provider };
enum class MemoryType : std::uint32_t { virtual_memory, lmr, shared_virtual, so_virtual };

// Unions of bits.
using CompletionFlags = std::uint32_t;
namespace completion {
inline constexpr CompletionFlags kDefault = 0x00;
inline constexpr CompletionFlags kSuppress = 0x01;
inline constexpr CompletionFlags kSolicitedWait = 0x02;
inline constexpr CompletionFlags kUnsignalled = 0x04;
inline constexpr CompletionFlags kBarrierFence = 0x08;
inline constexpr CompletionFlags kEvdThreshold = 0x10;
inline constexpr CompletionFlags kAll = 0x1f;
}  // namespace completion

using EvdFlags = std::uint32_t;
namespace evd_flag {
inline constexpr EvdFlags kSoftware = 0x001;
inline constexpr EvdFlags kConnectionRequest = 0x010;
inline constexpr EvdFlags kDto = 0x020;
inline constexpr EvdFlags kConnection = 0x040;
inline constexpr EvdFlags kRmrBind = 0x080;
inline constexpr EvdFlags kAsync = 0x100;
inline constexpr EvdFlags kAll = 0x1f1;
inline constexpr EvdFlags kExtension = 0x200;  // where the program can be shown events of an extension (D2-EVT-10)
}  // namespace evd_flag

// Three parts, each with one value.
using EvdState = std::uint32_t;
namespace evd_state {
inline constexpr EvdState kEnabled = 0x01;
inline constexpr EvdState kDisabled = 0x02;
inline constexpr EvdState kWaitable = 0x04;
inline constexpr EvdState kUnwaitable = 0x08;
inline constexpr EvdState kConfigNotify = 0x10;
inline constexpr EvdState kConfigSolicited = 0x20;
inline constexpr EvdState kConfigThreshold = 0x30;
}  // namespace evd_state

// Of memory: nic::access, and what is accepted without effect (LMR-CREATE-23).
using Privileges = std::uint32_t;
inline constexpr Privileges kAllPrivileges = 0x33;
inline constexpr Privileges kRelaxedOrderDisabled = 0x100;

using Qos = std::uint32_t;
inline constexpr Qos kBestEffort = 0;

using ConnectFlags = std::uint32_t;
inline constexpr ConnectFlags kMultipath = 0x01;

// What is called when a CNO is triggered.
struct Agent {
  void* instance_data = nullptr;
  void (*function)(void* instance_data, Handle evd) = nullptr;  // null: there is none
};

}  // namespace anydat::dapl
