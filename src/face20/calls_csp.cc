// SPDX-License-Identifier: BSD-3-Clause
// The Provider's calls on common service points (docs/spec/3-udapl2.md, chapter 9).
#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/service_point.h"
#include "face/calls.h"
#include "face/convert.h"
#include "face/objects.h"

namespace anydat::face {

namespace {

// The structure shows the service point's own copies.
void fill(const dapl::CspParameters& from, DAT_CSP_PARAM& to) {
  static_assert(sizeof(DAT_COMM) == sizeof(dapl::Comm));
  static_assert(offsetof(DAT_COMM, protocol) == offsetof(dapl::Comm, protocol));
  to.ia_handle = from.ia_handle;
  to.comm = reinterpret_cast<DAT_COMM*>(const_cast<dapl::Comm*>(from.comm));
  to.address_ptr = const_cast<DAT_IA_ADDRESS_PTR>(from.address);
  to.evd_handle = from.evd_handle;
}

}  // namespace

dapl::Error csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM* comm, DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd_handle,
                       DAT_CSP_HANDLE* csp) {
  const char* call = "dat_csp_create";
  ANYDAT_OBJECT(Ia, ia, ia_handle, call, handle_ia);
  ANYDAT_OBJECT_OF(ia, Evd, evd, evd_handle, call, handle_evd_cr);
  if (!comm) return dapl::fail(at(2), "{}: comm is NULL", call);
  if (!address) return dapl::fail(at(3), "{}: address is NULL", call);
  if (!csp) return dapl::fail(at(5), "{}: csp_handle is NULL", call);
  return dapl::Csp::create(*ia, {comm->domain, comm->type, comm->protocol}, address, *evd, csp);
}

dapl::Error csp_query(DAT_CSP_HANDLE csp_handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM* param) {
  const char* call = "dat_csp_query";
  ANYDAT_OBJECT(Csp, csp, csp_handle, call, handle_csp);
  if (const dapl::Error error = check_query(call, mask, DAT_CSP_FIELD_ALL, param, csp->ia().habits().unknown_mask_bits))
    return error;
  fill(csp->query(), *param);
  return dapl::kSuccess;
}

dapl::Error csp_free(DAT_CSP_HANDLE csp_handle) {
  ANYDAT_OBJECT(Csp, csp, csp_handle, "dat_csp_free", handle_csp);
  ANYDAT_HOLD(csp, csp_handle, "dat_csp_free", handle_csp);
  return csp->free();
}

dapl::Error ep_common_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote, DAT_TIMEOUT timeout,
                              DAT_COUNT private_data_size, const DAT_PVOID private_data) {
  const char* call = "dat_ep_common_connect";
  ANYDAT_OBJECT(Ep, ep, ep_handle, call, handle_ep);
  if (!remote) return dapl::fail(at(2), "{}: remote_address is NULL", call);
  ANYDAT_HOLD(ep, ep_handle, call, handle_ep);
  return ep->connection().common_connect(remote, timeout, private_data_size, private_data);
}

}  // namespace anydat::face
