// SPDX-License-Identifier: BSD-3-Clause
#include "api/provider.h"

#include <new>

#include "dapl/error.h"

namespace anydat::api {

namespace {

// Programs that were built with the old headers call through the table: no exception gets out of it.
template <auto function>
struct Guarded;
template <typename... Arguments, DAT_RETURN (*function)(Arguments...)>
struct Guarded<function> {
  static DAT_RETURN call(Arguments... arguments) {
    [[maybe_unused]] const Uncancelled<function> uncancelled;
    try {
      return function(arguments...);
    } catch (const std::bad_alloc&) {
      return dapl::error_code(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
    }
  }
};
template <auto function>
constexpr auto guarded = &Guarded<function>::call;

}  // namespace

DAT_PROVIDER make_provider_table(const char* device_name, DAT_IA_OPEN_FUNC open) {
  // In the order of the ABI (REG-TBL-1); the ABI test compares it with the table of the standard.
  return {
      device_name,
      nullptr,
      open,
      guarded<ia_query>,
      guarded<ia_close>,
      guarded<set_consumer_context>,
      guarded<get_consumer_context>,
      guarded<get_handle_type>,
      guarded<cno_create>,
      guarded<cno_modify_agent>,
      guarded<cno_query>,
      guarded<cno_free>,
      guarded<cno_wait>,
      guarded<cr_query>,
      guarded<cr_accept>,
      guarded<cr_reject>,
      guarded<cr_handoff>,
      guarded<evd_create>,
      guarded<evd_query>,
      guarded<evd_modify_cno>,
      guarded<evd_enable>,
      guarded<evd_disable>,
      guarded<evd_wait>,
      guarded<evd_resize>,
      guarded<evd_post_se>,
      guarded<evd_dequeue>,
      guarded<evd_free>,
      guarded<ep_create>,
      guarded<ep_query>,
      guarded<ep_modify>,
      guarded<ep_connect>,
      guarded<ep_dup_connect>,
      guarded<ep_disconnect>,
      guarded<ep_post_send>,
      guarded<ep_post_recv>,
      guarded<ep_post_rdma_read>,
      guarded<ep_post_rdma_write>,
      guarded<ep_get_status>,
      guarded<ep_free>,
      guarded<lmr_create>,
      guarded<lmr_query>,
      guarded<lmr_free>,
      guarded<rmr_create>,
      guarded<rmr_query>,
      guarded<rmr_bind>,
      guarded<rmr_free>,
      guarded<psp_create>,
      guarded<psp_query>,
      guarded<psp_free>,
      guarded<rsp_create>,
      guarded<rsp_query>,
      guarded<rsp_free>,
      guarded<pz_create>,
      guarded<pz_query>,
      guarded<pz_free>,
      guarded<psp_create_any>,
      guarded<ep_reset>,
      guarded<evd_set_unwaitable>,
      guarded<evd_clear_unwaitable>,
      guarded<lmr_sync_rdma_read>,
      guarded<lmr_sync_rdma_write>,
      guarded<ep_create_with_srq>,
      guarded<ep_recv_query>,
      guarded<ep_set_watermark>,
      guarded<srq_create>,
      guarded<srq_free>,
      guarded<srq_post_recv>,
      guarded<srq_query>,
      guarded<srq_resize>,
      guarded<srq_set_lw>,
  };
}

DAT_RETURN bad_handle(const char* call, const char* argument, DAT_HANDLE handle, DAT_RETURN subtype) {
  return dapl::fail(DAT_INVALID_HANDLE, subtype, "{}: {} {} is no live handle of the kind that is needed here", call,
                    argument, handle);
}

}  // namespace anydat::api
