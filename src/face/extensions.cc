// SPDX-License-Identifier: BSD-3-Clause
// The exported calls of <anydat/anydat.h>.
#include "face/dat.h"
// Needs the types of the version.
#include <anydat/anydat.h>

#include <algorithm>
#include <new>

#include "dapl/counters.h"
#include "dapl/ep.h"
#include "dapl/evd.h"
#include "dapl/srq.h"
#include "env/environment.h"
#include "face/edge.h"
#include "face/objects.h"
#include "os/cancel.h"
#include "os/shareable.h"

namespace anydat {

namespace {

// The object behind a handle of a type that has counters, or null.
const dapl::Object* counted(DAT_HANDLE handle) {
  if (const auto* ia = dapl::lookup<dapl::Ia>(handle)) return ia;
  if (const auto* ep = dapl::lookup<dapl::Ep>(handle)) return ep;
  if (const auto* evd = dapl::lookup<dapl::Evd>(handle)) return evd;
  return dapl::lookup<dapl::Srq>(handle);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) DAT_RETURN anydat_get_counters(DAT_HANDLE object, DAT_COUNT max,
                                                                      ANYDAT_COUNTER* counters, DAT_COUNT* count) {
  const char* call = "anydat_get_counters";
  const dapl::Object* found = counted(object);
  if (!found) return face::to_dat(face::bad_handle(call, "object", object, dapl::Detail::none), "");
  if (!count) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, "{}: count is NULL", call);
  if (max < 0) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: max is {}", call, max);
  if (max > 0 && !counters) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "{}: counters is NULL", call);
  const dapl::Counters all = dapl::Counters::of(*found);
  *count = static_cast<DAT_COUNT>(all.rows().size());
  for (const dapl::Counter& row : all.rows().first(std::min(all.rows().size(), static_cast<std::size_t>(max)))) {
    *counters++ = {row.name, row.value};
  }
  return DAT_SUCCESS;
}

__attribute__((visibility("default"))) DAT_RETURN anydat_get_environment(DAT_COUNT max, ANYDAT_VARIABLE* variables,
                                                                         DAT_COUNT* count) {
  const char* call = "anydat_get_environment";
  if (!count) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "{}: count is NULL", call);
  if (max < 0) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, "{}: max is {}", call, max);
  if (max > 0 && !variables) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: variables is NULL", call);
  const std::span<const env::Entry> table = env::table();
  *count = static_cast<DAT_COUNT>(table.size());
  for (const env::Entry& row : table.first(std::min(table.size(), static_cast<std::size_t>(max)))) {
    const char* const unset = row.var == env::Variable::compat ? face::kDefaultCompat : row.default_value;
    *variables++ = {row.name, row.values, unset, row.meaning, env::text(row.var).data()};
  }
  return DAT_SUCCESS;
}

__attribute__((visibility("default"))) DAT_RETURN anydat_alloc_shareable(DAT_VLEN size, void** address) {
  const char* call = "anydat_alloc_shareable";
  if (size == 0) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, "{}: size is 0", call);
  if (!address) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: address is NULL", call);
  const os::CancelOff off;
  void* memory = nullptr;
  try {
    memory = os::allocate_shareable(size);
  } catch (const std::bad_alloc&) {
  }
  if (!memory) {
    return dapl::fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "{}: no memory or descriptor for {} bytes", call,
                      size);
  }
  *address = memory;
  return DAT_SUCCESS;
}

__attribute__((visibility("default"))) DAT_RETURN anydat_free_shareable(void* address) {
  const os::CancelOff off;
  if (os::free_shareable(address)) return DAT_SUCCESS;
  return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1,
                    "anydat_free_shareable: {} is not what anydat_alloc_shareable gave", address);
}

__attribute__((visibility("default"))) DAT_RETURN anydat_ep_wire(DAT_EP_HANDLE ep, const char** wire) {
  const char* call = "anydat_ep_wire";
  const auto* found = dapl::lookup<dapl::Ep>(ep);
  if (!found) return face::to_dat(face::bad_handle(call, "ep", ep, dapl::Detail::handle_ep), "");
  if (!wire) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: wire is NULL", call);
  const char* name = found->wire();
  if (!name) return face::to_dat(found->state_machine().wrong_state(call), "");
  *wire = name;
  return DAT_SUCCESS;
}

__attribute__((visibility("default"))) const char* anydat_last_error(void) {
  return dapl::last_error();
}

}  // extern "C"

}  // namespace anydat
