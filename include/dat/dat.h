/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The part of DAT that user-mode and kernel-mode programs share: endpoints, connections, data transfer, memory, shared
 * receive queues, events. Programs include <dat/udat.h>, which brings this file.
 *
 * What holds for every call, unless its own comment says otherwise:
 * - Every call answers with a DAT_RETURN (<dat/dat_error.h>). A failed call changes nothing, and leaves what its OUT
 *   arguments point to undefined.
 * - A handle that is NULL, freed, of another kind, or of another IA gives DAT_INVALID_HANDLE; any other bad argument
 *   DAT_INVALID_PARAMETER; lack of memory, of an IA limit or of queue slots DAT_INSUFFICIENT_RESOURCES.
 * - Structures that a call reads are the program's and are copied during the call. Structures that a query fills are
 *   the program's too; the pointers in them lead to memory of the Provider, readable as long as the object exists.
 * - Handles belong to the program from the call that makes the object to the call that frees it; dat_ia_close() with
 *   the abrupt flag frees whatever is left.
 * - Lengths and sizes are bytes, time-outs microseconds, addresses and lengths 64 bits wide in host byte order.
 * - Comments name the chapters of docs/spec that say the rest, by the start of their rules' IDs (SRQ-QUERY).
 * - Flags and masks with undefined bits are refused. A query mask selects the members that must be filled.
 */
#ifndef DAT_H
#define DAT_H

#include <dat/dat_error.h>
#include <dat/dat_platform_specific.h>

/* Mark the direction of an argument. Programs use them in prototypes of their own. */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef INOUT
#define INOUT
#endif

