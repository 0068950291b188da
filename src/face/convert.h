// SPDX-License-Identifier: BSD-3-Clause
// Attributes and the answers to queries, between the objects' values and the C structures of a version.
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
void fill(const dapl::Description& from, DAT_IA_ATTR& to);
void fill(const dapl::ProviderAttributes& from, DAT_PROVIDER_ATTR& to);

// The two structures of dat_ia_query; where the mask of the first stands in the call.
struct IaQuery {
  DAT_IA_ATTR_MASK attr_mask;
  DAT_IA_ATTR* attr;
  DAT_PROVIDER_ATTR_MASK provider_mask;
  DAT_PROVIDER_ATTR* provider;
  unsigned place;

  dapl::Error check(const char* call, const dapl::Habit& unknown_bits) const;
  void answer(const dapl::Description& from) const;  // Requires: checked
};

// A query of an object of that instance: checks the mask and the structure, then fills all of it, whatever the mask.
template <typename Param, typename Query>
dapl::Error answer(const char* call, const dapl::Ia& ia, std::uint64_t mask, std::uint64_t all, Param* param,
                   Query query) {
  if (const dapl::Error error = check_query(call, mask, all, param, ia.habits().unknown_mask_bits)) return error;
  fill(query(), *param);
  return dapl::kSuccess;
}

}  // namespace anydat::face
