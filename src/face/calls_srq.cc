// SPDX-License-Identifier: BSD-3-Clause
// The provider's calls on shared receive queues.
#include "dapl/instances.h"
#include "dapl/pz.h"
#include "dapl/srq.h"
#include "face/calls.h"
#include "face/convert.h"
#include "face/objects.h"

namespace anydat::face {

dapl::Error srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR* attr, DAT_SRQ_HANDLE* srq) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_srq_create", handle_ia);
  ANYDAT_OBJECT_OF(ia, Pz, pz, pz_handle, "dat_srq_create", handle_pz);
  if (!attr || !is_aligned(attr)) return dapl::fail(at(3), "dat_srq_create: srq_attr is NULL or not aligned");
  return dapl::Srq::create(*ia, *pz, {attr->max_recv_dtos, attr->max_recv_iov, attr->low_watermark}, srq);
}

dapl::Error srq_free(DAT_SRQ_HANDLE srq_handle) {
  ANYDAT_OBJECT(Srq, srq, srq_handle, "dat_srq_free", handle_srq);
  os::Guard instances(dapl::Instances::get());
  ANYDAT_HOLD(srq, srq_handle, "dat_srq_free", handle_srq);
  return srq->free();
}

dapl::Error srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM* param) {
  ANYDAT_OBJECT(Srq, srq, srq_handle, "dat_srq_query", handle_srq);
  return answer("dat_srq_query", srq->ia(), mask, DAT_SRQ_FIELD_ALL, param, [&] { return srq->query(); });
}

dapl::Error srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT max_recv_dtos) {
  ANYDAT_OBJECT(Srq, srq, srq_handle, "dat_srq_resize", handle_srq);
  return srq->resize(max_recv_dtos);
}

dapl::Error srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark) {
  ANYDAT_OBJECT(Srq, srq, srq_handle, "dat_srq_set_lw", handle_srq);
  return srq->set_low_watermark(low_watermark);
}

}  // namespace anydat::face
