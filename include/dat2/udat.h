/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The user-mode Direct Access Programming Library, version 2.0: all a program needs (rule D2-HDR-1).
 *
 * The calls that user-mode and kernel-mode programs share, and what holds for every call, stand in <dat2/dat.h>. A
 * Provider also includes <dat2/dat_registry.h>, a program that uses the extension <dat2/dat_ib_extensions.h>.
 * <dat/udat.h> is version 1.2: a translation unit includes one of the two.
 */
#ifndef UDAT2_H
#define UDAT2_H

#include <dat2/dat.h>
#include <dat2/dat_error.h>
#include <dat2/dat_platform_specific.h>
#include <dat2/dat_vendor_specific.h>
#include <dat2/udat_config.h>
#include <dat2/udat_vendor_specific.h>

#ifdef __cplusplus
extern "C" {
#endif
/* The calls are the library's exports, whatever visibility the including file is compiled with. */
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* ---- Memory regions: rules LMR-CREATE, LMR-QUERY, D2-LMR ---- */

/* What a region is made from; each names a member of DAT_REGION_DESCRIPTION. */
typedef enum dat_mem_type {
  DAT_MEM_TYPE_VIRTUAL = 0x00,       /* for_va: a range of this process's memory */
  DAT_MEM_TYPE_LMR = 0x01,           /* for_lmr_handle: the memory of another region */
  DAT_MEM_TYPE_SHARED_VIRTUAL = 0x02 /* for_shared_memory: a range that other processes map too */
} DAT_MEM_TYPE;

/* Names shared memory: every process that registers the same memory passes the same bytes. All of them count. */
#define DAT_LMR_COOKIE_SIZE 40
typedef char (*DAT_LMR_COOKIE)[DAT_LMR_COOKIE_SIZE];

typedef struct dat_shared_memory {
  DAT_PVOID virtual_address; /* where this process has mapped it */
  DAT_LMR_COOKIE shared_memory_id;
} DAT_SHARED_MEMORY;

typedef union dat_region_description {
  DAT_PVOID for_va;
  DAT_LMR_HANDLE for_lmr_handle;
  DAT_SHARED_MEMORY for_shared_memory;
} DAT_REGION_DESCRIPTION;

struct dat_lmr_param {
  DAT_IA_HANDLE ia_handle;
  DAT_MEM_TYPE mem_type;
  DAT_REGION_DESCRIPTION region_desc;
  DAT_VLEN length;
  DAT_PZ_HANDLE pz_handle;
  DAT_MEM_PRIV_FLAGS mem_priv;
  DAT_VA_TYPE va_type;
  DAT_LMR_CONTEXT lmr_context;
  DAT_RMR_CONTEXT rmr_context;
  DAT_VLEN registered_size;
  DAT_VADDR registered_address;
};

/* Registers memory of the program with the adapter; it stays the program's, and must stay mapped until the region is
 * freed. mem_privileges says who may do what. *lmr_context names the region in this process's operations, *rmr_context
 * in peers' (0 without a remote privilege). va_type says what addresses in triplets are; for DAT_VA_TYPE_ZB
 * *registered_address is 0. The last four results may be NULL. Length 0 gives DAT_LENGTH_ERROR; shared memory that is
 * not shared DAT_INVALID_STATE. */
DAT_RETURN dat_lmr_create(IN DAT_IA_HANDLE ia_handle, IN DAT_MEM_TYPE mem_type,
                          IN DAT_REGION_DESCRIPTION region_description, IN DAT_VLEN length, IN DAT_PZ_HANDLE pz_handle,
                          IN DAT_MEM_PRIV_FLAGS mem_privileges, IN DAT_VA_TYPE va_type, OUT DAT_LMR_HANDLE* lmr_handle,
                          OUT DAT_LMR_CONTEXT* lmr_context, OUT DAT_RMR_CONTEXT* rmr_context,
                          OUT DAT_VLEN* registered_size, OUT DAT_VADDR* registered_address);
DAT_RETURN dat_lmr_query(IN DAT_LMR_HANDLE lmr_handle, IN DAT_LMR_PARAM_MASK lmr_param_mask,
                         OUT DAT_LMR_PARAM* lmr_param);

/* ---- Event dispatchers: rules EVD-CREATE to EVD-CLRUNW, EVM ---- */

/* For the asynchronous EVD of dat_ia_open(): in, it exists elsewhere; out, it is not this program's. */
#define DAT_EVD_ASYNC_EXISTS ((DAT_EVD_HANDLE)(uintptr_t)0x1)
#define DAT_EVD_OUT_OF_SCOPE ((DAT_EVD_HANDLE)(uintptr_t)0x2)

/* Three parts, each with exactly one value. The CONFIG part is a number in two bits: compare state & 0x30 with it. */
typedef enum dat_evd_state {
  DAT_EVD_STATE_ENABLED = 0x01, /* events trigger the CNO */
  DAT_EVD_STATE_DISABLED = 0x02,
  DAT_EVD_STATE_WAITABLE = 0x04,
  DAT_EVD_STATE_UNWAITABLE = 0x08,
  DAT_EVD_STATE_CONFIG_NOTIFY = 0x10,    /* unsignalled completions notify no waiter */
  DAT_EVD_STATE_CONFIG_SOLICITED = 0x20, /* only receives of solicited Sends notify */
  DAT_EVD_STATE_CONFIG_THRESHOLD = 0x30  /* every completion notifies; waiters are released by the count */
} DAT_EVD_STATE;

typedef DAT_HANDLE DAT_CNO_HANDLE;

struct dat_evd_param {
  DAT_IA_HANDLE ia_handle;
  DAT_COUNT evd_qlen; /* capacity, not fill */
  DAT_EVD_STATE evd_state;
  DAT_CNO_HANDLE cno_handle;
  DAT_EVD_FLAGS evd_flags;
};

/* A queue for at least evd_min_qlen events of the kinds in evd_flags. cno_handle may be DAT_HANDLE_NULL. */
DAT_RETURN dat_evd_create(IN DAT_IA_HANDLE ia_handle, IN DAT_COUNT evd_min_qlen, IN DAT_CNO_HANDLE cno_handle,
                          IN DAT_EVD_FLAGS evd_flags, OUT DAT_EVD_HANDLE* evd_handle);
/* The CNO that later events trigger; DAT_HANDLE_NULL for none. */
DAT_RETURN dat_evd_modify_cno(IN DAT_EVD_HANDLE evd_handle, IN DAT_CNO_HANDLE cno_handle);
/* Whether events trigger the CNO. Events are queued either way; enabling does not replay what came before. */
DAT_RETURN dat_evd_enable(IN DAT_EVD_HANDLE evd_handle);
DAT_RETURN dat_evd_disable(IN DAT_EVD_HANDLE evd_handle);
/* Waits until `threshold` events are queued, then takes the first; *nmore tells how many are left. One thread at a
 * time. DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL (a signal), DAT_ABORT (freed meanwhile), DAT_INVALID_STATE (another
 * waiter, or unwaitable) take none; *nmore is then how many are queued. */
DAT_RETURN dat_evd_wait(IN DAT_EVD_HANDLE evd_handle, IN DAT_TIMEOUT timeout, IN DAT_COUNT threshold,
                        OUT DAT_EVENT* event, OUT DAT_COUNT* nmore);
/* Sends waiters away with DAT_INVALID_STATE, and every later one, until it is waitable again. */
DAT_RETURN dat_evd_set_unwaitable(IN DAT_EVD_HANDLE evd_handle);
DAT_RETURN dat_evd_clear_unwaitable(IN DAT_EVD_HANDLE evd_handle);

/* ---- Consumer notification objects: rules CNO-AGT to CNO-WAIT, D2-CNO ---- */

/* Called once when the CNO is triggered, in any thread, with no lock held; evd_handle is a hint, or NULL when the CNO
 * is released by a teardown. Then it is gone from the CNO until it is set anew. */
typedef void (*DAT_AGENT_FUNC)(DAT_PVOID instance_data, DAT_EVD_HANDLE evd_handle);

typedef struct dat_os_wait_proxy_agent {
  DAT_PVOID instance_data; /* the program's; passed on as it is */
  DAT_AGENT_FUNC proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;

/* No agent. C wants a compound literal here, which ISO C++ does not have. */
#ifdef __cplusplus
#define DAT_OS_WAIT_PROXY_AGENT_NULL (DAT_OS_WAIT_PROXY_AGENT())
#else
#define DAT_OS_WAIT_PROXY_AGENT_NULL ((DAT_OS_WAIT_PROXY_AGENT){NULL, NULL})
#endif

/* Who learns of triggers beside the threads in dat_cno_wait(). */
typedef enum dat_proxy_type {
  DAT_PROXY_TYPE_NONE = 0x0,
  DAT_PROXY_TYPE_AGENT = 0x1, /* a function of the program */
  DAT_PROXY_TYPE_FD = 0x2     /* a descriptor */
} DAT_PROXY_TYPE;

/* proxy_type tells which member of the union is valid. */
typedef struct dat_cno_param {
  DAT_IA_HANDLE ia_handle;
  DAT_PROXY_TYPE proxy_type;
  union {
    DAT_OS_WAIT_PROXY_AGENT agent;
    DAT_FD fd;
    DAT_PVOID none;
  } proxy;
} DAT_CNO_PARAM;

/* No bits, but numbers (rule D2-CNO-12). */
typedef enum dat_cno_param_mask {
  DAT_CNO_FIELD_IA_HANDLE = 0x1,
  DAT_CNO_FIELD_PROXY_TYPE = 0x2,
  DAT_CNO_FIELD_PROXY = 0x3,
  DAT_CNO_FIELD_ALL = 0x4
} DAT_CNO_PARAM_MASK;

DAT_RETURN dat_cno_create(IN DAT_IA_HANDLE ia_handle, IN DAT_OS_WAIT_PROXY_AGENT agent, OUT DAT_CNO_HANDLE* cno_handle);
/* A CNO with a descriptor that poll(2), select(2) and epoll(7) can wait for: readable from a trigger until
 * dat_cno_trigger() or dat_cno_wait() takes it. The descriptor is the Provider's: dat_cno_free() closes it, and the
 * program does nothing with it but wait. */
DAT_RETURN dat_cno_fd_create(IN DAT_IA_HANDLE ia_handle, OUT DAT_FD* fd, OUT DAT_CNO_HANDLE* cno_handle);
/* Takes the trigger that is latched, without waiting, and tells which EVD caused it; DAT_HANDLE_NULL if there is none.
 */
DAT_RETURN dat_cno_trigger(IN DAT_CNO_HANDLE cno_handle, OUT DAT_EVD_HANDLE* evd_handle);
/* Replaces the agent; a trigger that is already latched does not call the new one. */
DAT_RETURN dat_cno_modify_agent(IN DAT_CNO_HANDLE cno_handle, IN DAT_OS_WAIT_PROXY_AGENT agent);
DAT_RETURN dat_cno_query(IN DAT_CNO_HANDLE cno_handle, IN DAT_CNO_PARAM_MASK cno_param_mask,
                         OUT DAT_CNO_PARAM* cno_param);
/* DAT_INVALID_STATE while an EVD points at it or a thread waits on it. */
DAT_RETURN dat_cno_free(IN DAT_CNO_HANDLE cno_handle);
/* Waits for a trigger and tells which EVD caused it. The program then polls all EVDs of the CNO until they are empty,
 * as triggers merge. DAT_QUEUE_EMPTY when the time is up. */
DAT_RETURN dat_cno_wait(IN DAT_CNO_HANDLE cno_handle, IN DAT_TIMEOUT timeout, OUT DAT_EVD_HANDLE* evd_handle);

/* ---- The upper bits of DAT_IA_ATTR_MASK ---- */

#define DAT_IA_FIELD_IA_EXTENSION UINT64_C(0x100000000)
#define DAT_IA_FIELD_IA_EXTENSION_VERSION UINT64_C(0x200000000)
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR UINT64_C(0x400000000)
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR UINT64_C(0x800000000)
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR UINT64_C(0x1000000000)
#define DAT_IA_FIELD_IA_VENDOR_ATTR UINT64_C(0x2000000000)
#define DAT_IA_FIELD_ALL UINT64_C(0x3fffffffff)

/* ---- Attributes of the Provider: rules PRV-ATTR, D2-IA ---- */

typedef enum dat_pz_support { DAT_PZ_UNIQUE = 0, DAT_PZ_SHAREABLE = 1 } DAT_PZ_SUPPORT;

/* Unions of flags are or-ed values of their enumeration. The three srq and recv counts are hexadecimal digits, not
 * counts (ruling A35). The arrays belong to the Provider and last as long as the IA is open. */
struct dat_provider_attr {
  char provider_name[DAT_NAME_MAX_LENGTH];
  DAT_UINT32 provider_version_major;
  DAT_UINT32 provider_version_minor;
  DAT_UINT32 dapl_version_major;
  DAT_UINT32 dapl_version_minor;
  DAT_MEM_TYPE lmr_mem_types_supported;
  DAT_IOV_OWNERSHIP iov_ownership_on_return;
  DAT_QOS dat_qos_supported;
  DAT_COMPLETION_FLAGS completion_flags_supported;
  DAT_BOOLEAN is_thread_safe;
  DAT_COUNT max_private_data_size; /* bytes, at least 64 */
  DAT_BOOLEAN supports_multipath;
  DAT_EP_CREATOR_FOR_PSP ep_creator;
  DAT_PZ_SUPPORT pz_support;
  DAT_UINT32 optimal_buffer_alignment; /* bytes; divides DAT_OPTIMAL_ALIGNMENT */
/* Whether two kinds of streams may feed one EVD: software, connection request, DTO, connection, RMR bind,
 * asynchronous. Constant in C only: in C++ that would forbid variables and assignment of the structure (HDR-6). */
#ifdef __cplusplus
  DAT_BOOLEAN evd_stream_merging_supported[6][6];
#else
  const DAT_BOOLEAN evd_stream_merging_supported[6][6];
#endif
  DAT_BOOLEAN srq_supported;
  DAT_COUNT srq_watermarks_supported; /* 0x001 SRQ low, 0x010 endpoint soft high, 0x100 endpoint hard high */
  DAT_BOOLEAN srq_ep_pz_difference_supported;
  DAT_COUNT srq_info_supported;     /* 0x01 available_dto_count, 0x10 outstanding_dto_count */
  DAT_COUNT ep_recv_info_supported; /* 0x01 nbufs_allocated, 0x10 bufs_alloc_span */
  DAT_BOOLEAN lmr_sync_req;
  DAT_BOOLEAN dto_async_return_guaranteed;
  DAT_BOOLEAN rdma_write_for_rdma_read_req;
  DAT_BOOLEAN rdma_read_lmr_rmr_context_exposure; /* whether the sink of an RDMA Read is open to the peer for more */
  DAT_RMR_SCOPE rmr_scope_supported;
  DAT_BOOLEAN is_signal_safe; /* whether calls may be made in signal handlers */
  DAT_BOOLEAN ha_supported;
  DAT_HA_LB ha_loadbalancing;
  DAT_COUNT num_provider_specific_attr;
  DAT_NAMED_ATTR* provider_specific_attr;
};

#define DAT_PROVIDER_FIELD_PROVIDER_NAME UINT64_C(0x00000001)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MAJOR UINT64_C(0x00000002)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MINOR UINT64_C(0x00000004)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR UINT64_C(0x00000008)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR UINT64_C(0x00000010)
#define DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED UINT64_C(0x00000020)
#define DAT_PROVIDER_FIELD_IOV_OWNERSHIP UINT64_C(0x00000040)
#define DAT_PROVIDER_FIELD_DAT_QOS_SUPPORTED UINT64_C(0x00000080)
#define DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED UINT64_C(0x00000100)
#define DAT_PROVIDER_FIELD_IS_THREAD_SAFE UINT64_C(0x00000200)
#define DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE UINT64_C(0x00000400)
#define DAT_PROVIDER_FIELD_SUPPORTS_MULTIPATH UINT64_C(0x00000800)
#define DAT_PROVIDER_FIELD_EP_CREATOR UINT64_C(0x00001000)
#define DAT_PROVIDER_FIELD_PZ_SUPPORT UINT64_C(0x00002000)
#define DAT_PROVIDER_FIELD_OPTIMAL_BUFFER_ALIGNMENT UINT64_C(0x00004000)
#define DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED UINT64_C(0x00008000)
#define DAT_PROVIDER_FIELD_SRQ_SUPPORTED UINT64_C(0x00010000)
#define DAT_PROVIDER_FIELD_SRQ_WATERMARKS_SUPPORTED UINT64_C(0x00020000)
#define DAT_PROVIDER_FIELD_SRQ_EP_PZ_DIFFERENCE_SUPPORTED UINT64_C(0x00040000)
#define DAT_PROVIDER_FIELD_SRQ_INFO_SUPPORTED UINT64_C(0x00080000)
#define DAT_PROVIDER_FIELD_EP_RECV_INFO_SUPPORTED UINT64_C(0x00100000)
#define DAT_PROVIDER_FIELD_LMR_SYNC_REQ UINT64_C(0x00200000)
#define DAT_PROVIDER_FIELD_DTO_ASYNC_RETURN_GUARANTEED UINT64_C(0x00400000)
#define DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ UINT64_C(0x00800000)
#define DAT_PROVIDER_FIELD_RDMA_READ_LMR_RMR_CONTEXT_EXPOSURE UINT64_C(0x01000000)
#define DAT_PROVIDER_FIELD_RMR_SCOPE_SUPPORTED UINT64_C(0x02000000)
#define DAT_PROVIDER_FIELD_IS_SIGNAL_SAFE UINT64_C(0x04000000)
#define DAT_PROVIDER_FIELD_HA_SUPPORTED UINT64_C(0x08000000)
#define DAT_PROVIDER_FIELD_HA_LB UINT64_C(0x10000000)
#define DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR UINT64_C(0x20000000)
#define DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR UINT64_C(0x40000000)
#define DAT_PROVIDER_FIELD_ALL UINT64_C(0x7fffffff)
#define DAT_PROVIDER_FIELD_NONE UINT64_C(0x0)

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

/* Last: the call table needs all of the types above. */
#include <dat2/udat_redirection.h>

#endif