#ifdef __cplusplus
extern "C" {
#endif
/* The calls are the library's exports, whatever visibility the including file is compiled with. */
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef enum dat_boolean { DAT_FALSE = 0, DAT_TRUE = 1 } DAT_BOOLEAN;

/* Names: NUL-terminated, at most DAT_NAME_MAX_LENGTH bytes with the NUL. A `const DAT_NAME_PTR` argument is a constant
 * pointer, as the standard has it; the call does not write through it either way. */
typedef char* DAT_NAME_PTR;
#define DAT_NAME_MAX_LENGTH 256

/* An attribute that only some Providers have, as two strings of the Provider. */
typedef struct dat_named_attr {
  const char* name;
  const char* value;
} DAT_NAMED_ATTR;

/* 64 bits that belong to the program and come back unchanged: the context of an object, the cookie of an operation. */
typedef union dat_context {
  DAT_PVOID as_ptr;
  DAT_UINT64 as_64;
  DAT_UVERYLONG as_index;
} DAT_CONTEXT;
typedef DAT_CONTEXT DAT_DTO_COOKIE;
typedef DAT_CONTEXT DAT_RMR_COOKIE;

/* Microseconds. */
typedef DAT_UINT32 DAT_TIMEOUT;
#define DAT_TIMEOUT_INFINITE ((DAT_TIMEOUT)~0)

/* Handles. All have one C type, so the compiler cannot tell them apart; the calls can. The first word of the object
 * behind a handle is a DAT_PROVIDER pointer (rule HND-9). */
typedef DAT_PVOID DAT_HANDLE;
typedef DAT_HANDLE DAT_CR_HANDLE;
typedef DAT_HANDLE DAT_EP_HANDLE;
typedef DAT_HANDLE DAT_EVD_HANDLE;
typedef DAT_HANDLE DAT_IA_HANDLE;
typedef DAT_HANDLE DAT_LMR_HANDLE;
typedef DAT_HANDLE DAT_PSP_HANDLE;
typedef DAT_HANDLE DAT_PZ_HANDLE;
typedef DAT_HANDLE DAT_RMR_HANDLE;
typedef DAT_HANDLE DAT_RSP_HANDLE;
typedef DAT_HANDLE DAT_SRQ_HANDLE;
#define DAT_HANDLE_NULL ((DAT_HANDLE)NULL)

typedef enum dat_handle_type {
  DAT_HANDLE_TYPE_CR = 0,
  DAT_HANDLE_TYPE_EP,
  DAT_HANDLE_TYPE_EVD,
  DAT_HANDLE_TYPE_IA,
  DAT_HANDLE_TYPE_LMR,
  DAT_HANDLE_TYPE_PSP,
  DAT_HANDLE_TYPE_PZ,
  DAT_HANDLE_TYPE_RMR,
  DAT_HANDLE_TYPE_RSP,
  DAT_HANDLE_TYPE_CNO,
  DAT_HANDLE_TYPE_SRQ
} DAT_HANDLE_TYPE;

/* An IPv4 or IPv6 socket address; the port in it is ignored. The side that passes it owns the storage. */
typedef DAT_SOCK_ADDR* DAT_IA_ADDRESS_PTR;

/* A connection qualifier names a service point of an IA, a port qualifier one end of a connection. */
typedef DAT_UINT64 DAT_CONN_QUAL;
typedef DAT_UINT64 DAT_PORT_QUAL;

typedef DAT_UINT64 DAT_VLEN;
typedef DAT_UINT64 DAT_VADDR;

/* What operations name a memory region by: locally in a DAT_LMR_TRIPLET, from a peer in a DAT_RMR_TRIPLET. 0 is none.
 */
typedef DAT_UINT32 DAT_LMR_CONTEXT;
typedef DAT_UINT32 DAT_RMR_CONTEXT;

/* Completed when the headers of a mode define them; here only pointers to them are needed. */
typedef struct dat_provider DAT_PROVIDER;
typedef struct dat_provider_attr DAT_PROVIDER_ATTR;
typedef struct dat_evd_param DAT_EVD_PARAM;
typedef struct dat_lmr_param DAT_LMR_PARAM;
typedef DAT_UINT64 DAT_PROVIDER_ATTR_MASK;

/* ---- Flags ---- */

/* How an operation completes, and, as an endpoint attribute, which of these its operations may use. */
typedef enum dat_completion_flags {
  DAT_COMPLETION_DEFAULT_FLAG = 0x00,
  DAT_COMPLETION_SUPPRESS_FLAG = 0x01,       /* no event if the operation succeeds; requests only */
  DAT_COMPLETION_SOLICITED_WAIT_FLAG = 0x02, /* on a Send: its arrival notifies the peer's waiter */
  DAT_COMPLETION_UNSIGNALLED_FLAG = 0x04,    /* an event, but one that notifies no waiter */
  DAT_COMPLETION_BARRIER_FENCE_FLAG = 0x08,  /* starts after all earlier RDMA Reads are complete */
  DAT_COMPLETION_EVD_THRESHOLD_FLAG = 0x10   /* attribute only: waiters are released by the count of events */
} DAT_COMPLETION_FLAGS;

typedef enum dat_qos {
  DAT_QOS_BEST_EFFORT = 0x00,
  DAT_QOS_HIGH_THROUGHPUT = 0x01,
  DAT_QOS_LOW_LATENCY = 0x02,
  DAT_QOS_ECONOMY = 0x04,
  DAT_QOS_PREMIUM = 0x08
} DAT_QOS;

typedef enum dat_connect_flags { DAT_CONNECT_DEFAULT_FLAG = 0x00, DAT_CONNECT_MULTIPATH_FLAG = 0x01 } DAT_CONNECT_FLAGS;

typedef enum dat_close_flags {
  DAT_CLOSE_ABRUPT_FLAG = 0x00,  /* at once; work in progress is flushed */
  DAT_CLOSE_GRACEFUL_FLAG = 0x01 /* an endpoint first drains its requests; an IA must be free of objects */
} DAT_CLOSE_FLAGS;
#define DAT_CLOSE_DEFAULT DAT_CLOSE_ABRUPT_FLAG

/* The kinds of event streams that may feed an EVD. */
typedef enum dat_evd_flags {
  DAT_EVD_SOFTWARE_FLAG = 0x001,
  DAT_EVD_CR_FLAG = 0x010,
  DAT_EVD_DTO_FLAG = 0x020,
  DAT_EVD_CONNECTION_FLAG = 0x040,
  DAT_EVD_RMR_BIND_FLAG = 0x080,
  DAT_EVD_ASYNC_FLAG = 0x100,
  DAT_EVD_DEFAULT_FLAG = 0x1f0 /* all but software */
} DAT_EVD_FLAGS;

typedef enum dat_psp_flags {
  DAT_PSP_CONSUMER_FLAG = 0x00, /* the program supplies the endpoint when it accepts */
  DAT_PSP_PROVIDER_FLAG = 0x01  /* each request comes with an endpoint */
} DAT_PSP_FLAGS;

/* What may be done to a memory region, by this process and by peers. */
typedef enum dat_mem_priv_flags {
  DAT_MEM_PRIV_NONE_FLAG = 0x00,
  DAT_MEM_PRIV_LOCAL_READ_FLAG = 0x01,
  DAT_MEM_PRIV_REMOTE_READ_FLAG = 0x02,
  DAT_MEM_PRIV_LOCAL_WRITE_FLAG = 0x10,
  DAT_MEM_PRIV_REMOTE_WRITE_FLAG = 0x20,
  DAT_MEM_PRIV_ALL_FLAG = 0x33,
  DAT_MEM_PRIV_RO_DISABLE_FLAG = 0x100 /* known to Solaris programs: accepted and without effect (LMR-CREATE-23) */
} DAT_MEM_PRIV_FLAGS;
#define DAT_MEM_PRIV_READ_FLAG ((DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG))
#define DAT_MEM_PRIV_WRITE_FLAG ((DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG))

/* ---- Memory segments and regions ---- */

/* A stretch of local memory inside an LMR. With segment_length 0 context and address do not matter. pad is ignored. */
typedef struct dat_lmr_triplet {
  DAT_LMR_CONTEXT lmr_context;
  DAT_UINT32 pad;
  DAT_VADDR virtual_address;
  DAT_VLEN segment_length;
} DAT_LMR_TRIPLET;

/* A stretch of a peer's memory, in this host's byte order; the Provider converts it for the wire (rule TYPE-3). */
typedef struct dat_rmr_triplet {
  DAT_RMR_CONTEXT rmr_context;
  DAT_UINT32 pad;
  DAT_VADDR target_address;
  DAT_VLEN segment_length;
} DAT_RMR_TRIPLET;

/* For programs that send triplets in messages: a value with its least (LSB) or most (MSB) significant byte first in
 * memory. Each of these is its own inverse, so the peer applies the same one (rule TYPE-4). */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define DAT_LMRC_TO_LSB(context) ((DAT_LMR_CONTEXT)(context))
#define DAT_LMRC_TO_MSB(context) ((DAT_LMR_CONTEXT)__builtin_bswap32((DAT_LMR_CONTEXT)(context)))
#define DAT_RMRC_TO_LSB(context) ((DAT_RMR_CONTEXT)(context))
#define DAT_RMRC_TO_MSB(context) ((DAT_RMR_CONTEXT)__builtin_bswap32((DAT_RMR_CONTEXT)(context)))
#define DAT_VADDR_TO_LSB(address) ((DAT_VADDR)(address))
#define DAT_VADDR_TO_MSB(address) ((DAT_VADDR)__builtin_bswap64((DAT_VADDR)(address)))
#define DAT_VLEN_TO_LSB(length) ((DAT_VLEN)(length))
#define DAT_VLEN_TO_MSB(length) ((DAT_VLEN)__builtin_bswap64((DAT_VLEN)(length)))
#else
#define DAT_LMRC_TO_LSB(context) ((DAT_LMR_CONTEXT)__builtin_bswap32((DAT_LMR_CONTEXT)(context)))
#define DAT_LMRC_TO_MSB(context) ((DAT_LMR_CONTEXT)(context))
#define DAT_RMRC_TO_LSB(context) ((DAT_RMR_CONTEXT)__builtin_bswap32((DAT_RMR_CONTEXT)(context)))
#define DAT_RMRC_TO_MSB(context) ((DAT_RMR_CONTEXT)(context))
#define DAT_VADDR_TO_LSB(address) ((DAT_VADDR)__builtin_bswap64((DAT_VADDR)(address)))
#define DAT_VADDR_TO_MSB(address) ((DAT_VADDR)(address))
#define DAT_VLEN_TO_LSB(length) ((DAT_VLEN)__builtin_bswap64((DAT_VLEN)(length)))
#define DAT_VLEN_TO_MSB(length) ((DAT_VLEN)(length))
#endif

typedef enum dat_lmr_param_mask {
  DAT_LMR_FIELD_IA_HANDLE = 0x001,
  DAT_LMR_FIELD_MEM_TYPE = 0x002,
  DAT_LMR_FIELD_REGION_DESC = 0x004,
  DAT_LMR_FIELD_LENGTH = 0x008,
  DAT_LMR_FIELD_PZ_HANDLE = 0x010,
  DAT_LMR_FIELD_MEM_PRIV = 0x020,
  DAT_LMR_FIELD_LMR_CONTEXT = 0x040,
  DAT_LMR_FIELD_RMR_CONTEXT = 0x080,
  DAT_LMR_FIELD_REGISTERED_SIZE = 0x100,
  DAT_LMR_FIELD_REGISTERED_ADDRESS = 0x200,
  DAT_LMR_FIELD_ALL = 0x3ff
} DAT_LMR_PARAM_MASK;

/* An RMR is a window onto part of an LMR. Until it is bound, all but the first two members are undefined. */
typedef struct dat_rmr_param {
  DAT_IA_HANDLE ia_handle;
  DAT_PZ_HANDLE pz_handle;
  DAT_LMR_TRIPLET lmr_triplet;
  DAT_MEM_PRIV_FLAGS mem_priv;
  DAT_RMR_CONTEXT rmr_context;
} DAT_RMR_PARAM;

typedef enum dat_rmr_param_mask {
  DAT_RMR_FIELD_IA_HANDLE = 0x01,
  DAT_RMR_FIELD_PZ_HANDLE = 0x02,
  DAT_RMR_FIELD_LMR_TRIPLET = 0x04,
  DAT_RMR_FIELD_MEM_PRIV = 0x08,
  DAT_RMR_FIELD_RMR_CONTEXT = 0x10,
  DAT_RMR_FIELD_ALL = 0x1f
} DAT_RMR_PARAM_MASK;

typedef struct dat_pz_param {
  DAT_IA_HANDLE ia_handle;
} DAT_PZ_PARAM;

typedef enum dat_pz_param_mask { DAT_PZ_FIELD_IA_HANDLE = 0x01, DAT_PZ_FIELD_ALL = 0x01 } DAT_PZ_PARAM_MASK;

/* ---- Attributes of an interface adapter: rules IA-ATTR ---- */

/* Provider attribute: who owns the array of segments between a post and its completion. */
typedef enum dat_iov_ownership {
  DAT_IOV_CONSUMER = 0x0,       /* the program, as soon as the post returns */
  DAT_IOV_PROVIDER_NOMOD = 0x1, /* the Provider, which leaves it as it is */
  DAT_IOV_PROVIDER_MOD = 0x2    /* the Provider, which may change it */
} DAT_IOV_OWNERSHIP;

/* Provider attribute: who may make the endpoint for a request at a public service point. */
typedef enum dat_ep_creator_for_psp {
  DAT_PSP_CREATES_EP_NEVER,
  DAT_PSP_CREATES_EP_IFASKED,
  DAT_PSP_CREATES_EP_ALWAYS
} DAT_EP_CREATOR_FOR_PSP;

/* The limits are real: a request above one fails. Creating within them may still meet a shared shortage. The address
 * and the attribute arrays belong to the Provider and last as long as the IA is open. */
typedef struct dat_ia_attr {
  char adapter_name[DAT_NAME_MAX_LENGTH]; /* the name it was opened by */
  char vendor_name[DAT_NAME_MAX_LENGTH];
  DAT_UINT32 hardware_version_major;
  DAT_UINT32 hardware_version_minor;
  DAT_UINT32 firmware_version_major;
  DAT_UINT32 firmware_version_minor;
  DAT_IA_ADDRESS_PTR ia_address_ptr; /* where peers connect to */
  DAT_COUNT max_eps;
  DAT_COUNT max_dto_per_ep; /* outstanding at once, in each direction */
  DAT_COUNT max_rdma_read_per_ep_in;
  DAT_COUNT max_rdma_read_per_ep_out;
  DAT_COUNT max_evds;
  DAT_COUNT max_evd_qlen;
  DAT_COUNT max_iov_segments_per_dto;
  DAT_COUNT max_lmrs;
  DAT_VLEN max_lmr_block_size;
  DAT_VADDR max_lmr_virtual_address;
  DAT_COUNT max_pzs;
  DAT_VLEN max_message_size;
  DAT_VLEN max_rdma_size;
  DAT_COUNT max_rmrs;
  DAT_VADDR max_rmr_target_address;
  DAT_COUNT max_srqs;
  DAT_COUNT max_ep_per_srq;
  DAT_COUNT max_recv_per_srq;
  DAT_COUNT max_iov_segments_per_rdma_read;
  DAT_COUNT max_iov_segments_per_rdma_write;
  DAT_COUNT max_rdma_read_in;
  DAT_COUNT max_rdma_read_out;
  DAT_BOOLEAN max_rdma_read_per_ep_in_guaranteed; /* whatever other endpoints use */
  DAT_BOOLEAN max_rdma_read_per_ep_out_guaranteed;
  DAT_COUNT num_transport_attr;
  DAT_NAMED_ATTR* transport_attr;
  DAT_COUNT num_vendor_attr;
  DAT_NAMED_ATTR* vendor_attr;
} DAT_IA_ATTR;

typedef DAT_UINT64 DAT_IA_ATTR_MASK;
#define DAT_IA_FIELD_IA_ADAPTER_NAME UINT64_C(0x000000001)
#define DAT_IA_FIELD_IA_VENDOR_NAME UINT64_C(0x000000002)
#define DAT_IA_FIELD_IA_HARDWARE_MAJOR_VERSION UINT64_C(0x000000004)
#define DAT_IA_FIELD_IA_HARDWARE_MINOR_VERSION UINT64_C(0x000000008)
#define DAT_IA_FIELD_IA_FIRMWARE_MAJOR_VERSION UINT64_C(0x000000010)
#define DAT_IA_FIELD_IA_FIRMWARE_MINOR_VERSION UINT64_C(0x000000020)
#define DAT_IA_FIELD_IA_ADDRESS_PTR UINT64_C(0x000000040)
#define DAT_IA_FIELD_IA_MAX_EPS UINT64_C(0x000000080)
#define DAT_IA_FIELD_IA_MAX_DTO_PER_EP UINT64_C(0x000000100)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN UINT64_C(0x000000200)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT UINT64_C(0x000000400)
#define DAT_IA_FIELD_IA_MAX_EVDS UINT64_C(0x000000800)
#define DAT_IA_FIELD_IA_MAX_EVD_QLEN UINT64_C(0x000001000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO UINT64_C(0x000002000)
#define DAT_IA_FIELD_IA_MAX_LMRS UINT64_C(0x000004000)
#define DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE UINT64_C(0x000008000)
#define DAT_IA_FIELD_IA_MAX_LMR_VIRTUAL_ADDRESS UINT64_C(0x000010000)
#define DAT_IA_FIELD_IA_MAX_PZS UINT64_C(0x000020000)
#define DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE UINT64_C(0x000040000)
#define DAT_IA_FIELD_IA_MAX_RDMA_SIZE UINT64_C(0x000080000)
#define DAT_IA_FIELD_IA_MAX_RMRS UINT64_C(0x000100000)
#define DAT_IA_FIELD_IA_MAX_RMR_TARGET_ADDRESS UINT64_C(0x000200000)
#define DAT_IA_FIELD_IA_MAX_SRQS UINT64_C(0x000400000)
#define DAT_IA_FIELD_IA_MAX_EP_PER_SRQ UINT64_C(0x000800000)
#define DAT_IA_FIELD_IA_MAX_RECV_PER_SRQ UINT64_C(0x001000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_READ UINT64_C(0x002000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_WRITE UINT64_C(0x004000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_IN UINT64_C(0x008000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_OUT UINT64_C(0x010000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN_GUARANTEED UINT64_C(0x020000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT_GUARANTEED UINT64_C(0x040000000)
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR UINT64_C(0x080000000)
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR UINT64_C(0x100000000)
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR UINT64_C(0x200000000)
#define DAT_IA_FIELD_IA_VENDOR_ATTR UINT64_C(0x400000000)
#define DAT_IA_FIELD_ALL UINT64_C(0x7ffffffff)
#define DAT_IA_FIELD_NONE UINT64_C(0x0)

/* Names from before version 1.2 (rules HDR-7, HDR-8). */
#define max_rdma_read_per_ep max_rdma_read_per_ep_in
#define max_mtu_size max_message_size
#define DAT_IA_FIELD_IA_MAX_DTO_PER_OP DAT_IA_FIELD_IA_MAX_DTO_PER_EP
#define DAT_IA_FIELD_IA_MAX_MTU_SIZE DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE
#define DAT_IA_ALL DAT_IA_FIELD_ALL

/* ---- Endpoints ---- */

typedef enum dat_service_type {
  DAT_SERVICE_TYPE_RC /* reliable connections, the only type */
} DAT_SERVICE_TYPE;

/* "Unconfigured" endpoints were made by the Provider for a service point and still lack a zone or EVDs. */
typedef enum dat_ep_state {
  DAT_EP_STATE_UNCONNECTED,
  DAT_EP_STATE_UNCONFIGURED_UNCONNECTED,
  DAT_EP_STATE_RESERVED,
  DAT_EP_STATE_UNCONFIGURED_RESERVED,
  DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
  DAT_EP_STATE_UNCONFIGURED_PASSIVE,
  DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
  DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
  DAT_EP_STATE_UNCONFIGURED_TENTATIVE,
  DAT_EP_STATE_CONNECTED,
  DAT_EP_STATE_DISCONNECT_PENDING,
  DAT_EP_STATE_DISCONNECTED,
  DAT_EP_STATE_COMPLETION_PENDING
} DAT_EP_STATE;
#define DAT_EP_STATE_ERROR DAT_EP_STATE_DISCONNECTED

/* Sizes are the longest message and RDMA in bytes; counts are what may be outstanding at once; 0 for an RDMA vector
 * length means max_request_iov. The attribute arrays are read during the call that gets them. */
typedef struct dat_ep_attr {
  DAT_SERVICE_TYPE service_type;
  DAT_VLEN max_message_size;
  DAT_VLEN max_rdma_size;
  DAT_QOS qos;
  DAT_COMPLETION_FLAGS recv_completion_flags;
  DAT_COMPLETION_FLAGS request_completion_flags;
  DAT_COUNT max_recv_dtos;
  DAT_COUNT max_request_dtos;
  DAT_COUNT max_recv_iov;
  DAT_COUNT max_request_iov;
  DAT_COUNT max_rdma_read_in;
  DAT_COUNT max_rdma_read_out;
  DAT_COUNT srq_soft_hw; /* soft high watermark at creation, or DAT_HW_DEFAULT */
  DAT_COUNT max_rdma_read_iov;
  DAT_COUNT max_rdma_write_iov;
  DAT_COUNT ep_transport_specific_count;
  DAT_NAMED_ATTR* ep_transport_specific;
  DAT_COUNT ep_provider_specific_count;
  DAT_NAMED_ATTR* ep_provider_specific;
} DAT_EP_ATTR;

/* The remote end is defined while a connection is being made, stands or is ending. */
typedef struct dat_ep_param {
  DAT_IA_HANDLE ia_handle;
  DAT_EP_STATE ep_state;
  DAT_IA_ADDRESS_PTR local_ia_address_ptr;
  DAT_PORT_QUAL local_port_qual;
  DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
  DAT_PORT_QUAL remote_port_qual;
  DAT_PZ_HANDLE pz_handle;
  DAT_EVD_HANDLE recv_evd_handle;
  DAT_EVD_HANDLE request_evd_handle;
  DAT_EVD_HANDLE connect_evd_handle;
  DAT_SRQ_HANDLE srq_handle;
  DAT_EP_ATTR ep_attr;
} DAT_EP_PARAM;

typedef DAT_UINT64 DAT_EP_PARAM_MASK;
#define DAT_EP_FIELD_IA_HANDLE UINT64_C(0x00000001)
#define DAT_EP_FIELD_EP_STATE UINT64_C(0x00000002)
#define DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR UINT64_C(0x00000004)
#define DAT_EP_FIELD_LOCAL_PORT_QUAL UINT64_C(0x00000008)
#define DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR UINT64_C(0x00000010)
#define DAT_EP_FIELD_REMOTE_PORT_QUAL UINT64_C(0x00000020)
#define DAT_EP_FIELD_PZ_HANDLE UINT64_C(0x00000040)
#define DAT_EP_FIELD_RECV_EVD_HANDLE UINT64_C(0x00000080)
#define DAT_EP_FIELD_REQUEST_EVD_HANDLE UINT64_C(0x00000100)
#define DAT_EP_FIELD_CONNECT_EVD_HANDLE UINT64_C(0x00000200)
#define DAT_EP_FIELD_SRQ_HANDLE UINT64_C(0x00000400)
/* 0x800 stands for nothing. */
#define DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE UINT64_C(0x00001000)
#define DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE UINT64_C(0x00002000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE UINT64_C(0x00004000)
#define DAT_EP_FIELD_EP_ATTR_QOS UINT64_C(0x00008000)
#define DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS UINT64_C(0x00010000)
#define DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS UINT64_C(0x00020000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS UINT64_C(0x00040000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS UINT64_C(0x00080000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV UINT64_C(0x00100000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV UINT64_C(0x00200000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN UINT64_C(0x00400000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT UINT64_C(0x00800000)
#define DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW UINT64_C(0x01000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV UINT64_C(0x02000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV UINT64_C(0x04000000)
#define DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR UINT64_C(0x08000000)
#define DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR UINT64_C(0x10000000)
#define DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR UINT64_C(0x20000000)
#define DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR UINT64_C(0x40000000)
#define DAT_EP_FIELD_EP_ATTR_ALL UINT64_C(0x7ffff000)
#define DAT_EP_FIELD_ALL UINT64_C(0x7ffff7ff)

/* High watermarks of an endpoint on a shared receive queue. "No limit" is -1, not a large number. */
#define DAT_WATERMARK_INFINITE ((DAT_COUNT)~0)
#define DAT_HW_DEFAULT DAT_WATERMARK_INFINITE

/* ---- Shared receive queues ---- */

/* No low-watermark event is wanted. */
#define DAT_SRQ_LW_DEFAULT 0
/* In place of a count that the Provider does not keep. */
#define DAT_VALUE_UNKNOWN (((DAT_COUNT)~0) - 1)

typedef enum dat_srq_state { DAT_SRQ_STATE_OPERATIONAL, DAT_SRQ_STATE_ERROR } DAT_SRQ_STATE;

/* max_recv_dtos is the most receives that may be outstanding, max_recv_iov the most segments of one. */
typedef struct dat_srq_attr {
  DAT_COUNT max_recv_dtos;
  DAT_COUNT max_recv_iov;
  DAT_COUNT low_watermark;
} DAT_SRQ_ATTR;

/* available: receives that an endpoint could take now. outstanding: those plus the ones that endpoints hold plus the
 * ones completed whose events the program has not taken off their EVDs. Both come from one snapshot. */
typedef struct dat_srq_param {
  DAT_IA_HANDLE ia_handle;
  DAT_SRQ_STATE srq_state;
  DAT_PZ_HANDLE pz_handle;
  DAT_COUNT max_recv_dtos;
  DAT_COUNT max_recv_iov;
  DAT_COUNT low_watermark;
  DAT_COUNT available_dto_count;
  DAT_COUNT outstanding_dto_count;
} DAT_SRQ_PARAM;

typedef enum dat_srq_param_mask {
  DAT_SRQ_FIELD_IA_HANDLE = 0x01,
  DAT_SRQ_FIELD_SRQ_STATE = 0x02,
  DAT_SRQ_FIELD_PZ_HANDLE = 0x04,
  DAT_SRQ_FIELD_MAX_RECV_DTO = 0x08,
  DAT_SRQ_FIELD_MAX_RECV_IOV = 0x10,
  DAT_SRQ_FIELD_LOW_WATERMARK = 0x20,
  DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT = 0x40,
  DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT = 0x80,
  DAT_SRQ_FIELD_ALL = 0xff
} DAT_SRQ_PARAM_MASK;

/* ---- Service points and connection requests ---- */

typedef struct dat_psp_param {
  DAT_IA_HANDLE ia_handle;
  DAT_CONN_QUAL conn_qual;
  DAT_EVD_HANDLE evd_handle;
  DAT_PSP_FLAGS psp_flags;
} DAT_PSP_PARAM;

typedef enum dat_psp_param_mask {
  DAT_PSP_FIELD_IA_HANDLE = 0x01,
  DAT_PSP_FIELD_CONN_QUAL = 0x02,
  DAT_PSP_FIELD_EVD_HANDLE = 0x04,
  DAT_PSP_FIELD_PSP_FLAGS = 0x08,
  DAT_PSP_FIELD_ALL = 0x0f
} DAT_PSP_PARAM_MASK;

typedef struct dat_rsp_param {
  DAT_IA_HANDLE ia_handle;
  DAT_CONN_QUAL conn_qual;
  DAT_EVD_HANDLE evd_handle;
  DAT_EP_HANDLE ep_handle;
} DAT_RSP_PARAM;

typedef enum dat_rsp_param_mask {
  DAT_RSP_FIELD_IA_HANDLE = 0x01,
  DAT_RSP_FIELD_CONN_QUAL = 0x02,
  DAT_RSP_FIELD_EVD_HANDLE = 0x04,
  DAT_RSP_FIELD_EP_HANDLE = 0x08,
  DAT_RSP_FIELD_ALL = 0x0f
} DAT_RSP_PARAM_MASK;

/* Address and private data belong to the Provider and last until the request is accepted, rejected or handed off. */
typedef struct dat_cr_param {
  DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
  DAT_PORT_QUAL remote_port_qual;
  DAT_COUNT private_data_size;
  DAT_PVOID private_data;
  DAT_EP_HANDLE local_ep_handle; /* NULL if the program is to supply one */
} DAT_CR_PARAM;

typedef enum dat_cr_param_mask {
  DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR = 0x01,
  DAT_CR_FIELD_REMOTE_PORT_QUAL = 0x02,
  DAT_CR_FIELD_PRIVATE_DATA_SIZE = 0x04,
  DAT_CR_FIELD_PRIVATE_DATA = 0x08,
  DAT_CR_FIELD_LOCAL_EP_HANDLE = 0x10,
  DAT_CR_FIELD_ALL = 0x1f
} DAT_CR_PARAM_MASK;

/* ---- Events: rules EVT, STAT ---- */

/* How an operation ended. Anything but success and flushed also breaks the connection (rule EVT-12). */
typedef enum dat_dto_completion_status {
  DAT_DTO_SUCCESS = 0,
  DAT_DTO_ERR_FLUSHED,            /* not carried out: the connection ended or never came up */
  DAT_DTO_ERR_LOCAL_LENGTH,       /* the message is longer than the receive buffer */
  DAT_DTO_ERR_LOCAL_EP,           /* the endpoint is inconsistent */
  DAT_DTO_ERR_LOCAL_PROTECTION,   /* local memory refuses: its region, zone or privileges */
  DAT_DTO_ERR_BAD_RESPONSE,       /* the peer's transport answered nonsense */
  DAT_DTO_ERR_REMOTE_ACCESS,      /* the peer's memory refuses */
  DAT_DTO_ERR_REMOTE_RESPONDER,   /* the peer could not carry it out */
  DAT_DTO_ERR_TRANSPORT,          /* the connection failed under it */
  DAT_DTO_ERR_RECEIVER_NOT_READY, /* the peer had no receive for it in time */
  DAT_DTO_ERR_PARTIAL_PACKET,     /* only part of the data came */
  DAT_RMR_OPERATION_FAILED        /* a bind failed */
} DAT_DTO_COMPLETION_STATUS;

#define DAT_DTO_LENGTH_ERROR DAT_DTO_ERR_LOCAL_LENGTH
#define DAT_DTO_FAILURE DAT_DTO_ERR_FLUSHED
#define DAT_RMR_BIND_SUCCESS DAT_DTO_SUCCESS
#define DAT_RMR_BIND_FAILURE DAT_DTO_ERR_FLUSHED
#define DAT_RMR_BIND_COMPLETION_STATUS DAT_DTO_COMPLETION_STATUS

/* transfered_length, bytes, is defined for a success only. (The name is spelled so by the standard.) */
typedef struct dat_dto_completion_event_data {
  DAT_EP_HANDLE ep_handle;
  DAT_DTO_COOKIE user_cookie;
  DAT_DTO_COMPLETION_STATUS status;
  DAT_VLEN transfered_length;
} DAT_DTO_COMPLETION_EVENT_DATA;

typedef struct dat_rmr_bind_completion_event_data {
  DAT_RMR_HANDLE rmr_handle;
  DAT_RMR_COOKIE user_cookie;
  DAT_RMR_BIND_COMPLETION_STATUS status;
} DAT_RMR_BIND_COMPLETION_EVENT_DATA;

typedef union dat_sp_handle {
  DAT_RSP_HANDLE rsp_handle;
  DAT_PSP_HANDLE psp_handle;
} DAT_SP_HANDLE;

/* A connection request has come to a service point. The program owns cr_handle until it accepts, rejects or hands it
 * off, one of which it must do. */
typedef struct dat_cr_arrival_event_data {
  DAT_SP_HANDLE sp_handle;
  DAT_IA_ADDRESS_PTR local_ia_address_ptr;
  DAT_CONN_QUAL conn_qual;
  DAT_CR_HANDLE cr_handle;
} DAT_CR_ARRIVAL_EVENT_DATA;

/* private_data is what the accepting side passed; only ESTABLISHED on the connecting side has any. It belongs to the
 * Provider and lasts until the endpoint is freed or reset. */
typedef struct dat_connection_event_data {
  DAT_EP_HANDLE ep_handle;
  DAT_COUNT private_data_size;
  DAT_PVOID private_data;
} DAT_CONNECTION_EVENT_DATA;

/* The meaning of an asynchronous event's `reason` goes by the type of its dat_handle. */
typedef enum ia_async_error_reason { DAT_IA_CATASTROPHIC_ERROR, DAT_IA_OTHER_ERROR } DAT_IA_ASYNC_ERROR_REASON;

typedef enum ep_async_error_reason {
  DAT_EP_TRANSFER_TO_ERROR,
  DAT_EP_OTHER_ERROR,
  DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT /* no error: the endpoint holds more receives than its soft high watermark */
} DAT_EP_ASYNC_ERROR_REASON;

typedef enum evd_async_error_reason { DAT_EVD_OVERFLOW_ERROR, DAT_EVD_OTHER_ERROR } DAT_EVD_ASYNC_ERROR_REASON;

typedef enum srq_async_error_reason {
  DAT_SRQ_TRANSFER_TO_ERROR,
  DAT_SRQ_OTHER_ERROR,
  DAT_SRQ_LOW_WATERMARK_EVENT /* no error: fewer receives are available than the low watermark */
} DAT_SRQ_ASYNC_ERROR_REASON;

typedef enum lmr_async_error_reason { DAT_LMR_OTHER_ERROR } DAT_LMR_ASYNC_ERROR_REASON;

typedef enum rmr_async_error_reason { DAT_RMR_OTHER_ERROR } DAT_RMR_ASYNC_ERROR_REASON;

typedef enum pz_async_error_reason { DAT_PZ_OTHER_ERROR } DAT_PZ_ASYNC_ERROR_REASON;

typedef struct dat_asynch_error_event_data {
  DAT_HANDLE dat_handle;
  DAT_COUNT reason;
} DAT_ASYNCH_ERROR_EVENT_DATA;

typedef struct dat_software_event_data {
  DAT_PVOID pointer; /* as posted */
} DAT_SOFTWARE_EVENT_DATA;

typedef enum dat_event_number {
  DAT_DTO_COMPLETION_EVENT = 0x00001,

  DAT_RMR_BIND_COMPLETION_EVENT = 0x01001,

  DAT_CONNECTION_REQUEST_EVENT = 0x02001,

  DAT_CONNECTION_EVENT_ESTABLISHED = 0x04001,
  DAT_CONNECTION_EVENT_PEER_REJECTED = 0x04002,
  DAT_CONNECTION_EVENT_NON_PEER_REJECTED = 0x04003,
  DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR = 0x04004,
  DAT_CONNECTION_EVENT_DISCONNECTED = 0x04005,
  DAT_CONNECTION_EVENT_BROKEN = 0x04006,
  DAT_CONNECTION_EVENT_TIMED_OUT = 0x04007,
  DAT_CONNECTION_EVENT_UNREACHABLE = 0x04008,

  DAT_ASYNC_ERROR_EVD_OVERFLOW = 0x08001,
  DAT_ASYNC_ERROR_IA_CATASTROPHIC = 0x08002,
  DAT_ASYNC_ERROR_EP_BROKEN = 0x08003, /* also carries the endpoint's watermark event */
  DAT_ASYNC_ERROR_TIMED_OUT = 0x08004,
  DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR = 0x08005, /* also carries the SRQ's watermark event */

  DAT_SOFTWARE_EVENT = 0x10001
} DAT_EVENT_NUMBER;

/* event_number tells which member of the union is valid. */
typedef union dat_event_data {
  DAT_DTO_COMPLETION_EVENT_DATA dto_completion_event_data;
  DAT_RMR_BIND_COMPLETION_EVENT_DATA rmr_completion_event_data;
  DAT_CR_ARRIVAL_EVENT_DATA cr_arrival_event_data;
  DAT_CONNECTION_EVENT_DATA connect_event_data;
  DAT_ASYNCH_ERROR_EVENT_DATA asynch_error_event_data;
  DAT_SOFTWARE_EVENT_DATA software_event_data;
} DAT_EVENT_DATA;

typedef struct dat_event {
  DAT_EVENT_NUMBER event_number;
  DAT_EVD_HANDLE evd_handle; /* the EVD it was taken from */
  DAT_EVENT_DATA event_data;
} DAT_EVENT;

typedef enum dat_evd_param_mask {
  DAT_EVD_FIELD_IA_HANDLE = 0x01,
  DAT_EVD_FIELD_EVD_QLEN = 0x02,
  DAT_EVD_FIELD_EVD_STATE = 0x04,
  DAT_EVD_FIELD_CNO = 0x08,
  DAT_EVD_FIELD_EVD_FLAGS = 0x10,
  DAT_EVD_FIELD_ALL = 0x1f
} DAT_EVD_PARAM_MASK;

/* ---- Interface adapters and the registry: rules IA-OPEN, IA-QUERY, IA-CLOSE, REG-LIST, STRERR ---- */

/* One IA name that the registry knows. */
typedef struct dat_provider_info {
  char ia_name[DAT_NAME_MAX_LENGTH];
  DAT_UINT32 dapl_version_major;
  DAT_UINT32 dapl_version_minor;
  DAT_BOOLEAN is_thread_safe;
} DAT_PROVIDER_INFO;

/* Opens an adapter by name and makes an instance with an asynchronous EVD.
 *
 * *async_evd_handle says which: DAT_HANDLE_NULL makes one of at least async_evd_min_qlen events, owned by the instance
 * and returned here; the asynchronous EVD of another instance is shared; DAT_EVD_ASYNC_EXISTS leaves it to one that
 * exists elsewhere, and DAT_EVD_OUT_OF_SCOPE is returned. Unknown names, versions and safety give
 * DAT_PROVIDER_NOT_FOUND. */
#define dat_ia_open(ia_name_ptr, async_evd_min_qlen, async_evd_handle, ia_handle)                         \
  dat_ia_openv((ia_name_ptr), (async_evd_min_qlen), (async_evd_handle), (ia_handle), (DAT_VERSION_MAJOR), \
               (DAT_VERSION_MINOR), (DAT_THREADSAFE))

/* What dat_ia_open() calls, with the version and the thread safety that the program was built for. */
DAT_RETURN dat_ia_openv(IN const DAT_NAME_PTR ia_name_ptr, IN DAT_COUNT async_evd_min_qlen,
                        INOUT DAT_EVD_HANDLE* async_evd_handle, OUT DAT_IA_HANDLE* ia_handle, IN DAT_UINT32 dapl_major,
                        IN DAT_UINT32 dapl_minor, IN DAT_BOOLEAN thread_safety);

/* The limits of the adapter and what its Provider can do. Either structure may be NULL if its mask is 0. */
DAT_RETURN dat_ia_query(IN DAT_IA_HANDLE ia_handle, OUT DAT_EVD_HANDLE* async_evd_handle,
                        IN DAT_IA_ATTR_MASK ia_attr_mask, OUT DAT_IA_ATTR* ia_attributes,
                        IN DAT_PROVIDER_ATTR_MASK provider_attr_mask, OUT DAT_PROVIDER_ATTR* provider_attributes);

/* Graceful: DAT_INVALID_STATE while an object of the instance is left. Abrupt: frees them all, and always succeeds. */
DAT_RETURN dat_ia_close(IN DAT_IA_HANDLE ia_handle, IN DAT_CLOSE_FLAGS ia_flags);

/* Lists the registry into max_to_return structures of the program. If those are too few: DAT_INVALID_PARAMETER, with
 * the number needed in *number_entries. */
DAT_RETURN dat_registry_list_providers(IN DAT_COUNT max_to_return, OUT DAT_COUNT* number_entries,
                                       OUT DAT_PROVIDER_INFO*(dat_provider_list[]));

/* The names of a return code's type and subtype, as strings that last for the life of the process. minor_message may be
 * NULL. A code that is not defined gives DAT_INVALID_PARAMETER. */
DAT_RETURN dat_strerror(IN DAT_RETURN value, OUT const char** major_message, OUT const char** minor_message);

/* ---- Any object: rules CTX-SET, CTX-GET, HTYPE ---- */

/* Each object carries one DAT_CONTEXT of the program; it is all zero at first, and only the program reads it. */
DAT_RETURN dat_set_consumer_context(IN DAT_HANDLE dat_handle, IN DAT_CONTEXT context);
DAT_RETURN dat_get_consumer_context(IN DAT_HANDLE dat_handle, OUT DAT_CONTEXT* context);
DAT_RETURN dat_get_handle_type(IN DAT_HANDLE dat_handle, OUT DAT_HANDLE_TYPE* handle_type);

/* ---- Connection requests: rules CR-QUERY, CR-ACC, CR-REJ, CR-HO ---- */

DAT_RETURN dat_cr_query(IN DAT_CR_HANDLE cr_handle, IN DAT_CR_PARAM_MASK cr_param_mask, OUT DAT_CR_PARAM* cr_param);
/* ep_handle is the program's endpoint for the connection, or NULL if the request came with one. private_data goes to
 * the peer's ESTABLISHED event. Success frees the request; ESTABLISHED or ACCEPT_COMPLETION_ERROR follows. */
DAT_RETURN dat_cr_accept(IN DAT_CR_HANDLE cr_handle, IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT private_data_size,
                         IN const DAT_PVOID private_data);
/* Frees the request; the peer gets PEER_REJECTED. */
DAT_RETURN dat_cr_reject(IN DAT_CR_HANDLE cr_handle);
/* Frees the request and passes it to the service point at `handoff`. */
DAT_RETURN dat_cr_handoff(IN DAT_CR_HANDLE cr_handle, IN DAT_CONN_QUAL handoff);

/* ---- Event dispatchers: rules EVM, EVD-RESIZE, EVD-POST, EVD-DEQ, EVD-QUERY, EVD-FREE; more in <dat/udat.h> ---- */

/* Changes the length of the queue; no event is lost. DAT_INVALID_STATE if more events are queued than would fit. */
DAT_RETURN dat_evd_resize(IN DAT_EVD_HANDLE evd_handle, IN DAT_COUNT evd_min_qlen);
/* Queues a software event. DAT_QUEUE_FULL if there is no room. The event is copied. */
DAT_RETURN dat_evd_post_se(IN DAT_EVD_HANDLE evd_handle, IN const DAT_EVENT* event);
/* Takes the oldest event without waiting: DAT_QUEUE_EMPTY if there is none, DAT_INVALID_STATE while a thread waits. */
DAT_RETURN dat_evd_dequeue(IN DAT_EVD_HANDLE evd_handle, OUT DAT_EVENT* event);
DAT_RETURN dat_evd_query(IN DAT_EVD_HANDLE evd_handle, IN DAT_EVD_PARAM_MASK evd_param_mask,
                         OUT DAT_EVD_PARAM* evd_param);
/* DAT_INVALID_STATE while an object feeds it. Events still queued are lost; a waiter returns DAT_ABORT. */
DAT_RETURN dat_evd_free(IN DAT_EVD_HANDLE evd_handle);

/* ---- Endpoints: rules EP-CREATE to EP-WM, CONN, DTO, SEND, RECV, RDR, RDW ---- */

/* An EVD may be DAT_HANDLE_NULL: the events of that stream are then discarded. ep_attributes NULL: defaults, which
 * dat_ep_query() shows. */
DAT_RETURN dat_ep_create(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle, IN DAT_EVD_HANDLE recv_evd_handle,
                         IN DAT_EVD_HANDLE request_evd_handle, IN DAT_EVD_HANDLE connect_evd_handle,
                         IN const DAT_EP_ATTR* ep_attributes, OUT DAT_EP_HANDLE* ep_handle);
/* An endpoint that takes its receives from srq_handle instead of its own queue. */
DAT_RETURN dat_ep_create_with_srq(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle,
                                  IN DAT_EVD_HANDLE recv_evd_handle, IN DAT_EVD_HANDLE request_evd_handle,
                                  IN DAT_EVD_HANDLE connect_evd_handle, IN DAT_SRQ_HANDLE srq_handle,
                                  IN const DAT_EP_ATTR* ep_attributes, OUT DAT_EP_HANDLE* ep_handle);
DAT_RETURN dat_ep_query(IN DAT_EP_HANDLE ep_handle, IN DAT_EP_PARAM_MASK ep_param_mask, OUT DAT_EP_PARAM* ep_param);
/* Which members may change depends on the state; the others give DAT_INVALID_STATE or DAT_INVALID_PARAMETER. */
DAT_RETURN dat_ep_modify(IN DAT_EP_HANDLE ep_handle, IN DAT_EP_PARAM_MASK ep_param_mask,
                         IN const DAT_EP_PARAM* ep_param);
/* Starts a connection; exactly one connection event tells the outcome. private_data is copied. */
DAT_RETURN dat_ep_connect(IN DAT_EP_HANDLE ep_handle, IN DAT_IA_ADDRESS_PTR remote_ia_address,
                          IN DAT_CONN_QUAL remote_conn_qual, IN DAT_TIMEOUT timeout, IN DAT_COUNT private_data_size,
                          IN const DAT_PVOID private_data, IN DAT_QOS qos, IN DAT_CONNECT_FLAGS connect_flags);
/* The same, to where ep_dup_handle is connected. */
DAT_RETURN dat_ep_dup_connect(IN DAT_EP_HANDLE ep_handle, IN DAT_EP_HANDLE ep_dup_handle, IN DAT_TIMEOUT timeout,
                              IN DAT_COUNT private_data_size, IN const DAT_PVOID private_data, IN DAT_QOS qos);
/* Starts the end of a connection; DISCONNECTED follows on both sides. */
DAT_RETURN dat_ep_disconnect(IN DAT_EP_HANDLE ep_handle, IN DAT_CLOSE_FLAGS close_flags);

/* Posts. They never block. Success means queued; one completion event on the EVD of the direction tells the result,
 * unless it is suppressed or that EVD is NULL. Until then the memory belongs to the Provider. local_iov is the
 * program's again when the call returns, if the Provider says DAT_IOV_CONSUMER. An unknown region or one without the
 * privilege gives DAT_PRIVILEGES_VIOLATION, one of another zone DAT_PROTECTION_VIOLATION, a segment outside its region
 * or too many bytes DAT_INVALID_PARAMETER, a full queue DAT_INSUFFICIENT_RESOURCES. */
DAT_RETURN dat_ep_post_send(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments, IN DAT_LMR_TRIPLET* local_iov,
                            IN DAT_DTO_COOKIE user_cookie, IN DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat_ep_post_recv(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments, IN DAT_LMR_TRIPLET* local_iov,
                            IN DAT_DTO_COOKIE user_cookie, IN DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat_ep_post_rdma_read(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments, IN DAT_LMR_TRIPLET* local_iov,
                                 IN DAT_DTO_COOKIE user_cookie, IN const DAT_RMR_TRIPLET* remote_buffer,
                                 IN DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat_ep_post_rdma_write(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments, IN DAT_LMR_TRIPLET* local_iov,
                                  IN DAT_DTO_COOKIE user_cookie, IN const DAT_RMR_TRIPLET* remote_buffer,
                                  IN DAT_COMPLETION_FLAGS completion_flags);

/* Any OUT pointer may be NULL. "Idle" means that no operation of the direction is outstanding. */
DAT_RETURN dat_ep_get_status(IN DAT_EP_HANDLE ep_handle, OUT DAT_EP_STATE* ep_state, OUT DAT_BOOLEAN* recv_idle,
                             OUT DAT_BOOLEAN* request_idle);
/* Ends a connection if there is one, without an event for the freed endpoint. */
DAT_RETURN dat_ep_free(IN DAT_EP_HANDLE ep_handle);
/* From disconnected back to unconnected, ready for another connection; attributes, EVDs and watermarks stay. */
DAT_RETURN dat_ep_reset(IN DAT_EP_HANDLE ep_handle);
/* How many receives the endpoint holds uncompleted, and how many completions would follow if every message that is
 * arriving came in whole. Either pointer may be NULL. */
DAT_RETURN dat_ep_recv_query(IN DAT_EP_HANDLE ep_handle, OUT DAT_COUNT* nbufs_allocated,
                             OUT DAT_COUNT* bufs_alloc_span);
/* Arms the watermarks: above the soft one the IA gets one asynchronous event, above the hard one the connection is
 * broken. DAT_WATERMARK_INFINITE turns either off. */
DAT_RETURN dat_ep_set_watermark(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT soft_high_watermark,
                                IN DAT_COUNT hard_high_watermark);

/* ---- Memory: rules LMR-QUERY, LMR-FREE, LMR-SYNC, RMR-CREATE to RMR-FREE, PZ-CREATE to PZ-FREE ---- */

DAT_RETURN dat_lmr_query(IN DAT_LMR_HANDLE lmr_handle, IN DAT_LMR_PARAM_MASK lmr_param_mask,
                         OUT DAT_LMR_PARAM* lmr_param);
/* Ends the registration; the memory itself is untouched. DAT_INVALID_STATE while an RMR is bound to it. */
DAT_RETURN dat_lmr_free(IN DAT_LMR_HANDLE lmr_handle);
/* Needed only if the Provider says lmr_sync_req: make memory consistent before a peer's RDMA Read of it, and after a
 * peer's RDMA Write to it. num_segments has 64 bits. */
DAT_RETURN dat_lmr_sync_rdma_read(IN DAT_IA_HANDLE ia_handle, IN const DAT_LMR_TRIPLET* local_segments,
                                  IN DAT_VLEN num_segments);
DAT_RETURN dat_lmr_sync_rdma_write(IN DAT_IA_HANDLE ia_handle, IN const DAT_LMR_TRIPLET* local_segments,
                                   IN DAT_VLEN num_segments);

DAT_RETURN dat_rmr_create(IN DAT_PZ_HANDLE pz_handle, OUT DAT_RMR_HANDLE* rmr_handle);
DAT_RETURN dat_rmr_query(IN DAT_RMR_HANDLE rmr_handle, IN DAT_RMR_PARAM_MASK rmr_param_mask,
                         OUT DAT_RMR_PARAM* rmr_param);
/* Posts a bind of the window to part of a region, through a connected endpoint; length 0 unbinds. *rmr_context is the
 * new context, which a peer may use once the completion event has come. */
DAT_RETURN dat_rmr_bind(IN DAT_RMR_HANDLE rmr_handle, IN const DAT_LMR_TRIPLET* lmr_triplet,
                        IN DAT_MEM_PRIV_FLAGS mem_priv, IN DAT_EP_HANDLE ep_handle, IN DAT_RMR_COOKIE user_cookie,
                        IN DAT_COMPLETION_FLAGS completion_flags, OUT DAT_RMR_CONTEXT* rmr_context);
DAT_RETURN dat_rmr_free(IN DAT_RMR_HANDLE rmr_handle);

/* A protection zone ties endpoints and memory together: an operation uses only memory of its endpoint's zone. */
DAT_RETURN dat_pz_create(IN DAT_IA_HANDLE ia_handle, OUT DAT_PZ_HANDLE* pz_handle);
DAT_RETURN dat_pz_query(IN DAT_PZ_HANDLE pz_handle, IN DAT_PZ_PARAM_MASK pz_param_mask, OUT DAT_PZ_PARAM* pz_param);
/* DAT_INVALID_STATE while an object of the zone is left. */
DAT_RETURN dat_pz_free(IN DAT_PZ_HANDLE pz_handle);

/* ---- Service points: rules PSP-CREATE to PSP-FREE, RSP-CREATE to RSP-FREE ---- */

/* A public service point accepts any number of requests. A taken qualifier gives DAT_CONN_QUAL_IN_USE. */
DAT_RETURN dat_psp_create(IN DAT_IA_HANDLE ia_handle, IN DAT_CONN_QUAL conn_qual, IN DAT_EVD_HANDLE evd_handle,
                          IN DAT_PSP_FLAGS psp_flags, OUT DAT_PSP_HANDLE* psp_handle);
/* The same at a free qualifier, returned in *conn_qual; DAT_CONN_QUAL_UNAVAILABLE if there is none. */
DAT_RETURN dat_psp_create_any(IN DAT_IA_HANDLE ia_handle, OUT DAT_CONN_QUAL* conn_qual, IN DAT_EVD_HANDLE evd_handle,
                              IN DAT_PSP_FLAGS psp_flags, OUT DAT_PSP_HANDLE* psp_handle);
DAT_RETURN dat_psp_query(IN DAT_PSP_HANDLE psp_handle, IN DAT_PSP_PARAM_MASK psp_param_mask,
                         OUT DAT_PSP_PARAM* psp_param);
/* Requests already announced stay valid. */
DAT_RETURN dat_psp_free(IN DAT_PSP_HANDLE psp_handle);

/* A reserved service point accepts one request, for one endpoint. */
DAT_RETURN dat_rsp_create(IN DAT_IA_HANDLE ia_handle, IN DAT_CONN_QUAL conn_qual, IN DAT_EP_HANDLE ep_handle,
                          IN DAT_EVD_HANDLE evd_handle, OUT DAT_RSP_HANDLE* rsp_handle);
DAT_RETURN dat_rsp_query(IN DAT_RSP_HANDLE rsp_handle, IN DAT_RSP_PARAM_MASK rsp_param_mask,
                         OUT DAT_RSP_PARAM* rsp_param);
DAT_RETURN dat_rsp_free(IN DAT_RSP_HANDLE rsp_handle);

/* ---- Shared receive queues: rules SRQ-ACC to SRQ-LW ---- */

/* A pool of receives that many endpoints draw from. A low_watermark above 0 arms the queue at once. */
DAT_RETURN dat_srq_create(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle, IN DAT_SRQ_ATTR* srq_attr,
                          OUT DAT_SRQ_HANDLE* srq_handle);
/* Arms one asynchronous event for when fewer than low_watermark receives are available; at once if that is so now. */
DAT_RETURN dat_srq_set_lw(IN DAT_SRQ_HANDLE srq_handle, IN DAT_COUNT low_watermark);
/* DAT_INVALID_STATE while an endpoint uses it. Receives still on it go back to the program without events. */
DAT_RETURN dat_srq_free(IN DAT_SRQ_HANDLE srq_handle);
DAT_RETURN dat_srq_query(IN DAT_SRQ_HANDLE srq_handle, IN DAT_SRQ_PARAM_MASK srq_param_mask,
                         OUT DAT_SRQ_PARAM* srq_param);
/* Changes the length under load without losing a receive. DAT_INVALID_STATE below what is outstanding. */
DAT_RETURN dat_srq_resize(IN DAT_SRQ_HANDLE srq_handle, IN DAT_COUNT srq_max_recv_dto);
/* Adds one receive; its completion comes on the recv EVD of whichever endpoint takes it. The rules of posts hold. */
DAT_RETURN dat_srq_post_recv(IN DAT_SRQ_HANDLE srq_handle, IN DAT_COUNT num_segments, IN DAT_LMR_TRIPLET* local_iov,
                             IN DAT_DTO_COOKIE user_cookie);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
