// SPDX-License-Identifier: BSD-3-Clause
#include "face/own_provider.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <list>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "dapl/ia.h"
#include "dapl/open_query.h"
#include "env/environment.h"
#include "env/log.h"
#include "face/calls.h"
#include "face/habits.h"
#include "face/versions.h"
#include "os/fork.h"
#include "os/lock.h"
#include "registry/builtin.h"

namespace anydat::face {

namespace {

using registry::Tuple;

// A name we are opened by. Its table is what the handles of its instances point to, so none is ever freed; there are no
// more than names in a dat.conf and devices in a host.
struct OwnName {
  Tuple tuple;
  std::string adapter;  // with the lock; what the name stood for when it was last registered
  DAT_PROVIDER table;
};

struct OwnNames {
  os::Mutex lock;
  std::list<OwnName> list ANYDAT_GUARDED_BY(lock);
};
constinit os::PerProcess<OwnNames> own_names;

// What is opened by that name, or asked about; by then a mistake in the environment may matter.
dapl::AdapterKind kind_to_open(const OwnName& name, const std::string& adapter) {
  env::warn_of_environment(kDefaultCompat);
  return {&name.table,
          &registry::open_builtin,
          &registry::ask_builtin,
          adapter,
          name.tuple.minor,
          name.tuple.thread_safe != DAT_FALSE,
          habits(),
          kExtended};
}

DAT_RETURN open_adapter(const OwnName& name, const std::string& adapter, DAT_COUNT async_min_qlen,
                        DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia) {
  const dapl::Error error =
      dapl::Ia::open(kind_to_open(name, adapter), name.tuple.name.c_str(), async_min_qlen, async_evd, ia);
  return to_dat(error, "(ia_name_ptr, async_evd_min_qlen, async_evd_handle, ia_handle)");
}

OwnName* find_name_locked(OwnNames& names, const Tuple& tuple) ANYDAT_REQUIRES(names.lock) {
  const auto found =
      std::find_if(names.list.begin(), names.list.end(), [&](const OwnName& n) { return n.tuple == tuple; });
  return found != names.list.end() ? &*found : nullptr;
}

OwnName* find_name(const Tuple& tuple) {
  OwnNames& names = *own_names;
  os::Guard guard(names.lock);
  return find_name_locked(names, tuple);
}

std::string adapter_of(const OwnName& name) {
  os::Guard guard(own_names->lock);
  return name.adapter;
}

// What stands in ia_open_func. The function is given only the name, but the instance must report the version and the
// thread safety it was registered with (PRV-ATTR-5, PRV-ATTR-6), so there is one function for each of those.
template <DAT_UINT32 minor, DAT_BOOLEAN thread_safe>
DAT_RETURN open_name(const DAT_NAME_PTR name, DAT_COUNT async_min_qlen, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia) {
  if (!name) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, "dat_ia_open: ia_name is NULL");
  if (!async_evd) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "dat_ia_open: async_evd_handle is NULL");
  if (!ia) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, "dat_ia_open: ia_handle is NULL");
  try {
    OwnName* own = find_name({name, DAT_VERSION_MAJOR, minor, thread_safe});
    if (!own) {
      return dapl::fail(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED, "dat_ia_open: {} is not registered", name);
    }
    return open_adapter(*own, adapter_of(*own), async_min_qlen, async_evd, ia);
  } catch (const std::bad_alloc&) {
    return dapl::fail(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "dat_ia_open: no memory");
  }
}

// By minor version, then by thread safety. We are a Provider of every version up to ours: each only adds calls.
template <DAT_UINT32... minors>
constexpr auto open_functions(std::integer_sequence<DAT_UINT32, minors...>) {
  return std::array<std::array<DAT_IA_OPEN_FUNC, 2>, sizeof...(minors)>{
      std::array<DAT_IA_OPEN_FUNC, 2>{open_name<minors, DAT_FALSE>, open_name<minors, DAT_TRUE>}...};
}
constexpr auto kOpenFunctions = open_functions(std::make_integer_sequence<DAT_UINT32, DAT_VERSION_MINOR + 1>{});

