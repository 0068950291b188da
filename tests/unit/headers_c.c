// SPDX-License-Identifier: BSD-3-Clause
// The headers as a C program sees them. Every row of the ABI table is asserted when this file is compiled; what C
// cannot assert at compile time is done by headers_c_first_failure(), which a C++ test calls.
#include "unit/headers_c.h"

#include <dat/dat_registry.h>
#include <dat/udat.h>
#include <string.h>

// HDR-3: values, sizes, offsets. C has the last word on the signedness of an enumeration.
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
#include "unit/abi_facts.inc"

// A provider of our own, so that the redirecting macros can be called from C.
struct object {
  DAT_PROVIDER* provider;
  DAT_COUNT low_watermark;
};

static DAT_RETURN set_low_watermark(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark) {
  ((struct object*)srq_handle)->low_watermark = low_watermark;
  return DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_SRQ_IN_USE;
}

static DAT_RETURN create_cno(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE* cno_handle) {
  *cno_handle = agent.instance_data == NULL && agent.proxy_agent_func == NULL ? ia_handle : DAT_HANDLE_NULL;
  return DAT_SUCCESS;
}

#define EXPECT(condition) \
  if (!(condition)) return __LINE__

int headers_c_first_failure(void) {
  EXPECT(DAT_HANDLE_NULL == NULL);
  EXPECT((uintptr_t)DAT_EVD_ASYNC_EXISTS == 1 && (uintptr_t)DAT_EVD_OUT_OF_SCOPE == 2);
  EXPECT(strcmp(DAT_PROVIDER_INIT_FUNC_STR, "dat_provider_init") == 0);
  EXPECT(strcmp(DAT_PROVIDER_FINI_FUNC_STR, "dat_provider_fini") == 0);

  // The macro that stands for no agent, as an initialiser and in an assignment.
  DAT_OS_WAIT_PROXY_AGENT agent = DAT_OS_WAIT_PROXY_AGENT_NULL;
  EXPECT(agent.instance_data == NULL && agent.proxy_agent_func == NULL);
  agent.instance_data = &agent;
  agent = DAT_OS_WAIT_PROXY_AGENT_NULL;
  EXPECT(agent.instance_data == NULL);

  // The macros find the table in the first word of the object.
  DAT_PROVIDER provider;
  memset(&provider, 0, sizeof provider);
  provider.srq_set_lw_func = set_low_watermark;
  provider.cno_create_func = create_cno;
  struct object object = {&provider, 0};
  const DAT_RETURN status = DAT_SRQ_SET_LW(&object, 7);
  EXPECT(object.low_watermark == 7);
  EXPECT(DAT_GET_TYPE(status) == DAT_INVALID_STATE && DAT_GET_SUBTYPE(status) == DAT_INVALID_STATE_SRQ_IN_USE);
  EXPECT(!DAT_IS_WARNING(status));
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  EXPECT(DAT_CNO_CREATE(&object, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno) == DAT_SUCCESS && cno == &object);

  // TYPE-4: the helpers put the byte that their name says first.
  const DAT_LMR_CONTEXT context = DAT_LMRC_TO_MSB(0x01020304U);
  const DAT_VADDR address = DAT_VADDR_TO_LSB(UINT64_C(0x0102030405060708));
  EXPECT(memcmp(&context, "\1\2\3\4", 4) == 0 && memcmp(&address, "\10\7\6\5\4\3\2\1", 8) == 0);

  // The structure that a query fills has a constant member in C, and can be declared all the same.
  static DAT_PROVIDER_ATTR attributes;
  EXPECT(attributes.evd_stream_merging_supported[5][5] == DAT_FALSE);
  return 0;
}
