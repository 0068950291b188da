/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A Provider for the tests of the registry. It writes what happens to it into a file, and does as its instance data
 * says: the path of that file and any of these words.
 *
 *   silent    dat_provider_init() registers nothing
 *   stays     dat_provider_fini() leaves the registration
 *   refuses   an IA does not open, and the attempt leaves its OUT arguments changed
 *   reenters  dat_provider_init() calls back into libdat
 *
 * The calls of an IA that the tests do not need are left out. -DPROBE_NO_INIT, -DPROBE_NO_FINI and -DPROBE_UNRESOLVED
 * make libraries that are no Provider, an untidy one, and one that does not load.
 */
#include "probe.h"

#include <dat/dat_registry.h>
#include <dat/udat.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

/* A library without one of the two has it under a name that the registry does not look for. */
#ifdef PROBE_NO_INIT
#define PROBE_INIT probe_init
#else
#define PROBE_INIT DAT_PROVIDER_INIT_FUNC_NAME
#endif
#ifdef PROBE_NO_FINI
#define PROBE_FINI probe_fini
#else
#define PROBE_FINI DAT_PROVIDER_FINI_FUNC_NAME
#endif
void PROBE_INIT(const DAT_PROVIDER_INFO* provider_info, const char* instance_data);
void PROBE_FINI(const DAT_PROVIDER_INFO* provider_info);

enum { kNames = 8, kText = 512 };

struct name {
  DAT_PROVIDER_INFO info;
  DAT_PROVIDER table;
  char words[kText];
};

/* What every handle points to (HND-9). */
struct object {
  const DAT_PROVIDER* provider;
  struct name* name;
};

static struct name names[kNames];
static char log_path[kText];

extern struct probe_gate probe_gate EXPORTED;
struct probe_gate probe_gate;

static void note(const char* what, const DAT_PROVIDER_INFO* info, const char* more) {
  char line[2 * kText];
  int length = 0;
  const int fd = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (info != NULL) {
    length =
        snprintf(line, sizeof line, "%s %s %u.%u %s%s\n", what, info->ia_name, info->dapl_version_major,
                 info->dapl_version_minor, info->is_thread_safe == DAT_FALSE ? "nonthreadsafe" : "threadsafe", more);
  } else {
    length = snprintf(line, sizeof line, "%s%s\n", what, more);
  }
  if (fd < 0) return; /* the test has gone, or misses the line */
  if (write(fd, line, (size_t)length) != length) abort();
  close(fd);
}

static int told_to(const struct name* name, const char* word) {
  return strstr(name->words, word) != NULL;
}

static struct name* find(const char* ia_name) {
  int i;
  for (i = 0; i < kNames; ++i)
    if (strcmp(names[i].info.ia_name, ia_name) == 0) return &names[i];
  return NULL;
}

static DAT_RETURN probe_ia_open(const DAT_NAME_PTR ia_name, DAT_COUNT async_min_qlen, DAT_EVD_HANDLE* async_evd,
                                DAT_IA_HANDLE* ia) {
  struct name* name = find(ia_name);
  struct object* object;
  (void)async_min_qlen;
  if (name == NULL) abort(); /* the registry opens what has been registered */
  note("open ", NULL, ia_name);
  if (told_to(name, "refuses")) {
    *async_evd = (DAT_EVD_HANDLE)&probe_gate;
    *ia = (DAT_IA_HANDLE)&probe_gate;
    return (DAT_RETURN)DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES;
  }
  object = malloc(sizeof *object);
  object->provider = &name->table;
  object->name = name;
  *ia = object;
  return DAT_SUCCESS;
}

static DAT_RETURN probe_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags) {
  struct object* object = ia;
  if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
    return (DAT_RETURN)DAT_CLASS_ERROR | DAT_INVALID_PARAMETER;
  note("close ", NULL, object->name->info.ia_name);
  free(object);
  return DAT_SUCCESS;
}

