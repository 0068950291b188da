// SPDX-License-Identifier: BSD-3-Clause
// The headers of uDAPL 2.0 as a C program sees them. Every row of the ABI table is asserted when this file is compiled;
// what C cannot assert at compile time is done by headers2_c_first_failure(), which a C++ test calls.
#include <dat2/udat.h>
// After udat.h, as programs do it.
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>
#include <stdarg.h>
#include <string.h>

#include "unit/headers_c.h"

// D2-HDR-3: values, sizes, offsets. C has the last word on the signedness of an enumeration.
#define ABI_ENUMERATOR(name, value, bits, type) _Static_assert((name) == (value), #name);
#define ABI_CONST(name, value, bits) _Static_assert((name) == (value) && sizeof(name) * 8 == (bits), #name);
#define ABI_STRING(name, value) _Static_assert(sizeof(name) == sizeof(value), #name);
#define ABI_TYPE(name, size, kind) _Static_assert(sizeof(name) == (size), #name);
#define ABI_ENUM(name, size, kind, tag) \
  _Static_assert(sizeof(name) == (size) && sizeof(enum tag) == (size) && (name)-1 > 0, #name);
#define ABI_STRUCT(name, size, align, tag) \
  _Static_assert(sizeof(name) == (size) && _Alignof(name) == (align) && sizeof(tag) == (size), #name);
#define ABI_FIELD(type, field, offset, size) \
  _Static_assert(offsetof(type, field) == (offset) && sizeof(((type*)0)->field) == (size), #type "." #field);
#define ABI_SLOT(index, field, offset, type, call) \
  _Static_assert(offsetof(DAT_PROVIDER, field) == (offset) && sizeof(type) == sizeof(&call), #field);
#define ABI_OPEN_SLOT(index, field, offset, type) _Static_assert(offsetof(DAT_PROVIDER, field) == (offset), #field);
// Types of calls, which C compares without regard to qualifiers of parameters.
#define ABI_CALL_TYPE(name, ...) _Static_assert(__builtin_types_compatible_p(__typeof__(name), __VA_ARGS__), #name);
#define ABI_POINTER_TYPE(name, ...) \
  _Static_assert(__builtin_types_compatible_p(__typeof__(*(name)0), __VA_ARGS__), #name);
#include "unit/abi2_facts.inc"

// A Provider of our own, so that the redirecting macros can be called from C.
struct object {
  DAT_PROVIDER* provider;
  const char* reason;
};

static DAT_RETURN reject(DAT_CR_HANDLE cr_handle, DAT_COUNT private_data_size, const DAT_PVOID private_data) {
  ((struct object*)cr_handle)->reason = private_data;
  return private_data_size == 4 ? DAT_CLASS_ERROR | DAT_COMM_NOT_SUPPORTED | DAT_INVALID_HANDLE_CSP : DAT_SUCCESS;
}

static DAT_RETURN create_cno(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE* cno_handle) {
  *cno_handle = agent.instance_data == NULL && agent.proxy_agent_func == NULL ? ia_handle : DAT_HANDLE_NULL;
  return DAT_SUCCESS;
}

// What the macros of the extension pass, read as an implementation reads it (the table of D2-EXT).
static struct {
  DAT_HANDLE handle;
  DAT_EXTENDED_OP operation;
  DAT_UINT64 numbers[2];
  DAT_LMR_TRIPLET* local;
  DAT_DTO_COOKIE cookie;
  const DAT_RMR_TRIPLET* remote;
  DAT_COUNT segments;
  DAT_UINT32 immediate;
  DAT_COMPLETION_FLAGS flags;
} seen;

static DAT_RETURN read_arguments(DAT_HANDLE handle, DAT_EXTENDED_OP operation, ...) {
  va_list args;
  va_start(args, operation);
  memset(&seen, 0, sizeof seen);
  seen.handle = handle;
  seen.operation = operation;
  if (operation == DAT_IB_RDMA_WRITE_IMMED_OP) {
    seen.segments = va_arg(args, DAT_COUNT);
  } else {
    seen.numbers[0] = va_arg(args, DAT_UINT64);
    if (operation == DAT_IB_CMP_AND_SWAP_OP) seen.numbers[1] = va_arg(args, DAT_UINT64);
  }
  seen.local = va_arg(args, DAT_LMR_TRIPLET*);
  seen.cookie = va_arg(args, DAT_DTO_COOKIE);
  seen.remote = va_arg(args, const DAT_RMR_TRIPLET*);
  if (operation == DAT_IB_RDMA_WRITE_IMMED_OP) seen.immediate = va_arg(args, DAT_UINT32);
  seen.flags = va_arg(args, DAT_COMPLETION_FLAGS);
  va_end(args);
  return DAT_SUCCESS;
}
#define dat_extension_op read_arguments

#define EXPECT(condition) \
  if (!(condition)) return __LINE__

int headers2_c_first_failure(void) {
  EXPECT(DAT_HANDLE_NULL == NULL);
  EXPECT((uintptr_t)DAT_EVD_ASYNC_EXISTS == 1 && (uintptr_t)DAT_EVD_OUT_OF_SCOPE == 2);
  EXPECT(strcmp(DAT_IB_ATTR_COUNTERS, "DAT_COUNTERS") == 0);

  DAT_OS_WAIT_PROXY_AGENT agent = DAT_OS_WAIT_PROXY_AGENT_NULL;
  EXPECT(agent.instance_data == NULL && agent.proxy_agent_func == NULL);

  // The macros find the table in the first word of the object.
  DAT_PROVIDER provider;
  memset(&provider, 0, sizeof provider);
  provider.cr_reject_func = reject;
  provider.cno_create_func = create_cno;
  struct object object = {&provider, NULL};
  char reason[] = "late";
  const DAT_RETURN status = DAT_CR_REJECT(&object, 4, reason);
  EXPECT(object.reason == reason);
  EXPECT(DAT_GET_TYPE(status) == DAT_COMM_NOT_SUPPORTED && DAT_GET_SUBTYPE(status) == DAT_INVALID_HANDLE_CSP);
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  EXPECT(DAT_CNO_CREATE(&object, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno) == DAT_SUCCESS && cno == &object);

  // The macros of the extension.
  DAT_LMR_TRIPLET local;
  DAT_RMR_TRIPLET remote;
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = 0x1122334455667788;
  const DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
  EXPECT(dat_ib_post_fetch_and_add(&object, 5, &local, cookie, &remote, flags) == DAT_SUCCESS);
  EXPECT(seen.operation == DAT_IB_FETCH_AND_ADD_OP && seen.handle == &object && seen.numbers[0] == 5);
  EXPECT(seen.local == &local && seen.cookie.as_64 == cookie.as_64 && seen.remote == &remote && seen.flags == flags);
  EXPECT(dat_ib_post_cmp_and_swap(&object, 6, 7, &local, cookie, &remote, flags) == DAT_SUCCESS);
  EXPECT(seen.operation == DAT_IB_CMP_AND_SWAP_OP && seen.numbers[0] == 6 && seen.numbers[1] == 7);
  EXPECT(seen.local == &local && seen.cookie.as_64 == cookie.as_64 && seen.remote == &remote && seen.flags == flags);
  EXPECT(dat_ib_post_rdma_write_immed(&object, 1, &local, cookie, &remote, 0x7777, flags) == DAT_SUCCESS);
  EXPECT(seen.operation == DAT_IB_RDMA_WRITE_IMMED_OP && seen.segments == 1 && seen.immediate == 0x7777);
  EXPECT(seen.local == &local && seen.cookie.as_64 == cookie.as_64 && seen.remote == &remote && seen.flags == flags);

  // The data of the extension fit where events have room for them (D2-EXT-6).
  DAT_EVENT event;
  EXPECT(sizeof(DAT_IB_EXTENSION_EVENT_DATA) <= sizeof event.event_extension_data);

  // The structure that a query fills has a constant member in C, and can be declared all the same.
  static DAT_PROVIDER_ATTR attributes;
  EXPECT(attributes.evd_stream_merging_supported[5][5] == DAT_FALSE);
  return 0;
}
