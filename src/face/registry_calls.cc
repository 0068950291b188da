// SPDX-License-Identifier: BSD-3-Clause
// The exported calls that go to the registry before, or instead of, a Provider.
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "dapl/handle_table.h"
#include "dapl/ia.h"
#include "face/calls.h"
#include "face/own_provider.h"
#include "os/cancel.h"
#include "registry/foreign_call.h"
#include "registry/registry.h"

#if ANYDAT_FACE == 20
#include "face20/query_arguments.h"
#endif

namespace anydat {

namespace {

using registry::ForeignCall;
using registry::Registry;
using registry::Tuple;

// What every call of the registry has around it: it is refused when the library's end has come (REG-LIST-17), and no
// exception gets out.
template <typename Function>
DAT_RETURN registry_call(const char* name, Function function) {
  if (registry::finalised()) {
    return dapl::fail(DAT_INVALID_STATE, DAT_NO_SUBTYPE, "{}: the library has been finalised", name);
  }
  const os::CancelOff off;
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return dapl::fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "{}: no memory", name);
  }
}

DAT_RETURN open_ia(const DAT_NAME_PTR name, DAT_COUNT async_min_qlen, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia,
                   DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safety) {
  if (ia) *ia = DAT_HANDLE_NULL;  // IA-OPEN-26
  if (!name || strnlen(name, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH) {
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, "dat_ia_open: the name is NULL or has no end");
  }
  if (!async_evd) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "dat_ia_open: async_evd_handle is NULL");
  if (!ia) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, "dat_ia_open: ia_handle is NULL");

  Registry& registry = Registry::instance();
  Registry::Use use;
  if (const DAT_RETURN rc = registry.acquire({name, major, minor, thread_safety}, use)) return rc;
  if (use.built_in()) return face::open_builtin(use.tuple(), async_min_qlen, async_evd, ia);

  std::string registered_name = use.tuple().name;
  const DAT_EVD_HANDLE async_before = *async_evd;
  DAT_RETURN rc = registry::noted(
      "dat_ia_open", [&] { return use.open_function()(registered_name.data(), async_min_qlen, async_evd, ia); });
  if (rc == DAT_SUCCESS && *ia == DAT_HANDLE_NULL) {
    rc = dapl::fail(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE, "dat_ia_open: {}: its Provider has returned no handle",
                    registered_name);
  }
  if (rc != DAT_SUCCESS) {
    *async_evd = async_before;  // IA-OPEN-26, whatever the Provider did
    *ia = DAT_HANDLE_NULL;
    return rc;
  }
  try {
    registry.opened(std::move(use), *ia, dapl::HandleTable::owns(*ia));
  } catch (const std::bad_alloc&) {
    use.table().provider->ia_close_func(*ia, DAT_CLOSE_ABRUPT_FLAG);
    *async_evd = async_before;
    *ia = DAT_HANDLE_NULL;
    throw;
  }
  return rc;
}

DAT_RETURN close_ia(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags) {
  Registry& registry = Registry::instance();
  const std::uint64_t number = registry.begin_close(ia);
  DAT_RETURN rc = DAT_SUCCESS;
  if (const ForeignCall foreign(ia, ForeignCall::Subject::destroyed_ia); foreign) {
    rc = registry::noted("dat_ia_close", [&] { return foreign(&DAT_PROVIDER::ia_close_func, ia, flags); });
  } else {
    rc = face::Edge<face::ia_close_call>::call(ia, flags);
  }
  if (rc == DAT_SUCCESS) registry.end_close(ia, number);
  return rc;
}

