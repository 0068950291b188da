// SPDX-License-Identifier: BSD-3-Clause
// The provider's calls on endpoints.
#include "api/handles.h"
#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/pz.h"
#include "dapl/srq.h"

namespace anydat::api {

using dapl::Ep;
using dapl::Evd;
using dapl::Ia;
using dapl::Pz;
using dapl::Srq;

DAT_RETURN ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_evd_handle,
                     DAT_EVD_HANDLE request_evd_handle, DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR* attr,
                     DAT_EP_HANDLE* ep) {
  const char* call = "dat_ep_create";
  ANYDAT_OBJECT(Ia, ia, ia_handle, call, DAT_INVALID_HANDLE_IA);
  ANYDAT_OPTIONAL_OF(ia, Pz, pz, pz_handle, call, DAT_INVALID_HANDLE_PZ);
  ANYDAT_OPTIONAL_OF(ia, Evd, recv, recv_evd_handle, call, DAT_INVALID_HANDLE_EVD_RECV);
  ANYDAT_OPTIONAL_OF(ia, Evd, request, request_evd_handle, call, DAT_INVALID_HANDLE_EVD_REQUEST);
  ANYDAT_OPTIONAL_OF(ia, Evd, connect, connect_evd_handle, call, DAT_INVALID_HANDLE_EVD_CONN);
  return Ep::create(*ia, {pz, recv, request, connect}, nullptr, attr, ep);
}

DAT_RETURN ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_evd_handle,
                              DAT_EVD_HANDLE request_evd_handle, DAT_EVD_HANDLE connect_evd_handle,
                              DAT_SRQ_HANDLE srq_handle, const DAT_EP_ATTR* attr, DAT_EP_HANDLE* ep) {
  const char* call = "dat_ep_create_with_srq";
  ANYDAT_OBJECT(Ia, ia, ia_handle, call, DAT_INVALID_HANDLE_IA);
  ANYDAT_OPTIONAL_OF(ia, Pz, pz, pz_handle, call, DAT_INVALID_HANDLE_PZ);
  ANYDAT_OPTIONAL_OF(ia, Evd, recv, recv_evd_handle, call, DAT_INVALID_HANDLE_EVD_RECV);
  ANYDAT_OPTIONAL_OF(ia, Evd, request, request_evd_handle, call, DAT_INVALID_HANDLE_EVD_REQUEST);
  ANYDAT_OPTIONAL_OF(ia, Evd, connect, connect_evd_handle, call, DAT_INVALID_HANDLE_EVD_CONN);
  ANYDAT_OBJECT_OF(ia, Srq, srq, srq_handle, call, DAT_INVALID_HANDLE_SRQ);
  return Ep::create(*ia, {pz, recv, request, connect}, srq, attr, ep);
}

DAT_RETURN ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM* param) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_query", DAT_INVALID_HANDLE_EP);
  base::Guard guard(ep->ia().engine());
  return ep->query(mask, param);
}

DAT_RETURN ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM* param) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_modify", DAT_INVALID_HANDLE_EP);
  base::Guard guard(ep->ia().engine());
  return ep->modify(mask, param);
}

DAT_RETURN ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout,
                      DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos, DAT_CONNECT_FLAGS flags) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_connect", DAT_INVALID_HANDLE_EP);
  base::Guard guard(ep->ia().engine());
  return ep->connect(remote, qual, timeout, private_data_size, private_data, qos, flags);
}

DAT_RETURN ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle, DAT_TIMEOUT timeout,
                          DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos) {
  const char* call = "dat_ep_dup_connect";
  ANYDAT_OBJECT(Ep, ep, ep_handle, call, DAT_INVALID_HANDLE_EP);
  ANYDAT_OBJECT_OF(&ep->ia(), Ep, dup, ep_dup_handle, call, DAT_INVALID_HANDLE_EP);
  base::Guard guard(ep->ia().engine());
  return ep->dup_connect(*dup, timeout, private_data_size, private_data, qos);
}

DAT_RETURN ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS flags) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_disconnect", DAT_INVALID_HANDLE_EP);
  base::Guard guard(ep->ia().engine());
  return ep->disconnect(flags);
}

DAT_RETURN ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                        DAT_COMPLETION_FLAGS flags) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_post_send", DAT_INVALID_HANDLE_EP);
  return ep->post_send(num_segments, iov, cookie, flags);
}

DAT_RETURN ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                        DAT_COMPLETION_FLAGS flags) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_post_recv", DAT_INVALID_HANDLE_EP);
  return ep->post_recv(num_segments, iov, cookie, flags);
}

DAT_RETURN ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET* iov,
                             DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_post_rdma_read", DAT_INVALID_HANDLE_EP);
  return ep->post_rdma_read(num_segments, iov, cookie, remote, flags);
}

DAT_RETURN ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET* iov,
                              DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_post_rdma_write", DAT_INVALID_HANDLE_EP);
  return ep->post_rdma_write(num_segments, iov, cookie, remote, flags);
}

DAT_RETURN ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE* state, DAT_BOOLEAN* recv_idle,
                         DAT_BOOLEAN* request_idle) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_get_status", DAT_INVALID_HANDLE_EP);
  return ep->get_status(state, recv_idle, request_idle);
}

DAT_RETURN ep_free(DAT_EP_HANDLE ep_handle) {
  return free_when_quiet<Ep>(ep_handle, "dat_ep_free", "ep_handle", DAT_INVALID_HANDLE_EP);
}

DAT_RETURN ep_reset(DAT_EP_HANDLE ep_handle) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_reset", DAT_INVALID_HANDLE_EP);
  base::Guard guard(ep->ia().engine());
  return ep->reset();
}

DAT_RETURN ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT* allocated, DAT_COUNT* span) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_recv_query", DAT_INVALID_HANDLE_EP);
  return ep->recv_query(allocated, span);
}

DAT_RETURN ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft, DAT_COUNT hard) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_set_watermark", DAT_INVALID_HANDLE_EP);
  base::Guard guard(ep->ia().engine());
  return ep->set_watermark(soft, hard);
}

}  // namespace anydat::api
