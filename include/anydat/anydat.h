/* SPDX-License-Identifier: BSD-3-Clause
 *
 * anydat's small extensions beside the standard: counters, the environment, shareable memory, many operations by one
 * call, and the last error in words. Nothing here changes what a call of <dat/udat.h> does, and a program that includes
 * only that header loses nothing.
 *
 * Conventions: each function is safe from any thread and never blocks. Strings belong to the library; the text of
 * anydat_last_error() lasts until the next failing DAT call of the same thread, all other strings for the process's
 * life.
 */
#ifndef ANYDAT_ANYDAT_H
#define ANYDAT_ANYDAT_H

/* A program of uDAPL 2.0 includes <dat2/udat.h> before this file. */
#ifndef DAT2_H
#include <dat/udat.h>
#endif
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One counter of an object. Counters are always on; they start at 0 with the object (or at its creation's value, as
 * lowest_available does) and never wrap in practice. Times are nanoseconds and end in _ns, sizes end in _bytes. */
typedef struct anydat_counter {
  const char* name;
  uint64_t value;
} ANYDAT_COUNTER;

/* Reads the counters of an IA, EP, EVD or SRQ (docs/counters.md lists them all).
 *
 * Fills up to `max` elements of `counters` in a fixed order and stores the number the object has in *count, which may
 * be larger than `max` (call with max 0 and counters NULL to size the array).
 * Returns DAT_SUCCESS; DAT_INVALID_HANDLE for any other handle; DAT_INVALID_PARAMETER for a NULL count, a negative
 * max, or counters NULL with max > 0. */
DAT_RETURN anydat_get_counters(DAT_HANDLE object, DAT_COUNT max, ANYDAT_COUNTER* counters, DAT_COUNT* count);

/* One of the environment variables that the library heeds. All texts are constant and never freed, but for `value`,
 * which is the environment's own: NULL while the variable is unset or the process has raised privileges. */
typedef struct anydat_variable {
  const char* name;
  const char* values;        /* what it can be: words, or what kind of number or text */
  const char* default_value; /* what holds while it is unset */
  const char* meaning;
  const char* value;
} ANYDAT_VARIABLE;

/* Lists them; `max` and *count are as for anydat_get_counters. Needs no open adapter. Most are read when an adapter is
 * opened, so a value may be newer than what an open one goes by.
 * Returns DAT_SUCCESS; DAT_INVALID_PARAMETER for a NULL count, a negative max, or variables NULL with max > 0. */
DAT_RETURN anydat_get_environment(DAT_COUNT max, ANYDAT_VARIABLE* variables, DAT_COUNT* count);

/* Memory that other processes of this host can map, too: RDMA to and from it is a copy in memory, without the kernel.
 * It is used like any other, registered with dat_lmr_create() as DAT_MEM_TYPE_VIRTUAL. (Memory that a program has made
 * itself with memfd_create() and F_SEAL_SHRINK, and whose descriptor it keeps open, is treated alike.)
 *
 * Gives `size` bytes of zeros, rounded up to whole pages and aligned to one. They cost one descriptor until they are
 * freed; deregister them first. The process's end frees them, too, once no peer has them mapped any more.
 * Return DAT_SUCCESS; DAT_INVALID_PARAMETER for size 0, a NULL pointer, or an address that anydat_alloc_shareable() has
 * not given; DAT_INSUFFICIENT_RESOURCES without memory or descriptors. */
DAT_RETURN anydat_alloc_shareable(DAT_VLEN size, void** address);
DAT_RETURN anydat_free_shareable(void* address);

/* What carries the connection of an endpoint: "shm" (shared memory), "tcp" (iWARP over TCP) or "verbs" (an RDMA
 * device). A `soft` adapter chooses for each connection; see DAT_WIRE. The text is constant. Returns DAT_SUCCESS;
 * DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER for a NULL wire; DAT_INVALID_STATE unless the endpoint is connected. */
DAT_RETURN anydat_ep_wire(DAT_EP_HANDLE ep, const char** wire);

/* ---- Many by one call
 *
 * Each of these does what its single call of the standard, named with it, would do if it were called for one element of
 * the array after the other, until one call fails; all rules of that call hold, those about threads included. What is
 * saved is the work that is the same for all elements, locks and wake-ups above all.
 *
 * How many elements were taken or posted is stored in *count or *posted whatever the call returns, unless that pointer
 * is NULL. An error that an element has met is the return code of the single call, subtype included; then the element
 * with that index (counted from 0) is the one that failed, all before it stay posted, and none behind it has been
 * looked at. What is wrong with the arguments of these calls themselves is DAT_INVALID_HANDLE, for anything but a live
 * object of the kind that belongs to this library, and DAT_INVALID_PARAMETER, for a NULL pointer or a number that is
 * negative; nothing has happened then. An array may be NULL if its number is 0.
 *
 * The arrays, and the I/O vectors that they name, are the caller's, and again so when the call returns. The memory that
 * the segments name belongs to the operation until it has completed, as it does after the single call. */

/* A receive for a shared receive queue: the arguments of dat_srq_post_recv(). */
typedef struct anydat_srq_post {
  DAT_COUNT num_segments;
  DAT_LMR_TRIPLET* local_iov;
  DAT_DTO_COOKIE user_cookie;
} ANYDAT_SRQ_POST;

/* A Send or a receive of an endpoint: the arguments of dat_ep_post_send() or dat_ep_post_recv(). */
typedef struct anydat_ep_post {
  DAT_COUNT num_segments;
  DAT_LMR_TRIPLET* local_iov;
  DAT_DTO_COOKIE user_cookie;
  DAT_COMPLETION_FLAGS completion_flags;
} ANYDAT_EP_POST;

/* dat_evd_dequeue(): takes the first events of the queue, up to `max` of them, which is at least 1, in their order. An
 * empty queue is looked at as there; one that is not is taken from as it is. DAT_SUCCESS if there was one event at
 * least, however many; DAT_QUEUE_EMPTY, DAT_INVALID_STATE (another thread waits on the EVD) and all others with *count
 * 0. Elements behind the first *count are left as they are. */
DAT_RETURN anydat_evd_dequeue_many(DAT_EVD_HANDLE evd, DAT_COUNT max, DAT_EVENT* events, DAT_COUNT* count);

/* dat_srq_post_recv(). A queue that has room for some of the receives takes those, and the call returns
 * DAT_INSUFFICIENT_RESOURCES. */
DAT_RETURN anydat_srq_post_recvs(DAT_SRQ_HANDLE srq, DAT_COUNT count, const ANYDAT_SRQ_POST* receives,
                                 DAT_COUNT* posted);

/* dat_ep_post_send() and dat_ep_post_recv(). Sends go out, and complete, in the order of the array; the completion of
 * one may be queued only when others of the call have gone out as well. */
DAT_RETURN anydat_ep_post_sends(DAT_EP_HANDLE ep, DAT_COUNT count, const ANYDAT_EP_POST* sends, DAT_COUNT* posted);
DAT_RETURN anydat_ep_post_recvs(DAT_EP_HANDLE ep, DAT_COUNT count, const ANYDAT_EP_POST* receives, DAT_COUNT* posted);

/* The sentence behind the calling thread's last failing DAT call: what was wrong, with both sides of the mismatch.
 * Never NULL; empty before the first failure. It is the line that DAT_LOG=warn prints. */
const char* anydat_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
