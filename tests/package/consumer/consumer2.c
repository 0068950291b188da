/* SPDX-License-Identifier: BSD-3-Clause
 * A program of uDAPL 2.0: opens the adapter, tells its version, closes it. */
#include <dat2/udat.h>
/* Needs the types of the version. */
#include <anydat/anydat.h>
#include <stdio.h>

int main(void) {
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  DAT_PROVIDER_ATTR attr;
  if (dat_ia_open("no such adapter", 8, &async_evd, &ia) == DAT_SUCCESS || anydat_last_error()[0] == '\0') return 1;
  if (dat_ia_open("soft-lo", 8, &async_evd, &ia) != DAT_SUCCESS) {
    fprintf(stderr, "%s\n", anydat_last_error());
    return 1;
  }
  if (dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr) != DAT_SUCCESS) return 1;
  if (attr.dapl_version_major != 2 || attr.dapl_version_minor != 0) return 1;
  if (dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) != DAT_SUCCESS) return 1;
  printf("C consumer of 2.0: opened and closed\n");
  return 0;
}
