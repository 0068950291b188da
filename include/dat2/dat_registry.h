/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the registry and a Provider, the library that drives an adapter. Programs do not need this file.
 *
 * The registry loads a Provider named in dat.conf and calls dat_provider_init(); the Provider answers with
 * dat_registry_add_provider(). Before unloading it the registry calls dat_provider_fini().
 */
#ifndef DAT2_REGISTRY_H
#define DAT2_REGISTRY_H

#include <dat2/udat.h>

#ifdef __cplusplus
extern "C" {
#endif
/* The calls are the library's exports, whatever visibility the including file is compiled with. */
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Enters the adapter provider_info->ia_name into the registry. The structure provider_info points to is copied;
 * *provider stays the Provider's and must last until it is removed. DAT_PROVIDER_ALREADY_REGISTERED if the registry has
 * that name with the same version and thread safety. May be called from dat_provider_init(). */
DAT_RETURN dat_registry_add_provider(IN const DAT_PROVIDER* provider, IN const DAT_PROVIDER_INFO* provider_info);
/* Takes it out again. DAT_PROVIDER_IN_USE while it is open; DAT_INVALID_PARAMETER if it is not there. */
DAT_RETURN dat_registry_remove_provider(IN const DAT_PROVIDER* provider, IN const DAT_PROVIDER_INFO* provider_info);

/* What a Provider exports, as symbols and as strings for dlsym(). */
#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini"

/* The arguments last only for the call. instance_data is the seventh field of the entry in dat.conf, never NULL. */
typedef void (*DAT_PROVIDER_INIT_FUNC)(IN const DAT_PROVIDER_INFO* provider_info, IN const char* instance_data);
typedef void (*DAT_PROVIDER_FINI_FUNC)(IN const DAT_PROVIDER_INFO* provider_info);

/* Whether two adapters are paths of one: rules D2-HA. */
typedef enum dat_ha_relationship {
  DAT_HA_FALSE,
  DAT_HA_TRUE,
  DAT_HA_UNKNOWN,       /* no Provider that knows could be asked */
  DAT_HA_CONFLICTING,   /* their Providers contradict each other */
  DAT_HA_EXTENSION_BASE /* answers of extensions begin here */
} DAT_HA_RELATIONSHIP;

DAT_RETURN dat_registry_providers_related(IN const DAT_NAME_PTR ia_name, IN const DAT_NAME_PTR other_ia_name,
                                          OUT DAT_HA_RELATIONSHIP* relationship);

void DAT_PROVIDER_INIT_FUNC_NAME(IN const DAT_PROVIDER_INFO* provider_info, IN const char* instance_data);
void DAT_PROVIDER_FINI_FUNC_NAME(IN const DAT_PROVIDER_INFO* provider_info);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