// The one of that tuple, which is made if need be and stands for the adapter of the same name at first.
// Requires: an API version of ours.
OwnName& own_name(const Tuple& tuple) {
  OwnNames& names = *own_names;
  os::Guard guard(names.lock);
  if (OwnName* known = find_name_locked(names, tuple)) return *known;
  OwnName& made = names.list.emplace_back(OwnName{tuple, tuple.name, {}});
  made.table =
      make_provider_table(made.tuple.name.c_str(), kOpenFunctions[tuple.minor][tuple.thread_safe == DAT_FALSE ? 0 : 1]);
  return made;
}

// The tuple we are to register, or nothing if we are no Provider of that.
std::optional<Tuple> acceptable(const DAT_PROVIDER_INFO* info) {
  std::optional<Tuple> tuple = info ? registry::tuple_of(*info) : std::nullopt;
  if (tuple && (tuple->major != DAT_VERSION_MAJOR || tuple->minor > DAT_VERSION_MINOR)) return std::nullopt;
  return tuple;
}

// Another registry may unload us, but programs still hold the handles, whose first word they may read.
void stay_loaded() {
  static const char here = 0;
  Dl_info self;
  if (dladdr(&here, &self) != 0) (void)dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

void register_name(const Tuple& tuple, const std::string& instance_data, const DAT_PROVIDER_INFO& info) {
  const std::string& adapter = instance_data.empty() ? tuple.name : instance_data;
  const registry::BuiltinNames there_are = registry::builtin_names();
  const bool may_be_there = there_are.unseen.may_have(adapter);
  if (!may_be_there && std::find(there_are.names.begin(), there_are.names.end(), adapter) == there_are.names.end()) {
    env::log(env::LogLevel::warn, "{} is not registered: this host has no adapter {}", in_words(tuple), adapter);
    return;
  }
  stay_loaded();
  OwnName& own = own_name(tuple);
  {
    os::Guard guard(own_names->lock);
    own.adapter = adapter;
  }
  // The call goes to whichever registry the process uses: the linker binds it to the first library that has it.
  if (const DAT_RETURN rc = dat_registry_add_provider(&own.table, &info); rc != DAT_SUCCESS) {
    env::log(env::LogLevel::warn, "{} is not registered: the registry answered {:#x}", in_words(tuple), rc);
  }
}

}  // namespace

DAT_RETURN open_builtin(const Tuple& tuple, DAT_COUNT async_min_qlen, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia) {
  return open_adapter(own_name(tuple), tuple.name, async_min_qlen, async_evd, ia);
}

dapl::Error query_builtin(const Tuple& tuple, DAT_HANDLE* query) {
  const OwnName& own = own_name(tuple);
  return dapl::Query::open(kind_to_open(own, tuple.name), own.tuple.name.c_str(), query);
}

dapl::Error query_registered(const char* name, DAT_HANDLE* query) {
  const OwnName* own = nullptr;
  for (const DAT_BOOLEAN thread_safe : {DAT_FALSE, DAT_TRUE}) {
    if (!own) own = find_name({name, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, thread_safe});
  }
  if (own) return dapl::Query::open(kind_to_open(*own, adapter_of(*own)), own->tuple.name.c_str(), query);
  return dapl::fail(dapl::Code::provider_not_found, dapl::Detail::name_not_registered, "{}: {} is not registered",
                    "dat_ib_open_query", name);
}

}  // namespace anydat::face

namespace face = anydat::face;

// These return nothing: that a name has not been registered is how the registry sees a failure (REG-INIT-6).
extern "C" {

void dat_provider_init(const DAT_PROVIDER_INFO* provider_info, const char* instance_data) {
  try {
    if (const auto tuple = face::acceptable(provider_info)) {
      face::register_name(*tuple, instance_data ? instance_data : "", *provider_info);
    }
  } catch (const std::bad_alloc&) {
    anydat::env::log(anydat::env::LogLevel::warn, "dat_provider_init: no memory");
  }
}

void dat_provider_fini(const DAT_PROVIDER_INFO* provider_info) {
  try {
    const auto tuple = face::acceptable(provider_info);
    if (!tuple) return;
    // Refused if the name is not registered or still open; then there is nothing more to do here.
    if (const auto* own = face::find_name(*tuple)) (void)dat_registry_remove_provider(&own->table, provider_info);
  } catch (const std::bad_alloc&) {
    anydat::env::log(anydat::env::LogLevel::warn, "dat_provider_fini: no memory");
  }
}

}  // extern "C"
