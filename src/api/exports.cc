// SPDX-License-Identifier: BSD-3-Clause
// The calls that libdat exports (src/libdat.map). Each goes to the provider of the object it is about: ours directly, a
// foreign one through its table (OBJ-7). Our functions refuse what is no handle of anybody. The calls that the registry
// has a part in are in registry_calls.cc.
#include <dat/dat_registry.h>
#include <dat/udat.h>

#include <new>

#include "api/provider.h"
#include "dapl/error.h"
#include "dapl/handle.h"
#include "registry/registry.h"

namespace anydat {

namespace {

using Subject = registry::ForeignCall::Subject;

template <auto ours, typename... Rest>
inline DAT_RETURN redirect_to_ours(DAT_HANDLE handle, Rest... rest) {
  [[maybe_unused]] const api::Uncancelled<ours> uncancelled;
  try {
    return ours(handle, rest...);
  } catch (const std::bad_alloc&) {
    return dapl::error_code(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);  // no exception gets out of the library
  }
}

// Apart, so that what it needs is not in the way of the usual case.
template <auto ours, auto slot, Subject subject, typename... Rest>
[[gnu::noinline]] DAT_RETURN redirect_unknown(DAT_HANDLE handle, Rest... rest) {
  if (const registry::ForeignCall foreign(handle, subject); foreign) return foreign(slot, handle, rest...);
  return redirect_to_ours<ours>(handle, rest...);
}

template <auto ours, auto slot, Subject subject = Subject::object, typename... Rest>
inline DAT_RETURN redirect(DAT_HANDLE handle, Rest... rest) {
  if (!dapl::HandleTable::owns(handle)) [[unlikely]]
    return redirect_unknown<ours, slot, subject>(handle, rest...);
  return redirect_to_ours<ours>(handle, rest...);
}

}  // namespace

}  // namespace anydat

// At global scope, like the declarations, whose visibility they inherit.
using anydat::redirect;
using anydat::Subject;
namespace api = anydat::api;

extern "C" {

DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE* async_evd_handle, DAT_IA_ATTR_MASK ia_attr_mask,
                        DAT_IA_ATTR* ia_attributes, DAT_PROVIDER_ATTR_MASK provider_attr_mask,
                        DAT_PROVIDER_ATTR* provider_attributes) {
  return redirect<api::ia_query, &DAT_PROVIDER::ia_query_func, Subject::ia>(
      ia_handle, async_evd_handle, ia_attr_mask, ia_attributes, provider_attr_mask, provider_attributes);
}

DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context) {
  return redirect<api::set_consumer_context, &DAT_PROVIDER::set_consumer_context_func>(dat_handle, context);
}

DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT* context) {
  return redirect<api::get_consumer_context, &DAT_PROVIDER::get_consumer_context_func>(dat_handle, context);
}

DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE* handle_type) {
  return redirect<api::get_handle_type, &DAT_PROVIDER::get_handle_type_func>(dat_handle, handle_type);
}

DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE* cno_handle) {
  return redirect<api::cno_create, &DAT_PROVIDER::cno_create_func, Subject::ia>(ia_handle, agent, cno_handle);
}

DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent) {
  return redirect<api::cno_modify_agent, &DAT_PROVIDER::cno_modify_agent_func>(cno_handle, agent);
}

DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK cno_param_mask, DAT_CNO_PARAM* cno_param) {
  return redirect<api::cno_query, &DAT_PROVIDER::cno_query_func>(cno_handle, cno_param_mask, cno_param);
}

DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno_handle) {
  return redirect<api::cno_free, &DAT_PROVIDER::cno_free_func, Subject::destroyed_object>(cno_handle);
}

DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE* evd_handle) {
  return redirect<api::cno_wait, &DAT_PROVIDER::cno_wait_func>(cno_handle, timeout, evd_handle);
}

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask, DAT_CR_PARAM* cr_param) {
  return redirect<api::cr_query, &DAT_PROVIDER::cr_query_func>(cr_handle, cr_param_mask, cr_param);
}

DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle, DAT_COUNT private_data_size,
                         const DAT_PVOID private_data) {
  return redirect<api::cr_accept, &DAT_PROVIDER::cr_accept_func, Subject::destroyed_object>(
      cr_handle, ep_handle, private_data_size, private_data);
}

DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle) {
  return redirect<api::cr_reject, &DAT_PROVIDER::cr_reject_func, Subject::destroyed_object>(cr_handle);
}

DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff) {
  return redirect<api::cr_handoff, &DAT_PROVIDER::cr_handoff_func, Subject::destroyed_object>(cr_handle, handoff);
}

DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen, DAT_CNO_HANDLE cno_handle,
                          DAT_EVD_FLAGS evd_flags, DAT_EVD_HANDLE* evd_handle) {
  return redirect<api::evd_create, &DAT_PROVIDER::evd_create_func, Subject::ia>(ia_handle, evd_min_qlen, cno_handle,
                                                                                evd_flags, evd_handle);
}

DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask, DAT_EVD_PARAM* evd_param) {
  return redirect<api::evd_query, &DAT_PROVIDER::evd_query_func>(evd_handle, evd_param_mask, evd_param);
}

DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle) {
  return redirect<api::evd_modify_cno, &DAT_PROVIDER::evd_modify_cno_func>(evd_handle, cno_handle);
}

DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd_handle) {
  return redirect<api::evd_enable, &DAT_PROVIDER::evd_enable_func>(evd_handle);
}

DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd_handle) {
  return redirect<api::evd_disable, &DAT_PROVIDER::evd_disable_func>(evd_handle);
}

DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event,
                        DAT_COUNT* nmore) {
  return redirect<api::evd_wait, &DAT_PROVIDER::evd_wait_func>(evd_handle, timeout, threshold, event, nmore);
}

DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen) {
  return redirect<api::evd_resize, &DAT_PROVIDER::evd_resize_func>(evd_handle, evd_min_qlen);
}

DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT* event) {
  return redirect<api::evd_post_se, &DAT_PROVIDER::evd_post_se_func>(evd_handle, event);
}

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT* event) {
  return redirect<api::evd_dequeue, &DAT_PROVIDER::evd_dequeue_func>(evd_handle, event);
}

DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle) {
  return redirect<api::evd_free, &DAT_PROVIDER::evd_free_func, Subject::destroyed_object>(evd_handle);
}

DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle) {
  return redirect<api::evd_set_unwaitable, &DAT_PROVIDER::evd_set_unwaitable_func>(evd_handle);
}

DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle) {
  return redirect<api::evd_clear_unwaitable, &DAT_PROVIDER::evd_clear_unwaitable_func>(evd_handle);
}

DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_evd_handle,
                         DAT_EVD_HANDLE request_evd_handle, DAT_EVD_HANDLE connect_evd_handle,
                         const DAT_EP_ATTR* ep_attributes, DAT_EP_HANDLE* ep_handle) {
  return redirect<api::ep_create, &DAT_PROVIDER::ep_create_func, Subject::ia>(
      ia_handle, pz_handle, recv_evd_handle, request_evd_handle, connect_evd_handle, ep_attributes, ep_handle);
}

DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_evd_handle,
                                  DAT_EVD_HANDLE request_evd_handle, DAT_EVD_HANDLE connect_evd_handle,
                                  DAT_SRQ_HANDLE srq_handle, const DAT_EP_ATTR* ep_attributes,
                                  DAT_EP_HANDLE* ep_handle) {
  return redirect<api::ep_create_with_srq, &DAT_PROVIDER::ep_create_with_srq_func, Subject::ia>(
      ia_handle, pz_handle, recv_evd_handle, request_evd_handle, connect_evd_handle, srq_handle, ep_attributes,
      ep_handle);
}

DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask, DAT_EP_PARAM* ep_param) {
  return redirect<api::ep_query, &DAT_PROVIDER::ep_query_func>(ep_handle, ep_param_mask, ep_param);
}

DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask, const DAT_EP_PARAM* ep_param) {
  return redirect<api::ep_modify, &DAT_PROVIDER::ep_modify_func>(ep_handle, ep_param_mask, ep_param);
}

DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address, DAT_CONN_QUAL remote_conn_qual,
                          DAT_TIMEOUT timeout, DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos,
                          DAT_CONNECT_FLAGS connect_flags) {
  return redirect<api::ep_connect, &DAT_PROVIDER::ep_connect_func>(
      ep_handle, remote_ia_address, remote_conn_qual, timeout, private_data_size, private_data, qos, connect_flags);
}

DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle, DAT_TIMEOUT timeout,
                              DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos) {
  return redirect<api::ep_dup_connect, &DAT_PROVIDER::ep_dup_connect_func>(ep_handle, ep_dup_handle, timeout,
                                                                           private_data_size, private_data, qos);
}

DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags) {
  return redirect<api::ep_disconnect, &DAT_PROVIDER::ep_disconnect_func>(ep_handle, close_flags);
}

DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET* local_iov,
                            DAT_DTO_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags) {
  return redirect<api::ep_post_send, &DAT_PROVIDER::ep_post_send_func>(ep_handle, num_segments, local_iov, user_cookie,
                                                                       completion_flags);
}

DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET* local_iov,
                            DAT_DTO_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags) {
  return redirect<api::ep_post_recv, &DAT_PROVIDER::ep_post_recv_func>(ep_handle, num_segments, local_iov, user_cookie,
                                                                       completion_flags);
}

DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET* local_iov,
                                 DAT_DTO_COOKIE user_cookie, const DAT_RMR_TRIPLET* remote_buffer,
                                 DAT_COMPLETION_FLAGS completion_flags) {
  return redirect<api::ep_post_rdma_read, &DAT_PROVIDER::ep_post_rdma_read_func>(
      ep_handle, num_segments, local_iov, user_cookie, remote_buffer, completion_flags);
}

DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET* local_iov,
                                  DAT_DTO_COOKIE user_cookie, const DAT_RMR_TRIPLET* remote_buffer,
                                  DAT_COMPLETION_FLAGS completion_flags) {
  return redirect<api::ep_post_rdma_write, &DAT_PROVIDER::ep_post_rdma_write_func>(
      ep_handle, num_segments, local_iov, user_cookie, remote_buffer, completion_flags);
}

DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE* ep_state, DAT_BOOLEAN* recv_idle,
                             DAT_BOOLEAN* request_idle) {
  return redirect<api::ep_get_status, &DAT_PROVIDER::ep_get_status_func>(ep_handle, ep_state, recv_idle, request_idle);
}

DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle) {
  return redirect<api::ep_free, &DAT_PROVIDER::ep_free_func, Subject::destroyed_object>(ep_handle);
}

DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle) {
  return redirect<api::ep_reset, &DAT_PROVIDER::ep_reset_func>(ep_handle);
}

DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT* nbufs_allocated, DAT_COUNT* bufs_alloc_span) {
  return redirect<api::ep_recv_query, &DAT_PROVIDER::ep_recv_query_func>(ep_handle, nbufs_allocated, bufs_alloc_span);
}

DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark, DAT_COUNT hard_high_watermark) {
  return redirect<api::ep_set_watermark, &DAT_PROVIDER::ep_set_watermark_func>(ep_handle, soft_high_watermark,
                                                                               hard_high_watermark);
}

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region_description,
                          DAT_VLEN length, DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS mem_privileges,
                          DAT_LMR_HANDLE* lmr_handle, DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context,
                          DAT_VLEN* registered_size, DAT_VADDR* registered_address) {
  return redirect<api::lmr_create, &DAT_PROVIDER::lmr_create_func, Subject::ia>(
      ia_handle, mem_type, region_description, length, pz_handle, mem_privileges, lmr_handle, lmr_context, rmr_context,
      registered_size, registered_address);
}

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask, DAT_LMR_PARAM* lmr_param) {
  return redirect<api::lmr_query, &DAT_PROVIDER::lmr_query_func>(lmr_handle, lmr_param_mask, lmr_param);
}

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle) {
  return redirect<api::lmr_free, &DAT_PROVIDER::lmr_free_func, Subject::destroyed_object>(lmr_handle);
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* local_segments,
                                  DAT_VLEN num_segments) {
  return redirect<api::lmr_sync_rdma_read, &DAT_PROVIDER::lmr_sync_rdma_read_func, Subject::ia>(
      ia_handle, local_segments, num_segments);
}

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* local_segments,
                                   DAT_VLEN num_segments) {
  return redirect<api::lmr_sync_rdma_write, &DAT_PROVIDER::lmr_sync_rdma_write_func, Subject::ia>(
      ia_handle, local_segments, num_segments);
}

DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE* rmr_handle) {
  return redirect<api::rmr_create, &DAT_PROVIDER::rmr_create_func>(pz_handle, rmr_handle);
}

DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask, DAT_RMR_PARAM* rmr_param) {
  return redirect<api::rmr_query, &DAT_PROVIDER::rmr_query_func>(rmr_handle, rmr_param_mask, rmr_param);
}

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET* lmr_triplet, DAT_MEM_PRIV_FLAGS mem_priv,
                        DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
                        DAT_RMR_CONTEXT* rmr_context) {
  return redirect<api::rmr_bind, &DAT_PROVIDER::rmr_bind_func>(rmr_handle, lmr_triplet, mem_priv, ep_handle,
                                                               user_cookie, completion_flags, rmr_context);
}

DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle) {
  return redirect<api::rmr_free, &DAT_PROVIDER::rmr_free_func, Subject::destroyed_object>(rmr_handle);
}

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE* pz_handle) {
  return redirect<api::pz_create, &DAT_PROVIDER::pz_create_func, Subject::ia>(ia_handle, pz_handle);
}

DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask, DAT_PZ_PARAM* pz_param) {
  return redirect<api::pz_query, &DAT_PROVIDER::pz_query_func>(pz_handle, pz_param_mask, pz_param);
}

DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle) {
  return redirect<api::pz_free, &DAT_PROVIDER::pz_free_func, Subject::destroyed_object>(pz_handle);
}

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EVD_HANDLE evd_handle,
                          DAT_PSP_FLAGS psp_flags, DAT_PSP_HANDLE* psp_handle) {
  return redirect<api::psp_create, &DAT_PROVIDER::psp_create_func, Subject::ia>(ia_handle, conn_qual, evd_handle,
                                                                                psp_flags, psp_handle);
}

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL* conn_qual, DAT_EVD_HANDLE evd_handle,
                              DAT_PSP_FLAGS psp_flags, DAT_PSP_HANDLE* psp_handle) {
  return redirect<api::psp_create_any, &DAT_PROVIDER::psp_create_any_func, Subject::ia>(
      ia_handle, conn_qual, evd_handle, psp_flags, psp_handle);
}

DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask, DAT_PSP_PARAM* psp_param) {
  return redirect<api::psp_query, &DAT_PROVIDER::psp_query_func>(psp_handle, psp_param_mask, psp_param);
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle) {
  return redirect<api::psp_free, &DAT_PROVIDER::psp_free_func, Subject::destroyed_object>(psp_handle);
}

DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle,
                          DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE* rsp_handle) {
  return redirect<api::rsp_create, &DAT_PROVIDER::rsp_create_func, Subject::ia>(ia_handle, conn_qual, ep_handle,
                                                                                evd_handle, rsp_handle);
}

DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask, DAT_RSP_PARAM* rsp_param) {
  return redirect<api::rsp_query, &DAT_PROVIDER::rsp_query_func>(rsp_handle, rsp_param_mask, rsp_param);
}

DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle) {
  return redirect<api::rsp_free, &DAT_PROVIDER::rsp_free_func, Subject::destroyed_object>(rsp_handle);
}

DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR* srq_attr,
                          DAT_SRQ_HANDLE* srq_handle) {
  return redirect<api::srq_create, &DAT_PROVIDER::srq_create_func, Subject::ia>(ia_handle, pz_handle, srq_attr,
                                                                                srq_handle);
}

DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle) {
  return redirect<api::srq_free, &DAT_PROVIDER::srq_free_func, Subject::destroyed_object>(srq_handle);
}

DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments, DAT_LMR_TRIPLET* local_iov,
                             DAT_DTO_COOKIE user_cookie) {
  return redirect<api::srq_post_recv, &DAT_PROVIDER::srq_post_recv_func>(srq_handle, num_segments, local_iov,
                                                                         user_cookie);
}

DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask, DAT_SRQ_PARAM* srq_param) {
  return redirect<api::srq_query, &DAT_PROVIDER::srq_query_func>(srq_handle, srq_param_mask, srq_param);
}

DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto) {
  return redirect<api::srq_resize, &DAT_PROVIDER::srq_resize_func>(srq_handle, srq_max_recv_dto);
}

DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark) {
  return redirect<api::srq_set_lw, &DAT_PROVIDER::srq_set_lw_func>(srq_handle, low_watermark);
}

}  // extern "C"
