// SPDX-License-Identifier: BSD-3-Clause
// The provider's calls on service points and connection requests.
#include "dapl/cr.h"
#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/service_point.h"
#include "face/calls.h"
#include "face/convert.h"
#include "face/objects.h"

namespace anydat::face {

dapl::Error psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
                       DAT_PSP_HANDLE* psp) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_psp_create", handle_ia);
  ANYDAT_OBJECT_OF(ia, Evd, evd, evd_handle, "dat_psp_create", handle_evd_cr);
  return dapl::Psp::create(*ia, qual, nullptr, *evd, static_cast<dapl::PspFlags>(flags), psp);
}

dapl::Error psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL* qual, DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
                           DAT_PSP_HANDLE* psp) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_psp_create_any", handle_ia);
  if (!qual) return dapl::fail(at(2), "dat_psp_create_any: conn_qual is NULL");
  ANYDAT_OBJECT_OF(ia, Evd, evd, evd_handle, "dat_psp_create_any", handle_evd_cr);
  return dapl::Psp::create(*ia, 0, qual, *evd, static_cast<dapl::PspFlags>(flags), psp);
}

dapl::Error psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM* param) {
  ANYDAT_OBJECT(Psp, psp, psp_handle, "dat_psp_query", handle_psp);
  return answer("dat_psp_query", psp->ia(), mask, DAT_PSP_FIELD_ALL, param, [&] { return psp->query(); });
}

dapl::Error psp_free(DAT_PSP_HANDLE psp_handle) {
  ANYDAT_OBJECT(Psp, psp, psp_handle, "dat_psp_free", handle_psp);
  ANYDAT_HOLD(psp, psp_handle, "dat_psp_free", handle_psp);
  return psp->free();
}

dapl::Error rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
                       DAT_RSP_HANDLE* rsp) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_rsp_create", handle_ia);
  ANYDAT_OPTIONAL_OF(ia, Ep, ep, ep_handle, "dat_rsp_create", handle_ep);
  ANYDAT_OBJECT_OF(ia, Evd, evd, evd_handle, "dat_rsp_create", handle_evd_cr);
  return dapl::Rsp::create(*ia, qual, ep, *evd, rsp);
}

dapl::Error rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM* param) {
  ANYDAT_OBJECT(Rsp, rsp, rsp_handle, "dat_rsp_query", handle_rsp);
  ANYDAT_HOLD(rsp, rsp_handle, "dat_rsp_query", handle_rsp);
  return answer("dat_rsp_query", rsp->ia(), mask, DAT_RSP_FIELD_ALL, param, [&] { return rsp->query(); });
}

dapl::Error rsp_free(DAT_RSP_HANDLE rsp_handle) {
  ANYDAT_OBJECT(Rsp, rsp, rsp_handle, "dat_rsp_free", handle_rsp);
  ANYDAT_HOLD(rsp, rsp_handle, "dat_rsp_free", handle_rsp);
  return rsp->free();
}

dapl::Error cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM* param) {
  ANYDAT_OBJECT(Cr, cr, cr_handle, "dat_cr_query", handle_cr);
  ANYDAT_HOLD(cr, cr_handle, "dat_cr_query", handle_cr);
  return answer("dat_cr_query", cr->ia(), mask, DAT_CR_FIELD_ALL, param, [&] { return cr->query(); });
}

dapl::Error cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle, DAT_COUNT private_data_size,
                      const DAT_PVOID private_data) {
  ANYDAT_OBJECT(Cr, cr, cr_handle, "dat_cr_accept", handle_cr);
  ANYDAT_HOLD(cr, cr_handle, "dat_cr_accept", handle_cr);
  return cr->accept(ep_handle, private_data_size, private_data);
}

dapl::Error cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL qual) {
  ANYDAT_OBJECT(Cr, cr, cr_handle, "dat_cr_handoff", handle_cr);
  ANYDAT_HOLD(cr, cr_handle, "dat_cr_handoff", handle_cr);
  return cr->handoff(qual);
}

}  // namespace anydat::face
