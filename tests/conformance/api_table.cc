// SPDX-License-Identifier: BSD-3-Clause
#include "api_table.h"

#include <anydat/anydat.h>
#include <sys/mman.h>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

using H = const Handles&;

constexpr HandleArgument kIa{DAT_HANDLE_TYPE_IA, &Household::ia, DAT_INVALID_HANDLE_IA};
constexpr HandleArgument kPz{DAT_HANDLE_TYPE_PZ, &Household::pz, DAT_INVALID_HANDLE_PZ};
constexpr HandleArgument kPzOrNull{DAT_HANDLE_TYPE_PZ, &Household::pz, DAT_INVALID_HANDLE_PZ, true};
constexpr HandleArgument kSparePz{DAT_HANDLE_TYPE_PZ, &Household::spare_pz, DAT_INVALID_HANDLE_PZ};
constexpr HandleArgument kCno{DAT_HANDLE_TYPE_CNO, &Household::cno, DAT_INVALID_HANDLE_CNO};
constexpr HandleArgument kCnoOrNull{DAT_HANDLE_TYPE_CNO, &Household::cno, DAT_INVALID_HANDLE_CNO, true};
constexpr HandleArgument kSpareCno{DAT_HANDLE_TYPE_CNO, &Household::spare_cno, DAT_INVALID_HANDLE_CNO};
constexpr HandleArgument kEvd{DAT_HANDLE_TYPE_EVD, &Household::evd, DAT_NO_SUBTYPE};
constexpr HandleArgument kSpareEvd{DAT_HANDLE_TYPE_EVD, &Household::spare_evd, DAT_NO_SUBTYPE};
constexpr HandleArgument kRecvEvd{DAT_HANDLE_TYPE_EVD, &Household::evd, DAT_INVALID_HANDLE_EVD_RECV, true};
constexpr HandleArgument kRequestEvd{DAT_HANDLE_TYPE_EVD, &Household::evd, DAT_INVALID_HANDLE_EVD_REQUEST, true};
constexpr HandleArgument kConnectEvd{DAT_HANDLE_TYPE_EVD, &Household::evd, DAT_INVALID_HANDLE_EVD_CONN, true};
constexpr HandleArgument kCrEvd{DAT_HANDLE_TYPE_EVD, &Household::evd, DAT_INVALID_HANDLE_EVD_CR};
constexpr HandleArgument kEp{DAT_HANDLE_TYPE_EP, &Household::idle, DAT_INVALID_HANDLE_EP};
constexpr HandleArgument kEpOrNull{DAT_HANDLE_TYPE_EP, &Household::idle, DAT_INVALID_HANDLE_EP, true};
constexpr HandleArgument kConnectedEp{DAT_HANDLE_TYPE_EP, &Household::connected, DAT_INVALID_HANDLE_EP};
constexpr HandleArgument kLmr{DAT_HANDLE_TYPE_LMR, &Household::lmr, DAT_INVALID_HANDLE_LMR};
constexpr HandleArgument kRmr{DAT_HANDLE_TYPE_RMR, &Household::rmr, DAT_INVALID_HANDLE_RMR};
constexpr HandleArgument kPsp{DAT_HANDLE_TYPE_PSP, &Household::psp, DAT_INVALID_HANDLE_PSP};
constexpr HandleArgument kRsp{DAT_HANDLE_TYPE_RSP, &Household::rsp, DAT_INVALID_HANDLE_RSP};
constexpr HandleArgument kCr{DAT_HANDLE_TYPE_CR, &Household::cr, DAT_INVALID_HANDLE_CR};
constexpr HandleArgument kSrq{DAT_HANDLE_TYPE_SRQ, &Household::srq, DAT_INVALID_HANDLE_SRQ};

const DAT_EP_ATTR kEpAttr = default_ep_attr();
const DAT_EP_ATTR kSrqEpAttr = default_srq_ep_attr();

// Where results go that no test looks at.
DAT_HANDLE made;
DAT_LMR_CONTEXT made_context;

