// SPDX-License-Identifier: BSD-3-Clause
// The exported calls of <anydat/anydat.h>.
#include <anydat/anydat.h>

#include <algorithm>
#include <vector>

#include "api/handles.h"
#include "base/env.h"
#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/srq.h"

namespace anydat {

namespace {

using Rows = std::vector<ANYDAT_COUNTER>;

Rows rows_of(const dapl::Ia& ia) {
  const nic::Engine::Counters& c = ia.engine().counters();
  return {{"polls", c.polls.get()}, {"sleeps", c.sleeps.get()}};
}

Rows rows_of(const dapl::Ep& ep) {
  const nic::QueuePair::Counters& c = ep.queue_pair().counters();
  return {{"sends", c.sends.get()},
          {"send_bytes", c.send_bytes.get()},
          {"receives", c.receives.get()},
          {"receive_bytes", c.receive_bytes.get()},
          {"buffer_waits", c.buffer_waits.get()},
          {"buffer_wait_ns", c.buffer_wait_ns.get()},
          {"soft_watermark_events", c.soft_watermark_events.get()}};
}

Rows rows_of(const dapl::Evd& evd) {
  const dapl::Evd::Counters& c = evd.counters();
  return {{"events", c.events.get()},
          {"most_queued", c.most_queued.get()},
          {"overflows", c.overflows.get()},
          {"blocking_waits", c.waits.get()}};
}

Rows rows_of(const dapl::Srq& srq) {
  const nic::ReceiveQueue::Counters& c = srq.queue().counters();
  const nic::ReceiveQueue::Counts now = srq.queue().counts();
  return {{"posted", c.posted.get()},
          {"taken", c.taken.get()},
          {"reaped", c.posted.get() - now.outstanding},
          {"lowest_available", c.lowest_available.get()},
          {"times_empty", c.times_empty.get()},
          {"empty_ns", c.empty_ns.get()},
          {"low_watermark_events", c.low_watermark_events.get()}};
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) DAT_RETURN anydat_get_counters(DAT_HANDLE object, DAT_COUNT max,
                                                                      ANYDAT_COUNTER* counters, DAT_COUNT* count) {
  const char* call = "anydat_get_counters";
  Rows rows;
  if (const auto* ia = dapl::lookup<dapl::Ia>(object)) {
    rows = rows_of(*ia);
  } else if (const auto* ep = dapl::lookup<dapl::Ep>(object)) {
    rows = rows_of(*ep);
  } else if (const auto* evd = dapl::lookup<dapl::Evd>(object)) {
    rows = rows_of(*evd);
  } else if (const auto* srq = dapl::lookup<dapl::Srq>(object)) {
    rows = rows_of(*srq);
  } else {
    return api::bad_handle(call, "object", object, DAT_NO_SUBTYPE);
  }
  if (!count) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, "{}: count is NULL", call);
  if (max < 0) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: max is {}", call, max);
  if (max > 0 && !counters) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "{}: counters is NULL", call);
  *count = static_cast<DAT_COUNT>(rows.size());
  std::copy_n(rows.begin(), std::min<std::size_t>(rows.size(), static_cast<std::size_t>(max)), counters);
  return DAT_SUCCESS;
}

__attribute__((visibility("default"))) DAT_RETURN anydat_get_environment(DAT_COUNT max, ANYDAT_VARIABLE* variables,
                                                                         DAT_COUNT* count) {
  const char* call = "anydat_get_environment";
  if (!count) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "{}: count is NULL", call);
  if (max < 0) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, "{}: max is {}", call, max);
  if (max > 0 && !variables) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: variables is NULL", call);
  const std::span<const base::EnvEntry> table = base::env_table();
  *count = static_cast<DAT_COUNT>(table.size());
  for (const base::EnvEntry& row : table.first(std::min(table.size(), static_cast<std::size_t>(max)))) {
    *variables++ = {row.name, row.values, row.default_value, row.meaning, base::env_text(row.var).data()};
  }
  return DAT_SUCCESS;
}

__attribute__((visibility("default"))) const char* anydat_last_error(void) {
  return dapl::last_error();
}

}  // extern "C"

}  // namespace anydat
