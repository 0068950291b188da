// SPDX-License-Identifier: BSD-3-Clause
// The redirecting macros (REG-TBL-1): each calls its slot of the table that its handle leads to, with all
// arguments in order.
#include <dat/udat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "unit/abi_table.h"

namespace anydat::test {
namespace {

#define ABI_FACTS "unit/abi_facts.inc"
#include "unit/redirect_record.inc"

// Each macro with its slot and its arguments; `handle` is the one that leads to the table. DAT_SRQ_CREATE goes through
// its IA although the table of facts says srq: there it is a defect, since srq is what the call returns.
#define REDIRECTING_MACROS(X)                                                              \
  X(DAT_IA_QUERY, ia_query_func, (handle, a2, a3, a4, a5, a6))                             \
  X(DAT_SET_CONSUMER_CONTEXT, set_consumer_context_func, (handle, a2))                     \
  X(DAT_GET_CONSUMER_CONTEXT, get_consumer_context_func, (handle, a2))                     \
  X(DAT_GET_HANDLE_TYPE, get_handle_type_func, (handle, a2))                               \
  X(DAT_CR_QUERY, cr_query_func, (handle, a2, a3))                                         \
  X(DAT_CR_ACCEPT, cr_accept_func, (handle, a2, a3, a4))                                   \
  X(DAT_CR_REJECT, cr_reject_func, (handle))                                               \
  X(DAT_CR_HANDOFF, cr_handoff_func, (handle, a2))                                         \
  X(DAT_EVD_QUERY, evd_query_func, (handle, a2, a3))                                       \
  X(DAT_EVD_RESIZE, evd_resize_func, (handle, a2))                                         \
  X(DAT_EVD_POST_SE, evd_post_se_func, (handle, a2))                                       \
  X(DAT_EVD_DEQUEUE, evd_dequeue_func, (handle, a2))                                       \
  X(DAT_EVD_FREE, evd_free_func, (handle))                                                 \
  X(DAT_EP_CREATE, ep_create_func, (handle, a2, a3, a4, a5, a6, a7))                       \
  X(DAT_EP_CREATE_WITH_SRQ, ep_create_with_srq_func, (handle, a2, a3, a4, a5, a6, a7, a8)) \
  X(DAT_EP_QUERY, ep_query_func, (handle, a2, a3))                                         \
  X(DAT_EP_MODIFY, ep_modify_func, (handle, a2, a3))                                       \
  X(DAT_EP_CONNECT, ep_connect_func, (handle, a2, a3, a4, a5, a6, a7, a8))                 \
  X(DAT_EP_DUP_CONNECT, ep_dup_connect_func, (handle, a2, a3, a4, a5, a6))                 \
  X(DAT_EP_DISCONNECT, ep_disconnect_func, (handle, a2))                                   \
  X(DAT_EP_POST_SEND, ep_post_send_func, (handle, a2, a3, a4, a5))                         \
  X(DAT_EP_POST_RECV, ep_post_recv_func, (handle, a2, a3, a4, a5))                         \
  X(DAT_EP_POST_RDMA_READ, ep_post_rdma_read_func, (handle, a2, a3, a4, a5, a6))           \
  X(DAT_EP_POST_RDMA_WRITE, ep_post_rdma_write_func, (handle, a2, a3, a4, a5, a6))         \
  X(DAT_EP_GET_STATUS, ep_get_status_func, (handle, a2, a3, a4))                           \
  X(DAT_EP_FREE, ep_free_func, (handle))                                                   \
  X(DAT_EP_RESET, ep_reset_func, (handle))                                                 \
  X(DAT_EP_RECV_QUERY, ep_recv_query_func, (handle, a2, a3))                               \
  X(DAT_EP_SET_WATERMARK, ep_set_watermark_func, (handle, a2, a3))                         \
  X(DAT_LMR_QUERY, lmr_query_func, (handle, a2, a3))                                       \
  X(DAT_LMR_FREE, lmr_free_func, (handle))                                                 \
  X(DAT_LMR_SYNC_RDMA_READ, lmr_sync_rdma_read_func, (handle, a2, a3))                     \
  X(DAT_LMR_SYNC_RDMA_WRITE, lmr_sync_rdma_write_func, (handle, a2, a3))                   \
  X(DAT_RMR_CREATE, rmr_create_func, (handle, a2))                                         \
  X(DAT_RMR_QUERY, rmr_query_func, (handle, a2, a3))                                       \
  X(DAT_RMR_BIND, rmr_bind_func, (handle, a2, a3, a4, a5, a6, a7))                         \
  X(DAT_RMR_FREE, rmr_free_func, (handle))                                                 \
  X(DAT_PSP_CREATE, psp_create_func, (handle, a2, a3, a4, a5))                             \
  X(DAT_PSP_CREATE_ANY, psp_create_any_func, (handle, a2, a3, a4, a5))                     \
  X(DAT_PSP_QUERY, psp_query_func, (handle, a2, a3))                                       \
  X(DAT_PSP_FREE, psp_free_func, (handle))                                                 \
  X(DAT_RSP_CREATE, rsp_create_func, (handle, a2, a3, a4, a5))                             \
  X(DAT_RSP_QUERY, rsp_query_func, (handle, a2, a3))                                       \
  X(DAT_RSP_FREE, rsp_free_func, (handle))                                                 \
  X(DAT_PZ_CREATE, pz_create_func, (handle, a2))                                           \
  X(DAT_PZ_QUERY, pz_query_func, (handle, a2, a3))                                         \
  X(DAT_PZ_FREE, pz_free_func, (handle))                                                   \
  X(DAT_SRQ_CREATE, srq_create_func, (handle, a2, a3, a4))                                 \
  X(DAT_SRQ_SET_LW, srq_set_lw_func, (handle, a2))                                         \
  X(DAT_SRQ_FREE, srq_free_func, (handle))                                                 \
  X(DAT_SRQ_QUERY, srq_query_func, (handle, a2, a3))                                       \
  X(DAT_SRQ_RESIZE, srq_resize_func, (handle, a2))                                         \
  X(DAT_SRQ_POST_RECV, srq_post_recv_func, (handle, a2, a3, a4))                           \
  X(DAT_LMR_CREATE, lmr_create_func, (handle, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11))   \
  X(DAT_EVD_CREATE, evd_create_func, (handle, a2, a3, a4, a5))                             \
  X(DAT_EVD_ENABLE, evd_enable_func, (handle))                                             \
  X(DAT_EVD_WAIT, evd_wait_func, (handle, a2, a3, a4, a5))                                 \
  X(DAT_EVD_DISABLE, evd_disable_func, (handle))                                           \
  X(DAT_EVD_SET_UNWAITABLE, evd_set_unwaitable_func, (handle))                             \
  X(DAT_EVD_CLEAR_UNWAITABLE, evd_clear_unwaitable_func, (handle))                         \
  X(DAT_EVD_MODIFY_CNO, evd_modify_cno_func, (handle, a2))                                 \
  X(DAT_CNO_CREATE, cno_create_func, (handle, a2, a3))                                     \
  X(DAT_CNO_MODIFY_AGENT, cno_modify_agent_func, (handle, a2))                             \
  X(DAT_CNO_QUERY, cno_query_func, (handle, a2, a3))                                       \
  X(DAT_CNO_FREE, cno_free_func, (handle))                                                 \
  X(DAT_CNO_WAIT, cno_wait_func, (handle, a2, a3))

// The names are passed on as they are, or the preprocessor would take a macro of that name for a call.
TEST(RedirectingMacros, EachCallsItsSlotWithItsArguments) {
  DAT_PROVIDER table = recording_table();
  DAT_PROVIDER* object = &table;
  const DAT_HANDLE handle = &object;
#define CHECK_MACRO(macro, slot, arguments)                                \
  {                                                                        \
    const DAT_RETURN direct_return = table.slot arguments;                 \
    const Call direct = last_call;                                         \
    last_call = {};                                                        \
    EXPECT_EQ(macro arguments, direct_return) << #macro;                   \
    EXPECT_EQ(last_call, direct) << #macro;                                \
    EXPECT_EQ(direct.slot_offset, offsetof(DAT_PROVIDER, slot)) << #macro; \
  }
  REDIRECTING_MACROS(CHECK_MACRO)
}

TEST(RedirectingMacros, AllOfTheTableAreThere) {
  std::vector<std::string> expected;
  for (const AbiRow& row : abi_rows("func")) {
    if (row[2] == "redirect") expected.push_back(row[1] + " " + row[3]);
  }
#define NAME_AND_SLOT(macro, slot, arguments) #macro " " #slot,
  const std::vector<std::string> tested{REDIRECTING_MACROS(NAME_AND_SLOT)};
  EXPECT_THAT(tested, testing::ElementsAreArray(expected));
}

TEST(RedirectingMacros, SrqCreateLooksAtTheIaAndNotAtItsResult) {
  DAT_PROVIDER table = recording_table();
  DAT_PROVIDER* ia = &table;
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
  DAT_SRQ_ATTR attributes{};
  EXPECT_EQ(DAT_SRQ_CREATE(&ia, DAT_HANDLE_NULL, &attributes, &srq), offsetof(DAT_PROVIDER, srq_create_func));
}

}  // namespace
}  // namespace anydat::test
