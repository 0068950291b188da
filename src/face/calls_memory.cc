// SPDX-License-Identifier: BSD-3-Clause
// The provider's calls on protection zones, memory regions and windows.
#include "dapl/ep.h"
#include "dapl/lmr.h"
#include "dapl/pz.h"
#include "dapl/rmr.h"
#include "face/calls.h"
#include "face/convert.h"
#include "face/objects.h"

namespace anydat::face {

dapl::Error pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE* pz) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_pz_create", handle_ia);
  return dapl::Pz::create(*ia, pz);
}

dapl::Error pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* param) {
  ANYDAT_OBJECT(Pz, pz, pz_handle, "dat_pz_query", handle_pz);
  if (const dapl::Error error =
          check_query("dat_pz_query", mask, DAT_PZ_FIELD_ALL, param, pz->ia().habits().unknown_mask_bits))
    return error;
  param->ia_handle = pz->ia().handle();
  return dapl::kSuccess;
}

dapl::Error pz_free(DAT_PZ_HANDLE pz_handle) {
  ANYDAT_OBJECT(Pz, pz, pz_handle, "dat_pz_free", handle_pz);
  ANYDAT_HOLD(pz, pz_handle, "dat_pz_free", handle_pz);
  return pz->free();
}

dapl::Error lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM* param) {
  ANYDAT_OBJECT(Lmr, lmr, lmr_handle, "dat_lmr_query", handle_lmr);
  return answer("dat_lmr_query", lmr->ia(), mask, DAT_LMR_FIELD_ALL, param, [&] { return lmr->query(); });
}

dapl::Error lmr_free(DAT_LMR_HANDLE lmr_handle) {
  return free_when_quiet<dapl::Lmr>(lmr_handle, "dat_lmr_free", "lmr_handle", dapl::Detail::handle_lmr);
}

namespace {

dapl::Error sync(const dapl::Ia& ia, const char* call, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
  if (count > 0 && !segments) {
    return dapl::fail(at(2), "{}: num_segments is {}, but local_segments is NULL", call,
                      static_cast<std::uint64_t>(count));
  }
  for (DAT_VLEN i = 0; i < count; ++i) {
    if (const dapl::Error error = dapl::Lmr::sync(ia, call, i, from_triplet(segments[i]))) return error;
  }
  return dapl::kSuccess;
}

}  // namespace

dapl::Error lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* segments, DAT_VLEN num_segments) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_lmr_sync_rdma_read", handle_ia);
  return sync(*ia, "dat_lmr_sync_rdma_read", segments, num_segments);
}

dapl::Error lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* segments, DAT_VLEN num_segments) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_lmr_sync_rdma_write", handle_ia);
  return sync(*ia, "dat_lmr_sync_rdma_write", segments, num_segments);
}

dapl::Error rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE* rmr) {
  const char* call = "dat_rmr_create";
  ANYDAT_OBJECT(Pz, pz, pz_handle, call, handle_pz);
  ANYDAT_HOLD(pz, pz_handle, call, handle_pz);
  return dapl::Rmr::create(call, *pz, nic::WindowScope::zone, rmr);
}

dapl::Error rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM* param) {
  ANYDAT_OBJECT(Rmr, rmr, rmr_handle, "dat_rmr_query", handle_rmr);
  ANYDAT_HOLD(rmr, rmr_handle, "dat_rmr_query", handle_rmr);
  return answer("dat_rmr_query", rmr->ia(), mask, DAT_RMR_FIELD_ALL, param, [&] { return rmr->query(); });
}

dapl::Error rmr_free(DAT_RMR_HANDLE rmr_handle) {
  return free_when_quiet<dapl::Rmr>(rmr_handle, "dat_rmr_free", "rmr_handle", dapl::Detail::handle_rmr);
}

}  // namespace anydat::face
