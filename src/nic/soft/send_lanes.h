// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nic/soft/local_region.h"
#include "nic/soft/rdma_lane.h"

namespace anydat::nic::soft {

// The short ways of a queue pair's requests, one for each kind that has one. The stream opens them; they are closed by
// whatever must come before a request that is posted from then on.
//
// With the send lock, but for a guess.
class SendLanes {
 public:
  explicit SendLanes(const RegionTable& regions) : regions_(regions) {}

  // The like of this request may go by a lane from now on.
  template <WorkKind kind>
  void open(const SendRequest& request, const typename RdmaLane<kind>::Target& target, ZoneId zone) {
    if (request.segments.size() == 1) rdma<kind>().open(target, request.segments.front(), regions_, zone);
  }
  // The same of Sends, which send_again() of the stream carries.
  void open_send(const SendRequest& request, ZoneId zone) {
    if (request.segments.size() == 1) send.open(request.segments.front(), regions_, zone, access::kLocalRead);
  }
  // And of Writes that the peer puts in place, which put_again() of the stream carries.
  void open_put(const SendRequest& request, ZoneId zone) {
    if (request.segments.size() == 1) put.open(request.segments.front(), regions_, zone, access::kLocalRead);
  }
  void close() {
    write.close();
    read.close();
    send.close();
    put.close();
  }

  template <WorkKind kind>
  RdmaLane<kind>& rdma() {
    if constexpr (kind == WorkKind::rdma_read) {
      return read;
    } else {
      return write;
    }
  }

  RdmaLane<WorkKind::rdma_write> write;
  RdmaLane<WorkKind::rdma_read> read;
  SeenLocalRegion send{false};
  LocalRegion put;

 private:
  const RegionTable& regions_;
};

}  // namespace anydat::nic::soft
