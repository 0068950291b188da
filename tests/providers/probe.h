/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a test may touch of a probe that is loaded: it looks the symbol up by its name.
 */
#ifndef PROBE_H
#define PROBE_H

#ifdef __cplusplus
#include <atomic>
using probe_int = std::atomic<int>;
static_assert(sizeof(probe_int) == sizeof(int));
#else
#include <stdatomic.h>
typedef atomic_int probe_int;
#endif

/* dat_evd_wait() on an EVD of the probe counts itself in here and stays until the gate is open. */
struct probe_gate {
  probe_int inside;
  probe_int open;
};

#endif
