// SPDX-License-Identifier: BSD-3-Clause
// The Provider's calls that version 2.0 has added, and those whose parameters it has changed.

#include "face/calls.h"
#include "dapl/cno.h"
#include "dapl/cr.h"
#include "dapl/ep_extended_posts.h"
#include "dapl/evd.h"
#include "dapl/ia.h"
#include "dapl/lmr.h"
#include "dapl/pz.h"
#include "dapl/rmr.h"
#include "face/convert.h"
#include "face/objects.h"

namespace anydat::face {

namespace {

// A feature that the interface lets a Provider lack. `what` is the subject of the sentence.
dapl::Error not_supported(const char* call, const char* what) {
  return dapl::fail(dapl::Code::model_not_supported, dapl::Detail::none, "{}: {} not supported by this adapter", call,
                    what);
}

// D2-LMR-2, D2-RMR-7. `place`: of the argument.
dapl::Error check_va_type(const char* call, const dapl::Ia& ia, DAT_VA_TYPE type, unsigned place) {
  if (type == DAT_VA_TYPE_VA || (type == DAT_VA_TYPE_ZB && ia.description().zero_based())) return dapl::kSuccess;
  if (type == DAT_VA_TYPE_ZB) return not_supported(call, "zero-based addresses (DAT_VA_TYPE_ZB) are");
  return dapl::fail(at(place), "{}: va_type {} is neither VA nor ZB", call, static_cast<unsigned>(type));
}

// What the interface of version 1.2 accepts without effect, and this one does not know.
dapl::Error check_privileges(const char* call, const dapl::Ia& ia, DAT_MEM_PRIV_FLAGS rights, unsigned place) {
  const auto bits = static_cast<unsigned>(rights);
  const unsigned all = ia.description().privileges();
  if ((bits & ~all) == 0) return dapl::kSuccess;
  return dapl::fail(at(place), "{}: privileges {:#x} have bits outside {:#x}", call, bits, all);
}

}  // namespace

dapl::Error cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT size, const DAT_PVOID data) {
  const char* call = "dat_cr_reject";
  ANYDAT_OBJECT(Cr, cr, cr_handle, call, handle_cr);
  ANYDAT_HOLD(cr, cr_handle, call, handle_cr);
  return cr->reject(size, data);
}

dapl::Error lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION description, DAT_VLEN length,
                       DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS rights, DAT_VA_TYPE va_type, DAT_LMR_HANDLE* lmr,
                       DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_size,
                       DAT_VADDR* registered_address) {
  const char* call = "dat_lmr_create";
  ANYDAT_OBJECT(Ia, ia, ia_handle, call, handle_ia);
  ANYDAT_OBJECT_OF(ia, Pz, pz, pz_handle, call, handle_pz);
  if (static_cast<unsigned>(type) > DAT_MEM_TYPE_SHARED_VIRTUAL) {
    return dapl::fail(at(2), "{}: mem_type {} is unknown", call, static_cast<unsigned>(type));
  }
  if (const dapl::Error error = check_privileges(call, *ia, rights, 6)) return error;
  if (const dapl::Error error = check_va_type(call, *ia, va_type, 7)) return error;
  const auto memory = static_cast<dapl::MemoryType>(type);
  return dapl::Lmr::create(*ia, *pz, {memory, from_dat(memory, description), length, rights, va_type == DAT_VA_TYPE_ZB},
                           {lmr, lmr_context, rmr_context, registered_size, registered_address});
}

