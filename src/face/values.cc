// SPDX-License-Identifier: BSD-3-Clause
// That what the faces cast has the same number on both sides.
#include "dapl/attributes.h"
#include "face/dat.h"

namespace anydat::face {

static_assert(static_cast<int>(dapl::HandleType::ia) == DAT_HANDLE_TYPE_IA);
static_assert(static_cast<int>(dapl::HandleType::rmr) == DAT_HANDLE_TYPE_RMR);
static_assert(static_cast<int>(dapl::HandleType::cno) == DAT_HANDLE_TYPE_CNO);
static_assert(static_cast<int>(dapl::HandleType::srq) == DAT_HANDLE_TYPE_SRQ);

static_assert(static_cast<int>(dapl::EpState::reserved) == DAT_EP_STATE_RESERVED);
static_assert(static_cast<int>(dapl::EpState::connected) == DAT_EP_STATE_CONNECTED);
static_assert(static_cast<int>(dapl::EpState::completion_pending) == DAT_EP_STATE_COMPLETION_PENDING);

static_assert(static_cast<int>(dapl::CloseFlags::abrupt) == DAT_CLOSE_ABRUPT_FLAG);
static_assert(static_cast<int>(dapl::CloseFlags::graceful) == DAT_CLOSE_GRACEFUL_FLAG);
static_assert(static_cast<int>(dapl::PspFlags::provider) == DAT_PSP_PROVIDER_FLAG);
static_assert(static_cast<int>(dapl::MemoryType::lmr) == DAT_MEM_TYPE_LMR);
static_assert(static_cast<int>(dapl::MemoryType::shared_virtual) == DAT_MEM_TYPE_SHARED_VIRTUAL);

static_assert(unsigned{dapl::completion::kSuppress} == DAT_COMPLETION_SUPPRESS_FLAG);
static_assert(unsigned{dapl::completion::kSolicitedWait} == DAT_COMPLETION_SOLICITED_WAIT_FLAG);
static_assert(unsigned{dapl::completion::kUnsignalled} == DAT_COMPLETION_UNSIGNALLED_FLAG);
static_assert(unsigned{dapl::completion::kBarrierFence} == DAT_COMPLETION_BARRIER_FENCE_FLAG);
static_assert(unsigned{dapl::completion::kEvdThreshold} == DAT_COMPLETION_EVD_THRESHOLD_FLAG);

static_assert(unsigned{dapl::evd_flag::kSoftware} == DAT_EVD_SOFTWARE_FLAG);
static_assert(unsigned{dapl::evd_flag::kConnectionRequest} == DAT_EVD_CR_FLAG);
static_assert(unsigned{dapl::evd_flag::kDto} == DAT_EVD_DTO_FLAG);
static_assert(unsigned{dapl::evd_flag::kConnection} == DAT_EVD_CONNECTION_FLAG);
static_assert(unsigned{dapl::evd_flag::kRmrBind} == DAT_EVD_RMR_BIND_FLAG);
static_assert(unsigned{dapl::evd_flag::kAsync} == DAT_EVD_ASYNC_FLAG);
static_assert(unsigned{dapl::evd_state::kEnabled} == DAT_EVD_STATE_ENABLED);
static_assert(unsigned{dapl::evd_state::kUnwaitable} == DAT_EVD_STATE_UNWAITABLE);
static_assert(unsigned{dapl::evd_state::kConfigThreshold} == DAT_EVD_STATE_CONFIG_THRESHOLD);

static_assert(unsigned{nic::access::kLocalRead} == DAT_MEM_PRIV_LOCAL_READ_FLAG);
static_assert(unsigned{nic::access::kRemoteRead} == DAT_MEM_PRIV_REMOTE_READ_FLAG);
static_assert(unsigned{nic::access::kLocalWrite} == DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
static_assert(unsigned{nic::access::kRemoteWrite} == DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
static_assert(unsigned{dapl::kAllPrivileges} == DAT_MEM_PRIV_ALL_FLAG);

static_assert(unsigned{dapl::kMultipath} == DAT_CONNECT_MULTIPATH_FLAG);
static_assert(dapl::kInfinite == DAT_TIMEOUT_INFINITE);
static_assert(dapl::kNoWatermark == DAT_WATERMARK_INFINITE);
static_assert(dapl::kUnknownCount == DAT_VALUE_UNKNOWN);
static_assert(dapl::kSharedMemoryIdBytes == DAT_LMR_COOKIE_SIZE);

static_assert(dapl::ep_field::kServiceType == DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE);
static_assert(dapl::ep_field::kMaxRecvDtos == DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS);
static_assert(dapl::ep_field::kSrqSoftHw == DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW);
static_assert(dapl::ep_field::kProviderAttributes == DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR);
static_assert(dapl::ep_field::kAttributes == DAT_EP_FIELD_EP_ATTR_ALL);

}  // namespace anydat::face
