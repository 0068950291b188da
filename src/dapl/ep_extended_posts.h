// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "dapl/ep.h"

namespace anydat::dapl {

// Posts what not every adapter carries out, nor every peer: made of an endpoint for one post. From any thread, without
// the engine.
class EpExtendedPosts {
 public:
  explicit EpExtendedPosts(Ep& ep) : ep_(ep), posts_(ep.posts()) {}

  // A Read into one of this process's windows, which `local` names as a peer would (D2-READRMR).
  Error post_rdma_read_to_rmr(const PackedSegment* local, std::uint64_t cookie, const PackedSegment* remote,
                              CompletionFlags flags);
  // D2-SENDINV. `context`: of the peer's window, and not 0.
  Error post_send_invalidate(Count num_segments, const PackedSegment* iov, std::uint64_t cookie, CompletionFlags flags,
                             std::uint32_t context);
  // Of the extension (D2-EXT-5). The last is a fetch_add, whose `compare` means nothing, or a compare_swap.
  Error post_write_immediate(Count num_segments, const PackedSegment* iov, std::uint64_t cookie,
                             const PackedSegment* remote, std::uint32_t value, CompletionFlags flags);
  struct Atomic {
    nic::WorkKind kind;
    std::uint64_t operand;  // what is added, or put in the place of `compare`
    std::uint64_t compare;
  };
  Error post_atomic(const Atomic& atomic, const PackedSegment* local, std::uint64_t cookie, const PackedSegment* remote,
                    CompletionFlags flags);

 private:
  Error check_extended(const char* call, std::uint32_t needed, CompletionFlags flags);
  Error check_extended(const char* call, std::uint32_t needed, const PackedSegment* remote, CompletionFlags flags);
  Error locate_in_window(const char* call, const Segment& local, std::uint64_t& where) const;

  Ep& ep_;
  EpPosts& posts_;
};

}  // namespace anydat::dapl
