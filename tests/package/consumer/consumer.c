/* SPDX-License-Identifier: BSD-3-Clause
 * A program outside this project: uses the installed headers and the installed library, in C. */
#include <anydat/anydat.h>
#include <dat/udat.h>
#include <stdio.h>

int main(void) {
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  ANYDAT_COUNTER counter;
  DAT_COUNT count = 0;
  if (dat_ia_open("no such adapter", 8, &async_evd, &ia) == DAT_SUCCESS || anydat_last_error()[0] == '\0') return 1;
  if (dat_ia_open("soft-lo", 8, &async_evd, &ia) != DAT_SUCCESS) {
    fprintf(stderr, "%s\n", anydat_last_error());
    return 1;
  }
  if (anydat_get_counters(ia, 1, &counter, &count) != DAT_SUCCESS || count < 1) return 1;
  if (dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) != DAT_SUCCESS) return 1;
  printf("C consumer: opened and closed\n");
  return 0;
}
