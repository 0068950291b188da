/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Another registry of version 1.2, as far as the entries of a dat.conf go: it loads libdat as their Provider, opens an
 * IA through the table that the Provider registers, and closes it again. REG-INIT-4, REG-INIT-6, REG-FINI-4,
 * PRV-ATTR-5, PRV-ATTR-6, IA-ATTR-1 and REG-TBL-2, from the Provider's side.
 *
 *   old_registry LIBDAT
 */
#include <dat/dat_registry.h>
#include <dat/udat.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const DAT_PROVIDER* registered;
static DAT_PROVIDER_INFO registered_info;
static int failures;

static void check(int so, const char* condition, int line) {
  if (so) return;
  fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, line, condition);
  ++failures;
}
#define CHECK(condition) check((condition) ? 1 : 0, #condition, __LINE__)

/* The library it loads finds these and not its own. */
DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* provider_info) {
  CHECK(registered == NULL);
  registered = provider;
  registered_info = *provider_info;
  return DAT_SUCCESS;
}

DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* provider_info) {
  CHECK(provider == registered);
  CHECK(memcmp(provider_info, &registered_info, sizeof registered_info) == 0);
  registered = NULL;
  return DAT_SUCCESS;
}

/* REG-INIT-9: what the Provider is given is gone when the call has returned. */
static void initialise(DAT_PROVIDER_INIT_FUNC init, const DAT_PROVIDER_INFO* info, const char* instance_data) {
  DAT_PROVIDER_INFO given = *info;
  char data[64];
  strcpy(data, instance_data);
  init(&given, data);
  memset(&given, 0x5a, sizeof given);
  memset(data, 0x5a, sizeof data);
}

static DAT_PROVIDER_INFO info_of(const char* name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safe) {
  DAT_PROVIDER_INFO info;
  memset(&info, 0, sizeof info);
  strcpy(info.ia_name, name);
  info.dapl_version_major = major;
  info.dapl_version_minor = minor;
  info.is_thread_safe = thread_safe;
  return info;
}

/* Opens the IA, and closes it as such a registry does: the version and thread safety that the IA reports must lead back
 * to the entry. */
static void open_and_close(void) {
  char name[DAT_NAME_MAX_LENGTH];
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_IA_ATTR attr;
  DAT_PROVIDER_ATTR provider_attr;
  const DAT_PROVIDER* table;
  strcpy(name, registered_info.ia_name);
  CHECK(registered->ia_open_func(name, 8, &async_evd, &ia) == DAT_SUCCESS);
  if (ia == DAT_HANDLE_NULL) return;
  table = DAT_HANDLE_TO_PROVIDER(ia);
  CHECK(strcmp(table->device_name, name) == 0);
  CHECK(table->ia_query_func(ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider_attr) == DAT_SUCCESS);
  CHECK(strcmp(attr.adapter_name, name) == 0);
  CHECK(provider_attr.dapl_version_major == registered_info.dapl_version_major);
  CHECK(provider_attr.dapl_version_minor == registered_info.dapl_version_minor);
  CHECK(provider_attr.is_thread_safe == registered_info.is_thread_safe);
  CHECK(table->ia_close_func(ia, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS);
}

int main(int argc, char** argv) {
  DAT_PROVIDER_INIT_FUNC init;
  DAT_PROVIDER_FINI_FUNC fini;
  DAT_PROVIDER_INFO info;
  DAT_UINT32 minor;
  int round;
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "old_registry LIBDAT");
    return 2;
  }
  *(void**)&init = dlsym(library, DAT_PROVIDER_INIT_FUNC_STR);
  *(void**)&fini = dlsym(library, DAT_PROVIDER_FINI_FUNC_STR);
  if (init == NULL || fini == NULL) return 2;

  for (minor = 0; minor <= DAT_VERSION_MINOR; ++minor) {
    for (round = 0; round < 2; ++round) {
      info = info_of("my-nic", 1, minor, round == 0 ? DAT_FALSE : DAT_TRUE);
      initialise(init, &info, "soft-lo");
      CHECK(registered != NULL);
      if (registered == NULL) continue;
      CHECK(memcmp(&registered_info, &info, sizeof info) == 0);
      CHECK(strcmp(registered->device_name, "my-nic") == 0);
      open_and_close();
      fini(&info);
      CHECK(registered == NULL);
    }
  }

  info = info_of("soft-lo", 1, 2, DAT_FALSE);
  initialise(init, &info, ""); /* the name says it all */
  CHECK(registered != NULL);
  if (registered != NULL) open_and_close();
  fini(&info);

  info = info_of("my-nic", 1, 2, DAT_FALSE);
  initialise(init, &info, "soft-no-such-device");
  CHECK(registered == NULL);
  info = info_of("my-nic", 2, 0, DAT_FALSE);
  initialise(init, &info, "soft-lo");
  CHECK(registered == NULL);
  info = info_of("my-nic", 1, 3, DAT_FALSE);
  initialise(init, &info, "soft-lo");
  CHECK(registered == NULL);

  dlclose(library);
  return failures == 0 ? 0 : 1;
}
