// SPDX-License-Identifier: BSD-3-Clause
// The provider's calls on shared receive queues.
#include "api/handles.h"
#include "dapl/pz.h"
#include "dapl/srq.h"

namespace anydat::api {

using dapl::Ia;
using dapl::Pz;
using dapl::Srq;

DAT_RETURN srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR* attr, DAT_SRQ_HANDLE* srq) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_srq_create", DAT_INVALID_HANDLE_IA);
  ANYDAT_OBJECT_OF(ia, Pz, pz, pz_handle, "dat_srq_create", DAT_INVALID_HANDLE_PZ);
  return Srq::create(*ia, *pz, attr, srq);
}

DAT_RETURN srq_free(DAT_SRQ_HANDLE srq_handle) {
  ANYDAT_OBJECT(Srq, srq, srq_handle, "dat_srq_free", DAT_INVALID_HANDLE_SRQ);
  base::Guard guard(srq->ia().engine());
  return srq->free();
}

DAT_RETURN srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET* iov,
                         DAT_DTO_COOKIE cookie) {
  ANYDAT_OBJECT(Srq, srq, srq_handle, "dat_srq_post_recv", DAT_INVALID_HANDLE_SRQ);
  return srq->post_recv(num_segments, iov, cookie);
}

DAT_RETURN srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM* param) {
  ANYDAT_OBJECT(Srq, srq, srq_handle, "dat_srq_query", DAT_INVALID_HANDLE_SRQ);
  return srq->query(mask, param);
}

DAT_RETURN srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT max_recv_dtos) {
  ANYDAT_OBJECT(Srq, srq, srq_handle, "dat_srq_resize", DAT_INVALID_HANDLE_SRQ);
  return srq->resize(max_recv_dtos);
}

DAT_RETURN srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark) {
  ANYDAT_OBJECT(Srq, srq, srq_handle, "dat_srq_set_lw", DAT_INVALID_HANDLE_SRQ);
  return srq->set_low_watermark(low_watermark);
}

}  // namespace anydat::api
