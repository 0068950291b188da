// SPDX-License-Identifier: BSD-3-Clause
// The exported calls that belong to the registry, and the ones that only libdat has.
#include <dat/dat_registry.h>
#include <dat/udat.h>

#include <cstring>

#include "api/provider.h"
#include "dapl/handle.h"
#include "registry/builtin.h"
#include "registry/registry.h"

namespace anydat {

namespace registry {
const DAT_PROVIDER* foreign_provider(DAT_HANDLE) {
  return nullptr;
}
}  // namespace registry

}  // namespace anydat

namespace api = anydat::api;
namespace dapl = anydat::dapl;
namespace registry = anydat::registry;

extern "C" {

DAT_RETURN dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT async_min_qlen, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia,
                        DAT_UINT32, DAT_UINT32, DAT_BOOLEAN) {
  if (ia) *ia = DAT_HANDLE_NULL;  // IA-OPEN-26
  if (name && strnlen(name, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH) {
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, "dat_ia_open: the name is longer than 255 characters");
  }
  return api::ia_open(name, async_min_qlen, async_evd, ia);
}

DAT_RETURN dat_registry_list_providers(DAT_COUNT max, DAT_COUNT* count, DAT_PROVIDER_INFO* list[]) {
  if (!count)
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_registry_list_providers: number_entries is NULL");
  const std::vector<std::string> names = registry::builtin_names();
  *count = static_cast<DAT_COUNT>(names.size());
  if (max < *count || !list) {
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, "dat_registry_list_providers: {} entries do not fit {}",
                      *count, max);
  }
  for (DAT_COUNT i = 0; i < *count; ++i) {
    if (!list[i])
      return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "dat_registry_list_providers: element {} is NULL", i);
    std::memset(list[i], 0, sizeof *list[i]);
    std::memcpy(list[i]->ia_name, names[i].data(), std::min(names[i].size(), sizeof list[i]->ia_name - 1));
    list[i]->dapl_version_major = DAT_VERSION_MAJOR;
    list[i]->dapl_version_minor = DAT_VERSION_MINOR;
    list[i]->is_thread_safe = DAT_FALSE;
  }
  return DAT_SUCCESS;
}

DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER*, const DAT_PROVIDER_INFO*) {
  return DAT_NOT_IMPLEMENTED;
}
DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER*, const DAT_PROVIDER_INFO*) {
  return DAT_NOT_IMPLEMENTED;
}
void dat_provider_init(const DAT_PROVIDER_INFO*, const char*) {}
void dat_provider_fini(const DAT_PROVIDER_INFO*) {}

// Programs hold the provider's own IA handle (ruling A7), so there is nothing to translate.
__attribute__((visibility("default"))) DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE* ia);
DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE* ia) {
  if (!ia) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dats_get_ia_handle: ia_handle is NULL");
  *ia = reinterpret_cast<DAT_IA_HANDLE>(handle);
  return DAT_SUCCESS;
}

}  // extern "C"