DAT_RETURN create_lmr(Household& home, H h, DAT_MEM_TYPE type) {
  alignas(64) static char memory[128];
  static char id[DAT_LMR_COOKIE_SIZE] = "a table of the whole API";
  static void* const shared = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  DAT_REGION_DESCRIPTION region{};
  DAT_VLEN length = sizeof memory;
  if (type == DAT_MEM_TYPE_VIRTUAL) region.for_va = memory;
  if (type == DAT_MEM_TYPE_LMR) region.for_lmr_handle = h.size() > 2 ? h[2] : home.lmr;
  if (type == DAT_MEM_TYPE_SHARED_VIRTUAL) {
    region.for_shared_memory.virtual_address = shared;
    region.for_shared_memory.shared_memory_id = &id;
    length = 4096;
  }
  return dat_lmr_create(h[0], type, region, length, h[1], DAT_MEM_PRIV_ALL_FLAG, &made, &made_context, nullptr, nullptr,
                        nullptr);
}

DAT_RETURN modify(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_HANDLE DAT_EP_PARAM::*member, DAT_HANDLE handle) {
  DAT_EP_PARAM param{};
  param.*member = handle;
  return dat_ep_modify(ep, mask, &param);
}

template <typename Param, typename Mask>
std::function<DAT_RETURN(Household&, H)> query(DAT_RETURN (*function)(DAT_HANDLE, Mask, Param*), Mask all) {
  return [=](Household&, H h) {
    Param param{};
    return function(h[0], all, &param);
  };
}

std::function<DAT_RETURN(Household&, H)> simple(DAT_RETURN (*function)(DAT_HANDLE)) {
  return [=](Household&, H h) { return function(h[0]); };
}

std::function<DAT_RETURN(Household&, H)> post_many(decltype(anydat_ep_post_sends)* function) {
  return [=](Household& home, H h) {
    DAT_LMR_TRIPLET segment = home.segment();
    const ANYDAT_EP_POST post{1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG};
    DAT_COUNT posted = 0;
    return function(h[0], 1, &post, &posted);
  };
}

