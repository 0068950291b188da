// SPDX-License-Identifier: BSD-3-Clause
// Attributes and the answers to queries of objects, between the objects' values and the C structures of a version
// (an instance's are in face/ia_query.h).
#pragma once

#include "dapl/attributes.h"
#include "dapl/ia.h"
#include "face/objects.h"
#include "face/versions.h"

namespace anydat::face {

constexpr DAT_BOOLEAN to_dat(bool value) {
  return value ? DAT_TRUE : DAT_FALSE;
}

inline dapl::Agent from_dat(const DAT_OS_WAIT_PROXY_AGENT& agent) {
  return {agent.instance_data, agent.proxy_agent_func};
}
dapl::EpAttributes from_dat(const DAT_EP_ATTR& attr);
dapl::EpParameters from_dat(const DAT_EP_PARAM& param);
// Of the union only the member that the type names is read.
dapl::MemoryDescription from_dat(dapl::MemoryType type, const DAT_REGION_DESCRIPTION& description);

void fill(const dapl::EpAttributes& from, DAT_EP_ATTR& to);
void fill(const dapl::EpParameters& from, DAT_EP_PARAM& to);
void fill(const dapl::EvdParameters& from, DAT_EVD_PARAM& to);
void fill(const dapl::CnoParameters& from, DAT_CNO_PARAM& to);
void fill(const dapl::CrParameters& from, DAT_CR_PARAM& to);
void fill(const dapl::PspParameters& from, DAT_PSP_PARAM& to);
void fill(const dapl::RspParameters& from, DAT_RSP_PARAM& to);
void fill(const dapl::LmrParameters& from, DAT_LMR_PARAM& to);
void fill(const dapl::RmrParameters& from, DAT_RMR_PARAM& to);
void fill(const dapl::SrqParameters& from, DAT_SRQ_PARAM& to);

// A query of an object of that instance: checks the mask and the structure, then fills all of it, whatever the mask.
template <typename Param, typename Query>
dapl::Error answer(const char* call, const dapl::Ia& ia, std::uint64_t mask, std::uint64_t all, Param* param,
                   Query query) {
  if (const dapl::Error error = check_query(call, mask, all, param, ia.habits().unknown_mask_bits)) return error;
  fill(query(), *param);
  return dapl::kSuccess;
}

}  // namespace anydat::face