#if ANYDAT_FACE == 20
// D2-HA-2 to D2-HA-4.
DAT_RETURN providers_related(const DAT_NAME_PTR name, const DAT_NAME_PTR other, DAT_HA_RELATIONSHIP* relationship) {
  const char* call = "dat_registry_providers_related";
  const auto has_no_end = [](const char* text) {
    return !text || strnlen(text, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH;
  };
  if (has_no_end(name))
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, "{}: ia_name is NULL or has no end", call);
  if (has_no_end(other)) {
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "{}: other_ia_name is NULL or has no end", call);
  }
  if (!relationship) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "{}: relationship is NULL", call);
  Registry& registry = Registry::instance();
  for (const char* each : {name, other}) {
    const std::optional<bool> known = registry.knows(each);
    if (!known) {
      return dapl::fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY,
                        "{}: no memory or descriptor to ask for the devices of this host with", call);
    }
    if (!*known) {
      return dapl::fail(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED, "{}: no adapter has the name {}", call, each);
    }
  }
  // What the one's Provider says of the other, and the other's of the one.
  std::optional<bool> answers[2];
  bool both_ours = true;
  for (const int i : {0, 1}) {
    char* const mine = i == 0 ? name : other;
    char* const theirs = i == 0 ? other : name;
    if (registry.is_built_in(mine)) continue;
    both_ours = false;
    const DAT_IA_HANDLE ia = registry.open_instance(mine);
    if (!ia) continue;
    if (dapl::HandleTable::owns(ia)) {
      answers[i] = false;
      continue;
    }
    const ForeignCall foreign(ia, ForeignCall::Subject::ia);
    DAT_BOOLEAN related = DAT_FALSE;
    if (foreign && foreign(&DAT_PROVIDER::ia_ha_related_func, ia, theirs, &related) == DAT_SUCCESS) {
      answers[i] = related != DAT_FALSE;
    }
  }
  if (both_ours) {
    *relationship = DAT_HA_FALSE;
  } else if (answers[0] && answers[1] && *answers[0] != *answers[1]) {
    *relationship = DAT_HA_CONFLICTING;
  } else if (answers[0] || answers[1]) {
    *relationship = answers[0].value_or(false) || answers[1].value_or(false) ? DAT_HA_TRUE : DAT_HA_FALSE;
  } else {
    *relationship = DAT_HA_UNKNOWN;
  }
  return DAT_SUCCESS;
}

// D2-QUERY-1, D2-QUERY-2.
DAT_RETURN open_query(va_list arguments) {
  va_list whole;  // for a Provider that reads them itself
  va_copy(whole, arguments);
  const auto end = [&whole](DAT_RETURN rc) {
    va_end(whole);
    return rc;
  };
  const face::QueryArguments query(arguments);
  if (const dapl::Error error = query.check()) return end(face::to_dat(error, ""));
  Registry& registry = Registry::instance();
  Registry::Use use;
  const Tuple wanted{query.name(), DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_THREADSAFE};
  if (const DAT_RETURN rc = registry.acquire(wanted, use)) return end(rc);
  if (use.built_in()) {
    const dapl::Error error = query.open([&](DAT_HANDLE* made) { return face::query_builtin(use.tuple(), made); });
    return end(face::to_dat(error, ""));
  }
  const auto slot = &DAT_PROVIDER::handle_extendedop_func;
  const auto refuse = [&](DAT_RETURN code, const char* why) {
    return end(dapl::fail(code, DAT_NO_SUBTYPE, "dat_ib_open_query: {}: its Provider {}", use.tuple().name, why));
  };
  if (!use.table().has(slot)) return refuse(DAT_MODEL_NOT_SUPPORTED, "has no extension");
  const DAT_RETURN rc = registry::noted("dat_ib_open_query", [&] {
    return (use.table().provider->*slot)(DAT_HANDLE_NULL, DAT_OPEN_EXTENSION_BASE, whole);
  });
  if (rc == DAT_SUCCESS && *query.handle() == DAT_HANDLE_NULL) {
    return refuse(DAT_INTERNAL_ERROR, "has returned no handle");
  }
  if (rc != DAT_SUCCESS) return end(rc);
  try {
    registry.opened(std::move(use), *query.handle(), dapl::HandleTable::owns(*query.handle()));
  } catch (const std::bad_alloc&) {
    *query.handle() = DAT_HANDLE_NULL;
    va_end(whole);
    throw;
  }
  return end(rc);
}

