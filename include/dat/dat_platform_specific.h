/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The scalar types and socket address types of DAT on this platform.
 *
 * Included by every other header of this folder. Sizes are those of the Linux LP64 ABI (rule HDR-3): a DAT_COUNT has
 * 4 bytes everywhere, addresses and lengths have 8 bytes everywhere.
 */
#ifndef DAT_PLATFORM_SPECIFIC_H
#define DAT_PLATFORM_SPECIFIC_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Unsigned integers of fixed width, in host byte order. */
typedef uint32_t DAT_UINT32;
typedef uint64_t DAT_UINT64;
/* The widest unsigned integer that all DAT platforms share; 8 bytes, but not always the type of DAT_UINT64. */
typedef unsigned long long DAT_UVERYLONG;

typedef void* DAT_PVOID;
/* Counts, queue lengths and thresholds. Signed: -1 and -2 are reserved for "no limit" and "unknown". */
typedef int DAT_COUNT;
/* A physical address; no call of the user-mode API takes one. */
typedef DAT_UINT64 DAT_PADDR;

/* Bytes. Buffers aligned to this suit every Provider: the optimal_buffer_alignment of each divides it. A program may
 * define a smaller value before it includes the header, if it knows its Providers. */
#ifndef DAT_OPTIMAL_ALIGNMENT
#define DAT_OPTIMAL_ALIGNMENT 256
#endif

/* IA addresses are socket addresses of one of these two families. */
#define DAT_AF_INET AF_INET
#define DAT_AF_INET6 AF_INET6
typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;

#ifdef __cplusplus
}
#endif

#ifdef DAT2_PLATFORM_SPECIFIC_H
#error "uDAPL 2.0 (<dat2/...>) is included already: a translation unit uses either <dat/udat.h> or <dat2/udat.h>"
#endif

#endif
