// SPDX-License-Identifier: BSD-3-Clause
// The functions of the data path, in the headers so that the edge has each without a call of its own, whatever the
// compiler thinks of their size: then the handle is looked at once. Included by face/calls.h.
#pragma once

#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/srq.h"
#include "face/event.h"
#include "face/objects.h"

namespace anydat::face {

[[gnu::always_inline]] inline dapl::Error ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                                                       DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                                                       DAT_COMPLETION_FLAGS flags) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_post_send", handle_ep);
  return ep->posts().post_send(num_segments, segments_of(iov), cookie.as_64, flags);
}

[[gnu::always_inline]] inline dapl::Error ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                                                       DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                                                       DAT_COMPLETION_FLAGS flags) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_post_recv", handle_ep);
  return ep->posts().post_recv(num_segments, segments_of(iov), cookie.as_64, flags);
}

[[gnu::always_inline]] inline dapl::Error ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                                                            DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                                                            const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_post_rdma_read", handle_ep);
  return ep->posts().post_rdma_read(num_segments, segments_of(iov), cookie.as_64, segments_of(remote), flags);
}

[[gnu::always_inline]] inline dapl::Error ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                                                             DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                                                             const DAT_RMR_TRIPLET* remote,
                                                             DAT_COMPLETION_FLAGS flags) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_post_rdma_write", handle_ep);
  return ep->posts().post_rdma_write(num_segments, segments_of(iov), cookie.as_64, segments_of(remote), flags);
}

[[gnu::always_inline]] inline dapl::Error srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
                                                        DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie) {
  ANYDAT_OBJECT(Srq, srq, srq_handle, "dat_srq_post_recv", handle_srq);
  return srq->post_recv(num_segments, segments_of(iov), cookie.as_64);
}

[[gnu::always_inline]] inline dapl::Error evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT* event) {
  ANYDAT_OBJECT(Evd, evd, evd_handle, "dat_evd_dequeue", none);
  if (!event) [[unlikely]]
    return dapl::fail(at(2), "dat_evd_dequeue: event is NULL");
  return evd->dequeue([=](const dapl::Event& taken) { fill_event(taken, evd_handle, *event); });
}

}  // namespace anydat::face
