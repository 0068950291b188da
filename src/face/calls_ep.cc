// SPDX-License-Identifier: BSD-3-Clause
// The provider's calls on endpoints.
#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/instances.h"
#include "dapl/pz.h"
#include "dapl/srq.h"
#include "face/calls.h"
#include "face/convert.h"
#include "face/objects.h"

namespace anydat::face {

namespace {

dapl::Error create_ep(const char* call, dapl::Ia& ia, const dapl::EpParts& parts, dapl::Srq* srq,
                      const DAT_EP_ATTR* attr, DAT_EP_HANDLE* ep) {
  if (!is_aligned(attr)) {
    return dapl::fail(dapl::Argument::ep_attributes, "{}: ep_attributes is not aligned", call);
  }
  dapl::EpAttributes attributes;
  if (attr) {
    if (const dapl::Error error = check_service(call, attr->service_type)) return error;
    attributes = from_dat(*attr);
  }
  return dapl::Ep::create(ia, parts, srq, attr ? &attributes : nullptr, ep);
}

}  // namespace

dapl::Error ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_evd_handle,
                      DAT_EVD_HANDLE request_evd_handle, DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR* attr,
                      DAT_EP_HANDLE* ep) {
  const char* call = "dat_ep_create";
  ANYDAT_OBJECT(Ia, ia, ia_handle, call, handle_ia);
  ANYDAT_OPTIONAL_OF(ia, Pz, pz, pz_handle, call, handle_pz);
  const dapl::EvdsOfCall evds(*ia, {recv_evd_handle, request_evd_handle, connect_evd_handle});
  ANYDAT_OPTIONAL_EVD(evds, recv, recv_evd_handle, call, handle_evd_recv);
  ANYDAT_OPTIONAL_EVD(evds, request, request_evd_handle, call, handle_evd_request);
  ANYDAT_OPTIONAL_EVD(evds, connect, connect_evd_handle, call, handle_evd_conn);
  return create_ep(call, *ia, {pz, recv, request, connect}, nullptr, attr, ep);
}

dapl::Error ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_evd_handle,
                               DAT_EVD_HANDLE request_evd_handle, DAT_EVD_HANDLE connect_evd_handle,
                               DAT_SRQ_HANDLE srq_handle, const DAT_EP_ATTR* attr, DAT_EP_HANDLE* ep) {
  const char* call = "dat_ep_create_with_srq";
  ANYDAT_OBJECT(Ia, ia, ia_handle, call, handle_ia);
  ANYDAT_OPTIONAL_OF(ia, Pz, pz, pz_handle, call, handle_pz);
  const dapl::EvdsOfCall evds(*ia, {recv_evd_handle, request_evd_handle, connect_evd_handle});
  ANYDAT_OPTIONAL_EVD(evds, recv, recv_evd_handle, call, handle_evd_recv);
  ANYDAT_OPTIONAL_EVD(evds, request, request_evd_handle, call, handle_evd_request);
  ANYDAT_OPTIONAL_EVD(evds, connect, connect_evd_handle, call, handle_evd_conn);
  ANYDAT_OBJECT_OF(ia, Srq, srq, srq_handle, call, handle_srq);
  return create_ep(call, *ia, {pz, recv, request, connect}, srq, attr, ep);
}

dapl::Error ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM* param) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_query", handle_ep);
  ANYDAT_HOLD(ep, ep_handle, "dat_ep_query", handle_ep);
  return answer("dat_ep_query", ep->ia(), mask, DAT_EP_FIELD_ALL, param, [&] { return ep->query(); });
}

dapl::Error ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM* param) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_modify", handle_ep);
  if (const dapl::Error error = check_query("dat_ep_modify", mask, DAT_EP_FIELD_ALL, param, {})) return error;
  const dapl::EpParameters to = from_dat(*param);
  const dapl::EvdsOfCall evds(ep->ia(), {to.recv_evd_handle, to.request_evd_handle, to.connect_evd_handle});
  ANYDAT_HOLD(ep, ep_handle, "dat_ep_modify", handle_ep);
  return ep->configuration().modify(fields_of(mask), to, evds);
}

dapl::Error ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout,
                       DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos,
                       DAT_CONNECT_FLAGS flags) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_connect", handle_ep);
  if (const dapl::Error error = check_connect_flags(flags)) return error;
  ANYDAT_HOLD(ep, ep_handle, "dat_ep_connect", handle_ep);
  return ep->connection().connect(remote, qual, timeout, private_data_size, private_data, qos, flags);
}

dapl::Error ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle, DAT_TIMEOUT timeout,
                           DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos) {
  const char* call = "dat_ep_dup_connect";
  ANYDAT_OBJECT(Ep, ep, ep_handle, call, handle_ep);
  ANYDAT_OBJECT_OF(&ep->ia(), Ep, dup, ep_dup_handle, call, handle_ep);
  ANYDAT_HOLD(ep, ep_handle, call, handle_ep);
  return ep->connection().dup_connect(*dup, timeout, private_data_size, private_data, qos);
}

dapl::Error ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS flags) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_disconnect", handle_ep);
  ANYDAT_HOLD(ep, ep_handle, "dat_ep_disconnect", handle_ep);
  return ep->connection().disconnect(static_cast<dapl::CloseFlags>(flags));
}

dapl::Error ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE* state, DAT_BOOLEAN* recv_idle,
                          DAT_BOOLEAN* request_idle) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_get_status", handle_ep);
  if (state) *state = static_cast<DAT_EP_STATE>(ep->state());
  if (recv_idle) *recv_idle = to_dat(ep->receives_idle());
  if (request_idle) *request_idle = to_dat(ep->requests_idle());
  return dapl::kSuccess;
}

dapl::Error ep_free(DAT_EP_HANDLE ep_handle) {
  return free_when_quiet<dapl::Ep>(ep_handle, "dat_ep_free", "ep_handle", dapl::Detail::handle_ep);
}

dapl::Error ep_reset(DAT_EP_HANDLE ep_handle) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_reset", handle_ep);
  ANYDAT_HOLD(ep, ep_handle, "dat_ep_reset", handle_ep);
  return ep->connection().reset();
}

dapl::Error ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT* allocated, DAT_COUNT* span) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_recv_query", handle_ep);
  const dapl::Ep::ReceiveCounts counts = ep->recv_query();
  if (allocated) *allocated = counts.allocated;
  if (span) *span = counts.span;
  return dapl::kSuccess;
}

dapl::Error ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft, DAT_COUNT hard) {
  ANYDAT_OBJECT(Ep, ep, ep_handle, "dat_ep_set_watermark", handle_ep);
  ANYDAT_HOLD(ep, ep_handle, "dat_ep_set_watermark", handle_ep);
  return ep->configuration().set_watermark(soft, hard);
}

}  // namespace anydat::face
