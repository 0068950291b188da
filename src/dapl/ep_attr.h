// SPDX-License-Identifier: BSD-3-Clause
// Endpoint attributes: defaults, limits and combinations, apart from any endpoint.
#pragma once

#include "dapl/attributes.h"
#include "dapl/evd.h"
#include "dapl/habits.h"
#include "nic/adapter.h"

namespace anydat::dapl {

struct Limits;

// EP-DEF-1. `recv` and `request`: whether the endpoint has an EVD for that direction.
EpAttributes default_attributes(const Limits& limits, bool recv, bool request);

// What the values are checked against (EP-CREATE-13 to 18, EP-CREATE-27).
struct AttributeContext {
  const char* call;
  Argument argument;  // by which the call is given them
  const Limits& limits;
  std::uint32_t qos_supported;
  bool has_recv_evd;
  bool has_request_evd;
  bool shared;              // an endpoint on an SRQ: EP-CSRQ-12 to 18 and 28
  Habit any_max_recv_dtos;  // of an endpoint on an SRQ
};
Error check_attributes(const AttributeContext& context, const EpAttributes& attr);

StreamCounts::Model recv_model(CompletionFlags flags);
StreamCounts::Model request_model(CompletionFlags flags);

nic::QueuePairLimits queue_pair_limits(const EpAttributes& attr, bool shared);

}  // namespace anydat::dapl