static DAT_RETURN probe_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE* async_evd, DAT_IA_ATTR_MASK ia_mask,
                                 DAT_IA_ATTR* attr, DAT_PROVIDER_ATTR_MASK provider_mask,
                                 DAT_PROVIDER_ATTR* provider_attr) {
  const struct object* object = ia;
  (void)async_evd;
  (void)provider_mask;
  (void)provider_attr;
  if (ia_mask != 0) memcpy(attr->adapter_name, object->name->info.ia_name, sizeof attr->adapter_name);
  return DAT_SUCCESS;
}

static DAT_RETURN probe_evd_create(DAT_IA_HANDLE ia, DAT_COUNT min_qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
                                   DAT_EVD_HANDLE* evd) {
  struct object* object = malloc(sizeof *object);
  (void)min_qlen;
  (void)cno;
  (void)flags;
  *object = *(struct object*)ia;
  *evd = object;
  return DAT_SUCCESS;
}

static DAT_RETURN probe_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event,
                                 DAT_COUNT* nmore) {
  (void)evd;
  (void)timeout;
  (void)threshold;
  (void)event;
  (void)nmore;
  atomic_fetch_add(&probe_gate.inside, 1);
  while (!atomic_load(&probe_gate.open)) sched_yield();
  atomic_fetch_sub(&probe_gate.inside, 1);
  return (DAT_RETURN)DAT_CLASS_ERROR | DAT_ABORT;
}

static DAT_RETURN probe_evd_free(DAT_EVD_HANDLE evd) {
  free(evd);
  return DAT_SUCCESS;
}

#ifdef PROBE_UNRESOLVED
extern void probe_symbol_that_nobody_has(void);
extern void probe_call_it(void) EXPORTED;
void probe_call_it(void) {
  probe_symbol_that_nobody_has();
}
#endif

/* Whatever the registry is doing at the moment, it answers (REG-ADD-10). */
static void reenter(const char* own_name) {
  DAT_COUNT count = 0;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  char name[DAT_NAME_MAX_LENGTH];
  const DAT_RETURN listed = dat_registry_list_providers(0, &count, NULL);
  note("listed ", NULL, DAT_GET_TYPE(listed) == DAT_INVALID_PARAMETER && count > 0 ? "yes" : "no");
  strcpy(name, "soft-lo");
  if (dat_ia_open(name, 8, &async_evd, &ia) == DAT_SUCCESS && dat_ia_close(ia, DAT_CLOSE_DEFAULT) == DAT_SUCCESS)
    note("opened ", NULL, name);
  strcpy(name, own_name);
  async_evd = DAT_HANDLE_NULL;
  if (DAT_GET_TYPE(dat_ia_open(name, 8, &async_evd, &ia)) == DAT_PROVIDER_NOT_FOUND) note("not yet ", NULL, name);
}

void PROBE_INIT(const DAT_PROVIDER_INFO* provider_info, const char* instance_data) {
  struct name* name = find(provider_info->ia_name);
  if (name == NULL) name = find("");
  if (name == NULL) abort();
  sscanf(instance_data, "%511s", log_path);
  memset(name, 0, sizeof *name);
  name->info = *provider_info;
  strncpy(name->words, instance_data + strlen(log_path), sizeof name->words - 1);
  note("init", provider_info, name->words);

  name->table.device_name = name->info.ia_name;
  name->table.ia_open_func = probe_ia_open;
  name->table.ia_close_func = probe_ia_close;
  name->table.ia_query_func = probe_ia_query;
  name->table.evd_create_func = probe_evd_create;
  name->table.evd_wait_func = probe_evd_wait;
  name->table.evd_free_func = probe_evd_free;
  if (told_to(name, "reenters")) reenter(name->info.ia_name);
  if (told_to(name, "silent")) return;
  if (dat_registry_add_provider(&name->table, provider_info) != DAT_SUCCESS) note("not registered", NULL, "");
}

void PROBE_FINI(const DAT_PROVIDER_INFO* provider_info) {
  struct name* name = find(provider_info->ia_name);
  note("fini", provider_info, "");
  if (name != NULL && !told_to(name, "stays")) (void)dat_registry_remove_provider(&name->table, provider_info);
}

__attribute__((destructor)) static void unloaded(void) {
  if (log_path[0] != '\0') note("unloaded", NULL, "");
}
