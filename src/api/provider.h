// SPDX-License-Identifier: BSD-3-Clause
// Our provider: what stands in the call table behind our handles. Each function checks its handles and calls the
// object; it has no behaviour of its own. The exported calls of libdat (exports.cc) come here, and so do redirect
// macros.
#pragma once

#include <dat/dat_registry.h>
#include <dat/udat.h>

#include <type_traits>

#include "dapl/error.h"
#include "dapl/object.h"
#include "os/cancel.h"

namespace anydat::api {

// A table of all our calls, for the adapters registered as `device_name` (REG-TBL-2), which must outlive it.
DAT_PROVIDER make_provider_table(const char* device_name, DAT_IA_OPEN_FUNC open);

DAT_RETURN bad_handle(const char* call, const char* argument, DAT_HANDLE handle, DAT_RETURN subtype);

// ia; what opens one is in own_provider.h
DAT_RETURN ia_query(DAT_IA_HANDLE, DAT_EVD_HANDLE*, DAT_IA_ATTR_MASK, DAT_IA_ATTR*, DAT_PROVIDER_ATTR_MASK,
                    DAT_PROVIDER_ATTR*);
DAT_RETURN ia_close(DAT_IA_HANDLE, DAT_CLOSE_FLAGS);
DAT_RETURN set_consumer_context(DAT_HANDLE, DAT_CONTEXT);
DAT_RETURN get_consumer_context(DAT_HANDLE, DAT_CONTEXT*);
DAT_RETURN get_handle_type(DAT_HANDLE, DAT_HANDLE_TYPE*);
// cno
DAT_RETURN cno_create(DAT_IA_HANDLE, DAT_OS_WAIT_PROXY_AGENT, DAT_CNO_HANDLE*);
DAT_RETURN cno_modify_agent(DAT_CNO_HANDLE, DAT_OS_WAIT_PROXY_AGENT);
DAT_RETURN cno_query(DAT_CNO_HANDLE, DAT_CNO_PARAM_MASK, DAT_CNO_PARAM*);
DAT_RETURN cno_free(DAT_CNO_HANDLE);
DAT_RETURN cno_wait(DAT_CNO_HANDLE, DAT_TIMEOUT, DAT_EVD_HANDLE*);
// cr
DAT_RETURN cr_query(DAT_CR_HANDLE, DAT_CR_PARAM_MASK, DAT_CR_PARAM*);
DAT_RETURN cr_accept(DAT_CR_HANDLE, DAT_EP_HANDLE, DAT_COUNT, const DAT_PVOID);
DAT_RETURN cr_reject(DAT_CR_HANDLE);
DAT_RETURN cr_handoff(DAT_CR_HANDLE, DAT_CONN_QUAL);
// evd
DAT_RETURN evd_create(DAT_IA_HANDLE, DAT_COUNT, DAT_CNO_HANDLE, DAT_EVD_FLAGS, DAT_EVD_HANDLE*);
DAT_RETURN evd_query(DAT_EVD_HANDLE, DAT_EVD_PARAM_MASK, DAT_EVD_PARAM*);
DAT_RETURN evd_modify_cno(DAT_EVD_HANDLE, DAT_CNO_HANDLE);
DAT_RETURN evd_enable(DAT_EVD_HANDLE);
DAT_RETURN evd_disable(DAT_EVD_HANDLE);
DAT_RETURN evd_wait(DAT_EVD_HANDLE, DAT_TIMEOUT, DAT_COUNT, DAT_EVENT*, DAT_COUNT*);
DAT_RETURN evd_resize(DAT_EVD_HANDLE, DAT_COUNT);
DAT_RETURN evd_post_se(DAT_EVD_HANDLE, const DAT_EVENT*);
DAT_RETURN evd_dequeue(DAT_EVD_HANDLE, DAT_EVENT*);
DAT_RETURN evd_free(DAT_EVD_HANDLE);
DAT_RETURN evd_set_unwaitable(DAT_EVD_HANDLE);
DAT_RETURN evd_clear_unwaitable(DAT_EVD_HANDLE);
// ep
DAT_RETURN ep_create(DAT_IA_HANDLE, DAT_PZ_HANDLE, DAT_EVD_HANDLE, DAT_EVD_HANDLE, DAT_EVD_HANDLE, const DAT_EP_ATTR*,
                     DAT_EP_HANDLE*);
DAT_RETURN ep_create_with_srq(DAT_IA_HANDLE, DAT_PZ_HANDLE, DAT_EVD_HANDLE, DAT_EVD_HANDLE, DAT_EVD_HANDLE,
                              DAT_SRQ_HANDLE, const DAT_EP_ATTR*, DAT_EP_HANDLE*);
DAT_RETURN ep_query(DAT_EP_HANDLE, DAT_EP_PARAM_MASK, DAT_EP_PARAM*);
DAT_RETURN ep_modify(DAT_EP_HANDLE, DAT_EP_PARAM_MASK, const DAT_EP_PARAM*);
DAT_RETURN ep_connect(DAT_EP_HANDLE, DAT_IA_ADDRESS_PTR, DAT_CONN_QUAL, DAT_TIMEOUT, DAT_COUNT, const DAT_PVOID,
                      DAT_QOS, DAT_CONNECT_FLAGS);
DAT_RETURN ep_dup_connect(DAT_EP_HANDLE, DAT_EP_HANDLE, DAT_TIMEOUT, DAT_COUNT, const DAT_PVOID, DAT_QOS);
DAT_RETURN ep_disconnect(DAT_EP_HANDLE, DAT_CLOSE_FLAGS);
DAT_RETURN ep_post_send(DAT_EP_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET*, DAT_DTO_COOKIE, DAT_COMPLETION_FLAGS);
DAT_RETURN ep_post_recv(DAT_EP_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET*, DAT_DTO_COOKIE, DAT_COMPLETION_FLAGS);
DAT_RETURN ep_post_rdma_read(DAT_EP_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET*, DAT_DTO_COOKIE, const DAT_RMR_TRIPLET*,
                             DAT_COMPLETION_FLAGS);
DAT_RETURN ep_post_rdma_write(DAT_EP_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET*, DAT_DTO_COOKIE, const DAT_RMR_TRIPLET*,
                              DAT_COMPLETION_FLAGS);
DAT_RETURN ep_get_status(DAT_EP_HANDLE, DAT_EP_STATE*, DAT_BOOLEAN*, DAT_BOOLEAN*);
DAT_RETURN ep_free(DAT_EP_HANDLE);
DAT_RETURN ep_reset(DAT_EP_HANDLE);
DAT_RETURN ep_recv_query(DAT_EP_HANDLE, DAT_COUNT*, DAT_COUNT*);
DAT_RETURN ep_set_watermark(DAT_EP_HANDLE, DAT_COUNT, DAT_COUNT);
// memory
DAT_RETURN lmr_create(DAT_IA_HANDLE, DAT_MEM_TYPE, DAT_REGION_DESCRIPTION, DAT_VLEN, DAT_PZ_HANDLE, DAT_MEM_PRIV_FLAGS,
                      DAT_LMR_HANDLE*, DAT_LMR_CONTEXT*, DAT_RMR_CONTEXT*, DAT_VLEN*, DAT_VADDR*);
DAT_RETURN lmr_query(DAT_LMR_HANDLE, DAT_LMR_PARAM_MASK, DAT_LMR_PARAM*);
DAT_RETURN lmr_free(DAT_LMR_HANDLE);
DAT_RETURN lmr_sync_rdma_read(DAT_IA_HANDLE, const DAT_LMR_TRIPLET*, DAT_VLEN);
DAT_RETURN lmr_sync_rdma_write(DAT_IA_HANDLE, const DAT_LMR_TRIPLET*, DAT_VLEN);
DAT_RETURN rmr_create(DAT_PZ_HANDLE, DAT_RMR_HANDLE*);
DAT_RETURN rmr_query(DAT_RMR_HANDLE, DAT_RMR_PARAM_MASK, DAT_RMR_PARAM*);
DAT_RETURN rmr_bind(DAT_RMR_HANDLE, const DAT_LMR_TRIPLET*, DAT_MEM_PRIV_FLAGS, DAT_EP_HANDLE, DAT_RMR_COOKIE,
                    DAT_COMPLETION_FLAGS, DAT_RMR_CONTEXT*);
DAT_RETURN rmr_free(DAT_RMR_HANDLE);
DAT_RETURN pz_create(DAT_IA_HANDLE, DAT_PZ_HANDLE*);
DAT_RETURN pz_query(DAT_PZ_HANDLE, DAT_PZ_PARAM_MASK, DAT_PZ_PARAM*);
DAT_RETURN pz_free(DAT_PZ_HANDLE);
// service points
DAT_RETURN psp_create(DAT_IA_HANDLE, DAT_CONN_QUAL, DAT_EVD_HANDLE, DAT_PSP_FLAGS, DAT_PSP_HANDLE*);
DAT_RETURN psp_create_any(DAT_IA_HANDLE, DAT_CONN_QUAL*, DAT_EVD_HANDLE, DAT_PSP_FLAGS, DAT_PSP_HANDLE*);
DAT_RETURN psp_query(DAT_PSP_HANDLE, DAT_PSP_PARAM_MASK, DAT_PSP_PARAM*);
DAT_RETURN psp_free(DAT_PSP_HANDLE);
DAT_RETURN rsp_create(DAT_IA_HANDLE, DAT_CONN_QUAL, DAT_EP_HANDLE, DAT_EVD_HANDLE, DAT_RSP_HANDLE*);
DAT_RETURN rsp_query(DAT_RSP_HANDLE, DAT_RSP_PARAM_MASK, DAT_RSP_PARAM*);
DAT_RETURN rsp_free(DAT_RSP_HANDLE);
// srq
DAT_RETURN srq_create(DAT_IA_HANDLE, DAT_PZ_HANDLE, DAT_SRQ_ATTR*, DAT_SRQ_HANDLE*);
DAT_RETURN srq_free(DAT_SRQ_HANDLE);
DAT_RETURN srq_post_recv(DAT_SRQ_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET*, DAT_DTO_COOKIE);
DAT_RETURN srq_query(DAT_SRQ_HANDLE, DAT_SRQ_PARAM_MASK, DAT_SRQ_PARAM*);
DAT_RETURN srq_resize(DAT_SRQ_HANDLE, DAT_COUNT);
DAT_RETURN srq_set_lw(DAT_SRQ_HANDLE, DAT_COUNT);

// Whether no way from the call leads to a cancellation point. Those for which cancelling is not switched off at the
// edge, because that would cost too much: what they do uses system calls that are none (os/uncancelled.h), and the two
// waits switch it off by themselves.
template <auto call>
inline constexpr bool kMeetsNoCancellation = false;
template <>
inline constexpr bool kMeetsNoCancellation<set_consumer_context> = true;
template <>
inline constexpr bool kMeetsNoCancellation<get_consumer_context> = true;
template <>
inline constexpr bool kMeetsNoCancellation<get_handle_type> = true;
template <>
inline constexpr bool kMeetsNoCancellation<cno_wait> = true;
template <>
inline constexpr bool kMeetsNoCancellation<evd_wait> = true;
template <>
inline constexpr bool kMeetsNoCancellation<evd_dequeue> = true;
template <>
inline constexpr bool kMeetsNoCancellation<evd_post_se> = true;
template <>
inline constexpr bool kMeetsNoCancellation<ep_post_send> = true;
template <>
inline constexpr bool kMeetsNoCancellation<ep_post_recv> = true;
template <>
inline constexpr bool kMeetsNoCancellation<ep_post_rdma_read> = true;
template <>
inline constexpr bool kMeetsNoCancellation<ep_post_rdma_write> = true;
template <>
inline constexpr bool kMeetsNoCancellation<rmr_bind> = true;
template <>
inline constexpr bool kMeetsNoCancellation<srq_post_recv> = true;

// For the length of a call.
struct Nothing {};
template <auto call>
using Uncancelled = std::conditional_t<kMeetsNoCancellation<call>, Nothing, os::CancelOff>;

}  // namespace anydat::api
