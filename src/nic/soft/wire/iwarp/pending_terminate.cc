// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/pending_terminate.h"

#include <new>

namespace anydat::nic::soft::iwarp {

void PendingTerminate::blame(TerminateCode code, std::span<const std::byte> segment, std::size_t segment_bytes) {
  write(terminate_for(code, segment, segment_bytes));
}

void PendingTerminate::blame_send(TerminateCode code, std::uint32_t sequence, std::uint32_t invalidates) {
  SegmentHeader header;
  header.opcode = invalidates != 0 ? Opcode::send_invalidate : Opcode::send;
  header.last = true;
  header.stag = invalidates;
  header.sequence = sequence;
  std::array<std::byte, kUntaggedHeaderBytes> bytes;
  write_segment_header(header, bytes);
  Terminate message;
  message.code = code;
  message.segment_header = bytes;
  write(message);
}

void PendingTerminate::write(const Terminate& message) {
  if (!message_) message_.reset(new (std::nothrow) Message);
  if (message_) count_ = static_cast<std::uint8_t>(write_terminate(message, *message_));
}

void PendingTerminate::send(Transmitter& line) const {
  if (count_ == 0) return;
  SegmentHeader header;
  header.opcode = Opcode::terminate;
  header.last = true;
  header.sequence = kFirstSequence;
  line.append(header, std::span(*message_).first(count_));
}

TerminateCode code_of(CloseReason reason) {
  switch (reason) {
    case CloseReason::receiver_not_ready:
      return ddp_error::kNoBuffer;
    case CloseReason::remote_access:
      return rdmap_error::kProtectionUnspecified;
    case CloseReason::local_error:
      return rdmap_error::kStreamCatastrophic;
    default:
      return rdmap_error::kLocalCatastrophic;
  }
}

CloseReason reason_of(TerminateCode code) {
  constexpr std::uint8_t kOurs = 0, kProtection = 1;
  if (code == ddp_error::kNoBuffer) return CloseReason::receiver_not_ready;
  if (code.layer <= 1 && code.type == kOurs) return CloseReason::request_failed;
  if (code.layer <= 1 && code.type == kProtection) return CloseReason::remote_access;
  return CloseReason::local_error;
}

TerminateCode refusal_of(RegionCheck check, bool reads) {
  switch (check) {
    case RegionCheck::out_of_bounds:
      return reads ? rdmap_error::kBaseOrBounds : ddp_error::kBaseOrBounds;
    case RegionCheck::wrong_zone:
      return reads ? rdmap_error::kStagOfOtherStream : ddp_error::kStagOfOtherStream;
    case RegionCheck::no_right:
      return rdmap_error::kAccessRights;
    default:
      return reads ? rdmap_error::kInvalidStag : ddp_error::kInvalidStag;
  }
}

}  // namespace anydat::nic::soft::iwarp
