// SPDX-License-Identifier: BSD-3-Clause
#include "api/provider.h"

namespace anydat::api {

const DAT_PROVIDER& provider_table() {
  // In the order of the ABI (REG-TBL-1); the ABI test compares it with the table of the standard.
  static char device_name[] = "soft";
  static const DAT_PROVIDER table = {
      device_name,
      nullptr,
      ia_open,
      ia_query,
      ia_close,
      set_consumer_context,
      get_consumer_context,
      get_handle_type,
      cno_create,
      cno_modify_agent,
      cno_query,
      cno_free,
      cno_wait,
      cr_query,
      cr_accept,
      cr_reject,
      cr_handoff,
      evd_create,
      evd_query,
      evd_modify_cno,
      evd_enable,
      evd_disable,
      evd_wait,
      evd_resize,
      evd_post_se,
      evd_dequeue,
      evd_free,
      ep_create,
      ep_query,
      ep_modify,
      ep_connect,
      ep_dup_connect,
      ep_disconnect,
      ep_post_send,
      ep_post_recv,
      ep_post_rdma_read,
      ep_post_rdma_write,
      ep_get_status,
      ep_free,
      lmr_create,
      lmr_query,
      lmr_free,
      rmr_create,
      rmr_query,
      rmr_bind,
      rmr_free,
      psp_create,
      psp_query,
      psp_free,
      rsp_create,
      rsp_query,
      rsp_free,
      pz_create,
      pz_query,
      pz_free,
      psp_create_any,
      ep_reset,
      evd_set_unwaitable,
      evd_clear_unwaitable,
      lmr_sync_rdma_read,
      lmr_sync_rdma_write,
      ep_create_with_srq,
      ep_recv_query,
      ep_set_watermark,
      srq_create,
      srq_free,
      srq_post_recv,
      srq_query,
      srq_resize,
      srq_set_lw,
  };
  return table;
}

DAT_RETURN bad_handle(const char* call, const char* argument, DAT_HANDLE handle, DAT_RETURN subtype) {
  return dapl::fail(DAT_INVALID_HANDLE, subtype, "{}: {} {} is no live handle of the kind that is needed here", call,
                    argument, handle);
}

}  // namespace anydat::api