dapl::Error rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle, const DAT_LMR_TRIPLET* triplet,
                     DAT_MEM_PRIV_FLAGS rights, DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
                     DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* context) {
  const char* call = "dat_rmr_bind";
  ANYDAT_OBJECT(Rmr, rmr, rmr_handle, call, handle_rmr);
  ANYDAT_OBJECT_OF(&rmr->ia(), Ep, ep, ep_handle, call, handle_ep);
  if (triplet && triplet->segment_length > 0) {  // else it is an unbind
    ANYDAT_OBJECT_OF(&rmr->ia(), Lmr, lmr, lmr_handle, call, handle_lmr);
    if (lmr->query().lmr_context != triplet->lmr_context) {  // D2-RMR-5
      return dapl::fail(at(3), "{}: the triplet's lmr_context {:#x} is not that of lmr_handle", call,
                        triplet->lmr_context);
    }
    if (const dapl::Error error = check_va_type(call, rmr->ia(), va_type, 5)) return error;
  }
  if (const dapl::Error error = check_privileges(call, rmr->ia(), rights, 4)) return error;
  ep->posts()
      .takes_requests();  // a peer's word that is there already counts; not to be looked for with the engine held
  dapl::Segment segment{};
  if (triplet) segment = from_triplet(*triplet);
  return rmr->bind({triplet ? &segment : nullptr, rights, va_type == DAT_VA_TYPE_ZB}, *ep, cookie.as_64, flags,
                   context);
}

// ---- what the version has added

dapl::Error rmr_create_for_ep(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE* rmr) {
  const char* call = "dat_rmr_create_for_ep";
  ANYDAT_OBJECT(Pz, pz, pz_handle, call, handle_pz);
  ANYDAT_HOLD(pz, pz_handle, call, handle_pz);
  return dapl::Rmr::create(call, *pz, nic::WindowScope::queue_pair, rmr);
}

dapl::Error ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET* iov,
                                         DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
                                         DAT_RMR_CONTEXT context) {
  const char* call = "dat_ep_post_send_with_invalidate";
  if (invalidate == DAT_FALSE) return ep_post_send(ep_handle, num_segments, iov, cookie, flags);  // D2-SENDINV-1
  ANYDAT_OBJECT(Ep, ep, ep_handle, call, handle_ep);
  if (context == 0) return dapl::fail(at(7), "{}: rmr_context is 0", call);
  return dapl::EpExtendedPosts(*ep).post_send_invalidate(num_segments, segments_of(iov), cookie.as_64, flags, context);
}

dapl::Error ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle, const DAT_RMR_TRIPLET* local, DAT_DTO_COOKIE cookie,
                                     const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  const char* call = "dat_ep_post_rdma_read_to_rmr";
  ANYDAT_OBJECT(Ep, ep, ep_handle, call, handle_ep);
  return dapl::EpExtendedPosts(*ep).post_rdma_read_to_rmr(segments_of(local), cookie.as_64, segments_of(remote), flags);
}

dapl::Error cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD* fd, DAT_CNO_HANDLE* cno) {
  const char* call = "dat_cno_fd_create";
  ANYDAT_OBJECT(Ia, ia, ia_handle, call, handle_ia);
  if (!fd) return dapl::fail(at(2), "{}: fd is NULL", call);
  if (!cno) return dapl::fail(at(3), "{}: cno_handle is NULL", call);
  return dapl::Cno::create_with_descriptor(*ia, *fd, cno);
}

dapl::Error cno_trigger(DAT_CNO_HANDLE cno_handle, DAT_EVD_HANDLE* evd) {
  ANYDAT_OBJECT(Cno, cno, cno_handle, "dat_cno_trigger", handle_cno);
  if (!evd) return dapl::fail(at(2), "dat_cno_trigger: evd_handle is NULL");
  *evd = cno->take_trigger();
  return dapl::kSuccess;
}

// D2-HA-5.
dapl::Error ia_ha_related(DAT_IA_HANDLE ia_handle, const DAT_NAME_PTR other, DAT_BOOLEAN* related) {
  const char* call = "ia_ha_related";
  ANYDAT_OBJECT(Ia, ia, ia_handle, call, handle_ia);
  if (!other) return dapl::fail(at(2), "{}: the other adapter's name is NULL", call);
  if (!related) return dapl::fail(at(3), "{}: related is NULL", call);
  *related = DAT_FALSE;
  return dapl::kSuccess;
}

}  // namespace anydat::face
