// SPDX-License-Identifier: BSD-3-Clause
// A libdat that is broken on purpose, to be preloaded: field.sh shows with it that its judges notice. FIELD_BREAK says
// what is wrong; FIELD_DAT, whose layout the program has (1.2 or 2.0).
//   send     of each eighth message the bytes begin one too late
//   write    the eighth RDMA Write, and all that follow, go to an address one too high
//   read     RDMA Reads read from an address one too high
//   refuse   a process can make two endpoints and no more
//   extension  atomic operations and immediate data carry one more than they should
//   free     protection zones are not freed
// For RTLD_NEXT.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kLayoutMax = 24, kOutOfResources = (int)0x80030000u, kInvalidState = (int)0x80070000u };
// Of dat_extension_op (dat2/dat_ib_extensions.h).
enum { kFetchAndAdd, kCompareAndSwap, kWriteImmediate, kArguments = 8 };

typedef int Post(void*, int, void*, uint64_t, unsigned);
typedef int PostRdma(void*, int, void*, uint64_t, void*, unsigned);
typedef int Create(void*, void*, void*, void*, void*, void*, void*);
typedef int Free(void*);
typedef int Extension(void*, int, ...);
typedef int CreateWithSrq(void*, void*, void*, void*, void*, void*, void*, void*);

static int is_broken(const char* what) {
  const char* broken = getenv("FIELD_BREAK");
  return broken && strcmp(broken, what) == 0;
}

// An address in a segment of either side stands first in DAT 2.0, and behind the context in 1.2.
static void* shifted(const void* segment, char* copy) {
  const char* dat = getenv("FIELD_DAT");
  const int is_2 = dat && dat[0] == '2';
  memcpy(copy, segment, is_2 ? 16 : 24);
  uint64_t address;
  memcpy(&address, copy + (is_2 ? 0 : 8), sizeof address);
  ++address;
  memcpy(copy + (is_2 ? 0 : 8), &address, sizeof address);
  return copy;
}

// ISO C knows no conversion of a pointer to data into one to a function.
#define CALL_REAL(type, name, ...)        \
  do {                                    \
    void* found = dlsym(RTLD_NEXT, name); \
    type* call;                           \
    memcpy(&call, &found, sizeof call);   \
    return call(__VA_ARGS__);             \
  } while (0)

#define PUBLIC __attribute__((visibility("default"))) int

PUBLIC dat_ep_post_send(void* ep, int count, void* segments, uint64_t cookie, unsigned flags) {
  static atomic_int posted;
  char copy[kLayoutMax];
  if (is_broken("send") && count == 1 && atomic_fetch_add(&posted, 1) % 8 == 7) segments = shifted(segments, copy);
  CALL_REAL(Post, "dat_ep_post_send", ep, count, segments, cookie, flags);
}

PUBLIC dat_ep_post_rdma_write(void* ep, int count, void* segments, uint64_t cookie, void* remote, unsigned flags) {
  static atomic_int posted;
  char copy[kLayoutMax];
  if (is_broken("write") && atomic_fetch_add(&posted, 1) >= 7) remote = shifted(remote, copy);
  CALL_REAL(PostRdma, "dat_ep_post_rdma_write", ep, count, segments, cookie, remote, flags);
}

PUBLIC dat_ep_post_rdma_read(void* ep, int count, void* segments, uint64_t cookie, void* remote, unsigned flags) {
  char copy[kLayoutMax];
  if (is_broken("read")) remote = shifted(remote, copy);
  CALL_REAL(PostRdma, "dat_ep_post_rdma_read", ep, count, segments, cookie, remote, flags);
}

static int refused(void) {
  static atomic_int made;
  return is_broken("refuse") && atomic_fetch_add(&made, 1) >= 2;
}

PUBLIC dat_ep_create(void* ia, void* pz, void* recv, void* request, void* connect, void* attributes, void* ep) {
  if (refused()) return kOutOfResources;
  CALL_REAL(Create, "dat_ep_create", ia, pz, recv, request, connect, attributes, ep);
}

PUBLIC dat_ep_create_with_srq(void* ia, void* pz, void* recv, void* request, void* connect, void* srq, void* attributes,
                              void* ep) {
  if (refused()) return kOutOfResources;
  CALL_REAL(CreateWithSrq, "dat_ep_create_with_srq", ia, pz, recv, request, connect, srq, attributes, ep);
}

PUBLIC dat_pz_free(void* pz) {
  if (is_broken("free")) return kInvalidState;
  CALL_REAL(Free, "dat_pz_free", pz);
}

// Every argument is a number of 64 bits, or passed as one.
PUBLIC dat_extension_op(void* handle, int operation, ...) {
  uint64_t a[kArguments];
  va_list arguments;
  va_start(arguments, operation);
  for (int i = 0; i < kArguments; ++i) a[i] = va_arg(arguments, uint64_t);
  va_end(arguments);
  if (is_broken("extension")) {
    if (operation == kFetchAndAdd) ++a[0];
    if (operation == kCompareAndSwap) ++a[1];
    if (operation == kWriteImmediate) ++a[4];
  }
  CALL_REAL(Extension, "dat_extension_op", handle, operation, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
}
