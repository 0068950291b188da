// SPDX-License-Identifier: BSD-3-Clause
// The provider's calls on protection zones, memory regions and windows.
#include "api/handles.h"
#include "dapl/ep.h"
#include "dapl/lmr.h"
#include "dapl/pz.h"
#include "dapl/rmr.h"

namespace anydat::api {

using dapl::Ep;
using dapl::Ia;
using dapl::Lmr;
using dapl::Pz;
using dapl::Rmr;

DAT_RETURN pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE* pz) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_pz_create", DAT_INVALID_HANDLE_IA);
  return Pz::create(*ia, pz);
}

DAT_RETURN pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* param) {
  ANYDAT_OBJECT(Pz, pz, pz_handle, "dat_pz_query", DAT_INVALID_HANDLE_PZ);
  return pz->query(mask, param);
}

DAT_RETURN pz_free(DAT_PZ_HANDLE pz_handle) {
  ANYDAT_OBJECT(Pz, pz, pz_handle, "dat_pz_free", DAT_INVALID_HANDLE_PZ);
  base::Guard guard(pz->ia().engine());
  return pz->free();
}

DAT_RETURN lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION description, DAT_VLEN length,
                      DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS rights, DAT_LMR_HANDLE* lmr,
                      DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_size,
                      DAT_VADDR* registered_address) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_lmr_create", DAT_INVALID_HANDLE_IA);
  ANYDAT_OBJECT_OF(ia, Pz, pz, pz_handle, "dat_lmr_create", DAT_INVALID_HANDLE_PZ);
  return Lmr::create(*ia, *pz, {type, description, length, rights},
                     {lmr, lmr_context, rmr_context, registered_size, registered_address});
}

DAT_RETURN lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM* param) {
  ANYDAT_OBJECT(Lmr, lmr, lmr_handle, "dat_lmr_query", DAT_INVALID_HANDLE_LMR);
  return lmr->query(mask, param);
}

DAT_RETURN lmr_free(DAT_LMR_HANDLE lmr_handle) {
  return free_when_quiet<Lmr>(lmr_handle, "dat_lmr_free", "lmr_handle", DAT_INVALID_HANDLE_LMR);
}

DAT_RETURN lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* segments, DAT_VLEN num_segments) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_lmr_sync_rdma_read", DAT_INVALID_HANDLE_IA);
  return Lmr::sync(*ia, "dat_lmr_sync_rdma_read", segments, num_segments);
}

DAT_RETURN lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* segments, DAT_VLEN num_segments) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_lmr_sync_rdma_write", DAT_INVALID_HANDLE_IA);
  return Lmr::sync(*ia, "dat_lmr_sync_rdma_write", segments, num_segments);
}

DAT_RETURN rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE* rmr) {
  ANYDAT_OBJECT(Pz, pz, pz_handle, "dat_rmr_create", DAT_INVALID_HANDLE_PZ);
  base::Guard guard(pz->ia().engine());
  return Rmr::create(*pz, rmr);
}

DAT_RETURN rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM* param) {
  ANYDAT_OBJECT(Rmr, rmr, rmr_handle, "dat_rmr_query", DAT_INVALID_HANDLE_RMR);
  base::Guard guard(rmr->ia().engine());
  return rmr->query(mask, param);
}

DAT_RETURN rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET* triplet, DAT_MEM_PRIV_FLAGS rights,
                    DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
                    DAT_RMR_CONTEXT* context) {
  ANYDAT_OBJECT(Rmr, rmr, rmr_handle, "dat_rmr_bind", DAT_INVALID_HANDLE_RMR);
  ANYDAT_OBJECT_OF(&rmr->ia(), Ep, ep, ep_handle, "dat_rmr_bind", DAT_INVALID_HANDLE_EP);
  ep->takes_requests();  // a peer's word that is there already counts; not to be looked for with the engine held
  base::Guard guard(rmr->ia().engine());
  return rmr->bind(triplet, rights, *ep, cookie, flags, context);
}

DAT_RETURN rmr_free(DAT_RMR_HANDLE rmr_handle) {
  return free_when_quiet<Rmr>(rmr_handle, "dat_rmr_free", "rmr_handle", DAT_INVALID_HANDLE_RMR);
}

}  // namespace anydat::api
