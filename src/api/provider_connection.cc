// SPDX-License-Identifier: BSD-3-Clause
// The provider's calls on service points and connection requests.
#include "api/handles.h"
#include "dapl/cr.h"
#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/service_point.h"

namespace anydat::api {

using dapl::Cr;
using dapl::Ep;
using dapl::Evd;
using dapl::Ia;
using dapl::Psp;
using dapl::Rsp;

DAT_RETURN psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
                      DAT_PSP_HANDLE* psp) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_psp_create", DAT_INVALID_HANDLE_IA);
  ANYDAT_OBJECT_OF(ia, Evd, evd, evd_handle, "dat_psp_create", DAT_INVALID_HANDLE_EVD_CR);
  return Psp::create(*ia, qual, nullptr, *evd, flags, psp);
}

DAT_RETURN psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL* qual, DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags,
                          DAT_PSP_HANDLE* psp) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_psp_create_any", DAT_INVALID_HANDLE_IA);
  if (!qual) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_psp_create_any: conn_qual is NULL");
  ANYDAT_OBJECT_OF(ia, Evd, evd, evd_handle, "dat_psp_create_any", DAT_INVALID_HANDLE_EVD_CR);
  return Psp::create(*ia, 0, qual, *evd, flags, psp);
}

DAT_RETURN psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM* param) {
  ANYDAT_OBJECT(Psp, psp, psp_handle, "dat_psp_query", DAT_INVALID_HANDLE_PSP);
  return psp->query(mask, param);
}

DAT_RETURN psp_free(DAT_PSP_HANDLE psp_handle) {
  ANYDAT_OBJECT(Psp, psp, psp_handle, "dat_psp_free", DAT_INVALID_HANDLE_PSP);
  base::Guard guard(psp->ia().engine());
  return psp->free();
}

DAT_RETURN rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
                      DAT_RSP_HANDLE* rsp) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_rsp_create", DAT_INVALID_HANDLE_IA);
  ANYDAT_OPTIONAL_OF(ia, Ep, ep, ep_handle, "dat_rsp_create", DAT_INVALID_HANDLE_EP);
  ANYDAT_OBJECT_OF(ia, Evd, evd, evd_handle, "dat_rsp_create", DAT_INVALID_HANDLE_EVD_CR);
  return Rsp::create(*ia, qual, ep, *evd, rsp);
}

DAT_RETURN rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM* param) {
  ANYDAT_OBJECT(Rsp, rsp, rsp_handle, "dat_rsp_query", DAT_INVALID_HANDLE_RSP);
  base::Guard guard(rsp->ia().engine());
  return rsp->query(mask, param);
}

DAT_RETURN rsp_free(DAT_RSP_HANDLE rsp_handle) {
  ANYDAT_OBJECT(Rsp, rsp, rsp_handle, "dat_rsp_free", DAT_INVALID_HANDLE_RSP);
  base::Guard guard(rsp->ia().engine());
  return rsp->free();
}

DAT_RETURN cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM* param) {
  ANYDAT_OBJECT(Cr, cr, cr_handle, "dat_cr_query", DAT_INVALID_HANDLE_CR);
  base::Guard guard(cr->ia().engine());
  return cr->query(mask, param);
}

DAT_RETURN cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle, DAT_COUNT private_data_size,
                     const DAT_PVOID private_data) {
  ANYDAT_OBJECT(Cr, cr, cr_handle, "dat_cr_accept", DAT_INVALID_HANDLE_CR);
  base::Guard guard(cr->ia().engine());
  return cr->accept(ep_handle, private_data_size, private_data);
}

DAT_RETURN cr_reject(DAT_CR_HANDLE cr_handle) {
  ANYDAT_OBJECT(Cr, cr, cr_handle, "dat_cr_reject", DAT_INVALID_HANDLE_CR);
  base::Guard guard(cr->ia().engine());
  return cr->reject();
}

DAT_RETURN cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL qual) {
  ANYDAT_OBJECT(Cr, cr, cr_handle, "dat_cr_handoff", DAT_INVALID_HANDLE_CR);
  base::Guard guard(cr->ia().engine());
  return cr->handoff(qual);
}

}  // namespace anydat::api
