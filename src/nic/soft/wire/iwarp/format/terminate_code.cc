// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/format/terminate_code.h"

#include <algorithm>
#include <array>

namespace anydat::nic::soft::iwarp {
namespace {

struct Description {
  TerminateCode code;
  std::string_view words;
};

constexpr std::array kDescriptions{
    Description{rdmap_error::kLocalCatastrophic, "RDMAP: local catastrophe"},
    Description{rdmap_error::kInvalidStag, "RDMAP: no such STag"},
    Description{rdmap_error::kBaseOrBounds, "RDMAP: outside the region of the STag"},
    Description{rdmap_error::kAccessRights, "RDMAP: the STag does not allow it"},
    Description{rdmap_error::kStagOfOtherStream, "RDMAP: the STag is not for this stream"},
    Description{rdmap_error::kOffsetWraps, "RDMAP: the tagged offset wraps around"},
    Description{rdmap_error::kCannotInvalidate, "RDMAP: the STag cannot be invalidated"},
    Description{rdmap_error::kProtectionUnspecified, "RDMAP: not allowed"},
    Description{rdmap_error::kVersion, "RDMAP: unknown version"},
    Description{rdmap_error::kUnexpectedOpcode, "RDMAP: unexpected operation"},
    Description{rdmap_error::kStreamCatastrophic, "RDMAP: catastrophe of this stream"},
    Description{rdmap_error::kGlobalCatastrophic, "RDMAP: catastrophe of all streams"},
    Description{rdmap_error::kOperationCannotInvalidate, "RDMAP: the STag cannot be invalidated by this operation"},
    Description{rdmap_error::kOperationUnspecified, "RDMAP: malformed operation"},
    Description{ddp_error::kLocalCatastrophic, "DDP: local catastrophe"},
    Description{ddp_error::kInvalidStag, "DDP: no such STag"},
    Description{ddp_error::kBaseOrBounds, "DDP: outside the region of the STag"},
    Description{ddp_error::kStagOfOtherStream, "DDP: the STag is not for this stream"},
    Description{ddp_error::kOffsetWraps, "DDP: the tagged offset wraps around"},
    Description{ddp_error::kTaggedVersion, "DDP: unknown version of a tagged segment"},
    Description{ddp_error::kInvalidQueue, "DDP: no such queue"},
    Description{ddp_error::kNoBuffer, "DDP: no buffer for this message sequence number"},
    Description{ddp_error::kSequenceRange, "DDP: message sequence number out of range"},
    Description{ddp_error::kInvalidOffset, "DDP: impossible message offset"},
    Description{ddp_error::kMessageTooLong, "DDP: the message is longer than its buffer"},
    Description{ddp_error::kUntaggedVersion, "DDP: unknown version of an untagged segment"},
    Description{mpa_error::kConnectionLost, "MPA: the TCP connection is lost"},
    Description{mpa_error::kCrc, "MPA: wrong CRC"},
    Description{mpa_error::kMarker, "MPA: marker and length of a frame disagree"},
    Description{mpa_error::kStartUp, "MPA: malformed start-up frame"},
    Description{mpa_error::kLocalCatastrophic, "MPA: local catastrophe"},
    Description{mpa_error::kInsufficientIrd, "MPA: more RDMA Reads are asked for than can be served"},
    Description{mpa_error::kNoMatchingRtr, "MPA: no common kind of ready-to-receive message"},
};

}  // namespace

std::string_view describe(TerminateCode code) {
  const auto* found = std::find_if(kDescriptions.begin(), kDescriptions.end(),
                                   [&](const Description& description) { return description.code == code; });
  return found != kDescriptions.end() ? found->words : "unknown error";
}

}  // namespace anydat::nic::soft::iwarp