// D2-QUERY-4.
DAT_RETURN close_query(DAT_HANDLE query, va_list arguments) {
  constexpr DAT_EXTENDED_OP kOperation = DAT_CLOSE_EXTENSION_BASE;
  Registry& registry = Registry::instance();
  const std::uint64_t number = registry.begin_close(query);
  DAT_RETURN rc = DAT_SUCCESS;
  if (const ForeignCall foreign(query, ForeignCall::Subject::destroyed_ia); foreign) {
    rc = registry::noted("dat_extension_op",
                         [&] { return foreign(&DAT_PROVIDER::handle_extendedop_func, query, kOperation, arguments); });
  } else {
    rc = face::Edge<face::handle_extendedop_call>::call(query, kOperation, arguments);
  }
  if (rc == DAT_SUCCESS) registry.end_close(query, number);
  return rc;
}
#endif

}  // namespace

#if ANYDAT_FACE == 20
DAT_RETURN face::query_operation(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list arguments) {
  return registry_call("dat_extension_op", [&] {
    const DAT_RETURN rc = operation == DAT_OPEN_EXTENSION_BASE ? open_query(arguments) : close_query(handle, arguments);
    Registry::instance().sweep();
    return rc;
  });
}
#endif

}  // namespace anydat

using anydat::registry_call;
using anydat::registry::Registry;

extern "C" {

DAT_RETURN dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT async_min_qlen, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia,
                        DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safety) {
  return registry_call("dat_ia_open", [&] {
    const DAT_RETURN rc = anydat::open_ia(name, async_min_qlen, async_evd, ia, major, minor, thread_safety);
    Registry::instance().sweep();
    return rc;
  });
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags) {
  return registry_call("dat_ia_close", [&] {
    const DAT_RETURN rc = anydat::close_ia(ia, flags);
    Registry::instance().sweep();
    return rc;
  });
}

DAT_RETURN dat_registry_list_providers(DAT_COUNT max, DAT_COUNT* count, DAT_PROVIDER_INFO* list[]) {
  return registry_call("dat_registry_list_providers", [&] { return Registry::instance().list(max, count, list); });
}

DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info) {
  return registry_call("dat_registry_add_provider", [&] { return Registry::instance().add(provider, info); });
}

DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info) {
  return registry_call("dat_registry_remove_provider", [&] { return Registry::instance().remove(provider, info); });
}

#if ANYDAT_FACE == 12
// Programs hold the provider's own IA handle (ruling A7), so there is nothing to translate.
__attribute__((visibility("default"))) DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE* ia);
DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE* ia) {
  if (!ia) {
    return anydat::dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dats_get_ia_handle: ia_handle is NULL");
  }
  *ia = reinterpret_cast<DAT_IA_HANDLE>(handle);
  return DAT_SUCCESS;
}
#else
// D2-TBL-3: programs hold the Provider's own IA handle, so there is nothing to translate.
__attribute__((visibility("default"))) DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* ia);
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* ia) {
  if (!ia) {
    return anydat::dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
                              "dats_get_ia_handle: the second ia_handle is NULL");
  }
  return registry_call("dats_get_ia_handle", [&] {
    if (!anydat::dapl::lookup<anydat::dapl::Ia>(handle) && !Registry::instance().foreign_instance(handle)) {
      return anydat::dapl::fail(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA, "dats_get_ia_handle: {} is no live IA",
                                handle);
    }
    *ia = handle;
    return DAT_RETURN{DAT_SUCCESS};
  });
}

DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR ia_name, const DAT_NAME_PTR other_ia_name,
                                          DAT_HA_RELATIONSHIP* relationship) {
  return registry_call("dat_registry_providers_related",
                       [&] { return anydat::providers_related(ia_name, other_ia_name, relationship); });
}
#endif

}  // extern "C"