std::vector<ApiCall> table() {
  return {
      // ---- adapters, contexts
      {"dat_ia_query", {kIa}, [](Household&, H h) { return dat_ia_query(h[0], &made, 0, nullptr, 0, nullptr); }},
      {"dat_ia_close", {kIa}, [](Household&, H h) { return dat_ia_close(h[0], DAT_CLOSE_ABRUPT_FLAG); }},
      {"dat_set_consumer_context evd", {kEvd}, [](Household&, H h) { return dat_set_consumer_context(h[0], {}); }},
      {"dat_get_consumer_context evd",
       {kEvd},
       [](Household&, H h) {
         DAT_CONTEXT context{};
         return dat_get_consumer_context(h[0], &context);
       }},
      {"dat_get_handle_type evd",
       {kEvd},
       [](Household&, H h) {
         DAT_HANDLE_TYPE type{};
         return dat_get_handle_type(h[0], &type);
       }},
      // ---- notification objects
      {"dat_cno_create", {kIa}, [](Household&, H h) { return dat_cno_create(h[0], no_agent(), &made); }},
      {"dat_cno_modify_agent", {kCno}, [](Household&, H h) { return dat_cno_modify_agent(h[0], no_agent()); }},
      {"dat_cno_query", {kCno}, query(&dat_cno_query, DAT_CNO_FIELD_ALL)},
      {"dat_cno_free", {kSpareCno}, simple(&dat_cno_free)},
      {"dat_cno_wait", {kCno}, [](Household&, H h) { return dat_cno_wait(h[0], 0, &made); }},
      // ---- event dispatchers
      {"dat_evd_create",
       {kIa, kCnoOrNull},
       [](Household&, H h) { return dat_evd_create(h[0], 4, h[1], DAT_EVD_SOFTWARE_FLAG, &made); }},
      {"dat_evd_query", {kEvd}, query(&dat_evd_query, DAT_EVD_FIELD_ALL)},
      {"dat_evd_modify_cno", {kEvd, kCnoOrNull}, [](Household&, H h) { return dat_evd_modify_cno(h[0], h[1]); }},
      {"dat_evd_enable", {kEvd}, simple(&dat_evd_enable)},
      {"dat_evd_disable", {kEvd}, simple(&dat_evd_disable)},
      {"dat_evd_wait",
       {kEvd},
       [](Household& home, H h) {
         try_post(home.evd);
         return wait_evd(h[0], 0).rc;
       }},
      {"dat_evd_resize", {kEvd}, [](Household&, H h) { return dat_evd_resize(h[0], 64); }},
      {"dat_evd_post_se", {kEvd}, [](Household&, H h) { return try_post(h[0]); }},
      {"dat_evd_dequeue",
       {kEvd},
       [](Household& home, H h) {
         try_post(home.evd);
         DAT_EVENT event{};
         return dat_evd_dequeue(h[0], &event);
       }},
      {"dat_evd_free", {kSpareEvd}, simple(&dat_evd_free)},
      {"dat_evd_set_unwaitable", {kSpareEvd}, simple(&dat_evd_set_unwaitable)},
      {"dat_evd_clear_unwaitable", {kSpareEvd}, simple(&dat_evd_clear_unwaitable)},
      // ---- endpoints
      {"dat_ep_create",
       {kIa, kPzOrNull, kRecvEvd, kRequestEvd, kConnectEvd},
       [](Household&, H h) { return dat_ep_create(h[0], h[1], h[2], h[3], h[4], &kEpAttr, &made); }},
      {"dat_ep_create_with_srq",
       {kIa, kPzOrNull, kRecvEvd, kRequestEvd, kConnectEvd, kSrq},
       [](Household&, H h) { return dat_ep_create_with_srq(h[0], h[1], h[2], h[3], h[4], h[5], &kSrqEpAttr, &made); }},
      {"dat_ep_query", {kEp}, query<DAT_EP_PARAM, DAT_EP_PARAM_MASK>(&dat_ep_query, DAT_EP_FIELD_ALL)},
      {"dat_ep_modify pz",
       {kEp, kPzOrNull},
       [](Household&, H h) { return modify(h[0], DAT_EP_FIELD_PZ_HANDLE, &DAT_EP_PARAM::pz_handle, h[1]); }},
      {"dat_ep_modify recv_evd",
       {kEp, kRecvEvd},
       [](Household&, H h) {
         return modify(h[0], DAT_EP_FIELD_RECV_EVD_HANDLE, &DAT_EP_PARAM::recv_evd_handle, h[1]);
       }},
      {"dat_ep_modify request_evd",
       {kEp, kRequestEvd},
       [](Household&, H h) {
         return modify(h[0], DAT_EP_FIELD_REQUEST_EVD_HANDLE, &DAT_EP_PARAM::request_evd_handle, h[1]);
       }},
      {"dat_ep_modify connect_evd",
       {kEp, kConnectEvd},
       [](Household&, H h) {
         return modify(h[0], DAT_EP_FIELD_CONNECT_EVD_HANDLE, &DAT_EP_PARAM::connect_evd_handle, h[1]);
       }},
      {"dat_ep_connect",
       {kEp},
       [](Household& home, H h) {
         return dat_ep_connect(h[0], loopback(), home.unused_qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr,
                               DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
       }},
      {"dat_ep_dup_connect",
       {kEp, kConnectedEp},
       [](Household&, H h) {
         return dat_ep_dup_connect(h[0], h[1], DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT);
       }},
      {"dat_ep_disconnect", {kConnectedEp}, [](Household&, H h) { return dat_ep_disconnect(h[0], DAT_CLOSE_DEFAULT); }},
      {"dat_ep_post_send",
       {kConnectedEp},
       [](Household& home, H h) {
         DAT_LMR_TRIPLET segment = home.segment();
         return dat_ep_post_send(h[0], 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG);
       }},
      {"dat_ep_post_recv",
       {kConnectedEp},
       [](Household& home, H h) {
         DAT_LMR_TRIPLET segment = home.segment();
         return dat_ep_post_recv(h[0], 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG);
       }},
      {"dat_ep_post_rdma_read",
       {kConnectedEp},
       [](Household& home, H h) {
         DAT_LMR_TRIPLET segment = home.segment();
         const DAT_RMR_TRIPLET remote = home.remote_segment();
         return dat_ep_post_rdma_read(h[0], 1, &segment, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG);
       }},
      {"dat_ep_post_rdma_write",
       {kConnectedEp},
       [](Household& home, H h) {
         DAT_LMR_TRIPLET segment = home.segment();
         const DAT_RMR_TRIPLET remote = home.remote_segment();
         return dat_ep_post_rdma_write(h[0], 1, &segment, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG);
       }},
      {"dat_ep_get_status",
       {kEp},
       [](Household&, H h) {
         DAT_EP_STATE state{};
         return dat_ep_get_status(h[0], &state, nullptr, nullptr);
       }},
      {"dat_ep_free", {kEp}, simple(&dat_ep_free)},
      {"dat_ep_reset", {kEp}, simple(&dat_ep_reset)},
      {"dat_ep_recv_query",
       {kEp},
       [](Household&, H h) {
         DAT_COUNT allocated = 0;
         DAT_COUNT span = 0;
         return dat_ep_recv_query(h[0], &allocated, &span);
       }},
      {"dat_ep_set_watermark", {kEp}, [](Household&, H h) { return dat_ep_set_watermark(h[0], 5, 6); }},
      // ---- zones and memory
      {"dat_pz_create", {kIa}, [](Household&, H h) { return dat_pz_create(h[0], &made); }},
      {"dat_pz_query", {kPz}, query(&dat_pz_query, DAT_PZ_FIELD_ALL)},
      {"dat_pz_free", {kSparePz}, simple(&dat_pz_free)},
      {"dat_lmr_create virtual",
       {kIa, kPz},
       [](Household& home, H h) { return create_lmr(home, h, DAT_MEM_TYPE_VIRTUAL); }},
      {"dat_lmr_create lmr",
       {kIa, kPz, kLmr},
       [](Household& home, H h) { return create_lmr(home, h, DAT_MEM_TYPE_LMR); }},
      {"dat_lmr_create shared",
       {kIa, kPz},
       [](Household& home, H h) { return create_lmr(home, h, DAT_MEM_TYPE_SHARED_VIRTUAL); }},
      {"dat_lmr_query", {kLmr}, query(&dat_lmr_query, DAT_LMR_FIELD_ALL)},
      {"dat_lmr_free", {kLmr}, simple(&dat_lmr_free)},
      {"dat_lmr_sync_rdma_read",
       {kIa},
       [](Household& home, H h) {
         const DAT_LMR_TRIPLET segment = home.segment();
         return dat_lmr_sync_rdma_read(h[0], &segment, 1);
       }},
      {"dat_lmr_sync_rdma_write",
       {kIa},
       [](Household& home, H h) {
         const DAT_LMR_TRIPLET segment = home.segment();
         return dat_lmr_sync_rdma_write(h[0], &segment, 1);
       }},
      {"dat_rmr_create", {kPz}, [](Household&, H h) { return dat_rmr_create(h[0], &made); }},
      {"dat_rmr_query", {kRmr}, query(&dat_rmr_query, DAT_RMR_FIELD_ALL)},
      {"dat_rmr_bind",
       {kRmr, kConnectedEp},
       [](Household& home, H h) {
         const DAT_LMR_TRIPLET segment = home.segment();
         DAT_RMR_CONTEXT context = 0;
         return dat_rmr_bind(h[0], &segment, DAT_MEM_PRIV_REMOTE_READ_FLAG, h[1], {}, DAT_COMPLETION_DEFAULT_FLAG,
                             &context);
       }},
      {"dat_rmr_free", {kRmr}, simple(&dat_rmr_free)},
      // ---- service points and requests
      {"dat_psp_create",
       {kIa, kCrEvd},
       [](Household& home, H h) {
         return dat_psp_create(h[0], home.unused_qualifier, h[1], DAT_PSP_CONSUMER_FLAG, &made);
       }},
      {"dat_psp_create_any",
       {kIa, kCrEvd},
       [](Household&, H h) {
         DAT_CONN_QUAL qualifier = 0;
         return dat_psp_create_any(h[0], &qualifier, h[1], DAT_PSP_CONSUMER_FLAG, &made);
       }},
      {"dat_psp_query", {kPsp}, query(&dat_psp_query, DAT_PSP_FIELD_ALL)},
      {"dat_psp_free", {kPsp}, simple(&dat_psp_free)},
      {"dat_rsp_create",
       {kIa, kEpOrNull, kCrEvd},
       [](Household& home, H h) { return dat_rsp_create(h[0], home.unused_qualifier, h[1], h[2], &made); }},
      {"dat_rsp_query", {kRsp}, query(&dat_rsp_query, DAT_RSP_FIELD_ALL)},
      {"dat_rsp_free", {kRsp}, simple(&dat_rsp_free)},
      {"dat_cr_query", {kCr}, query(&dat_cr_query, DAT_CR_FIELD_ALL)},
      {"dat_cr_accept", {kCr, kEp}, [](Household&, H h) { return dat_cr_accept(h[0], h[1], 0, nullptr); }},
      {"dat_cr_reject", {kCr}, simple(&dat_cr_reject)},
      {"dat_cr_handoff", {kCr}, [](Household& home, H h) { return dat_cr_handoff(h[0], home.other_qualifier); }},
      // ---- shared receive queues
      {"dat_srq_create",
       {kIa, kPz},
       [](Household&, H h) {
         DAT_SRQ_ATTR attr{.max_recv_dtos = 4, .max_recv_iov = 1, .low_watermark = 0};
         return dat_srq_create(h[0], h[1], &attr, &made);
       }},
      {"dat_srq_free", {kSrq}, simple(&dat_srq_free)},
      {"dat_srq_post_recv",
       {kSrq},
       [](Household& home, H h) {
         DAT_LMR_TRIPLET segment = home.segment();
         return dat_srq_post_recv(h[0], 1, &segment, {});
       }},
      {"dat_srq_query", {kSrq}, query(&dat_srq_query, DAT_SRQ_FIELD_ALL)},
      {"dat_srq_resize", {kSrq}, [](Household&, H h) { return dat_srq_resize(h[0], 8); }},
      {"dat_srq_set_lw", {kSrq}, [](Household&, H h) { return dat_srq_set_lw(h[0], 1); }},
      // ---- our extension
      {"anydat_get_counters evd",
       {kEvd},
       [](Household&, H h) {
         DAT_COUNT count = 0;
         return anydat_get_counters(h[0], 0, nullptr, &count);
       }},
      {"anydat_evd_dequeue_many",
       {kEvd},
       [](Household& home, H h) {
         try_post(home.evd);
         DAT_EVENT event{};
         DAT_COUNT count = 0;
         return anydat_evd_dequeue_many(h[0], 1, &event, &count);
       }},
      {"anydat_srq_post_recvs",
       {kSrq},
       [](Household& home, H h) {
         DAT_LMR_TRIPLET segment = home.segment();
         const ANYDAT_SRQ_POST post{1, &segment, {}};
         DAT_COUNT posted = 0;
         return anydat_srq_post_recvs(h[0], 1, &post, &posted);
       }},
      {"anydat_ep_post_sends", {kConnectedEp}, post_many(&anydat_ep_post_sends)},
      {"anydat_ep_post_recvs", {kConnectedEp}, post_many(&anydat_ep_post_recvs)},
  };
}

}  // namespace

Handles ApiCall::good_handles(const Household& home) const {
  Handles result;
  for (const HandleArgument& argument : handles) {
    result.push_back(home.*argument.good);
  }
  return result;
}

const std::vector<ApiCall>& api_calls() {
  static const std::vector<ApiCall> all = [] {
    std::vector<ApiCall> calls = table();
    for (ApiCall& more : calls_of_version2()) calls.push_back(std::move(more));
    return calls;
  }();
  return all;
}

}  // namespace anydat::test
