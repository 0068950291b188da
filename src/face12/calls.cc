// SPDX-License-Identifier: BSD-3-Clause
// The Provider's calls whose parameters version 2.0 has changed, as version 1.2 has them.
#include "face/calls.h"

#include "dapl/cr.h"
#include "dapl/ep.h"
#include "dapl/lmr.h"
#include "dapl/pz.h"
#include "dapl/rmr.h"
#include "face/convert.h"
#include "face/objects.h"

namespace anydat::face {

dapl::Error cr_reject(DAT_CR_HANDLE cr_handle) {
  ANYDAT_OBJECT(Cr, cr, cr_handle, "dat_cr_reject", handle_cr);
  ANYDAT_HOLD(cr, cr_handle, "dat_cr_reject", handle_cr);
  return cr->reject(0, nullptr);
}

dapl::Error lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION description, DAT_VLEN length,
                       DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS rights, DAT_LMR_HANDLE* lmr,
                       DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_size,
                       DAT_VADDR* registered_address) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_lmr_create", handle_ia);
  ANYDAT_OBJECT_OF(ia, Pz, pz, pz_handle, "dat_lmr_create", handle_pz);
  const auto memory = static_cast<dapl::MemoryType>(type);
  return dapl::Lmr::create(*ia, *pz, {memory, from_dat(memory, description), length, rights},
                           {lmr, lmr_context, rmr_context, registered_size, registered_address});
}

dapl::Error rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET* triplet, DAT_MEM_PRIV_FLAGS rights,
                     DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
                     DAT_RMR_CONTEXT* context) {
  ANYDAT_OBJECT(Rmr, rmr, rmr_handle, "dat_rmr_bind", handle_rmr);
  ANYDAT_OBJECT_OF(&rmr->ia(), Ep, ep, ep_handle, "dat_rmr_bind", handle_ep);
  ep->posts()
      .takes_requests();  // a peer's word that is there already counts; not to be looked for with the engine held
  return rmr->bind({segments_of(triplet), rights, false}, *ep, cookie.as_64, flags, context);
}

}  // namespace anydat::face
