/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The InfiniBand extension of uDAPL 2.0, version 2.0.9: RDMA Writes that carry a number to the receiver, atomic
 * operations, counters, a query without an open (rules D2-EXT to D2-QUERY). All of it goes through dat_extension_op()
 * and the macros below; an adapter has it if its extension_supported is DAT_EXTENSION_IB.
 *
 * Datagrams (UD) and collective operations are declared so that programs compile; no adapter of this library has them,
 * and they give DAT_MODEL_NOT_SUPPORTED.
 */
#ifndef DAT2_IB_EXTENSIONS_H
#define DAT2_IB_EXTENSIONS_H

#include <dat2/udat.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DAT_IB_EXTENSION_VERSION 209

/* Named attributes of a Provider, in provider_specific_attr, that tell what it can do. */
#define DAT_IB_ATTR_COUNTERS "DAT_COUNTERS"
#define DAT_IB_ATTR_FETCH_AND_ADD "DAT_IB_FETCH_AND_ADD"
#define DAT_IB_ATTR_CMP_AND_SWAP "DAT_IB_CMP_AND_SWAP"
#define DAT_IB_ATTR_IMMED_DATA "DAT_IB_IMMED_DATA"
#define DAT_IB_ATTR_UD "DAT_IB_UD"
#define DAT_IB_COLL_SET_CLOCK "DAT_COLL_SET_CLOCK"
#define DAT_IB_COLL_READ_CLOCK "DAT_COLL_READ_CLOCK"
#define DAT_IB_COLL_BROADCAST "DAT_COLL_BROADCAST"
#define DAT_IB_COLL_BARRIER "DAT_COLL_BARRIER"
#define DAT_IB_COLL_SCATTER "DAT_COLL_SCATTER"
#define DAT_IB_COLL_SCATTERV "DAT_COLL_SCATTERV"
#define DAT_IB_COLL_GATHER "DAT_COLL_GATHER"
#define DAT_IB_COLL_GATHERV "DAT_COLL_GATHERV"
#define DAT_IB_COLL_ALLGATHER "DAT_COLL_ALLGATHER"
#define DAT_IB_COLL_ALLGATHERV "DAT_COLL_ALLGATHERV"
#define DAT_IB_COLL_ALLTOALL "DAT_COLL_ALLTOALL"
#define DAT_IB_COLL_ALLTOALLV "DAT_COLL_ALLTOALLV"
#define DAT_IB_COLL_REDUCE "DAT_COLL_REDUCE"
#define DAT_IB_COLL_ALLREDUCE "DAT_COLL_ALLREDUCE"
#define DAT_IB_COLL_REDUCE_SCATTER "DAT_COLL_REDUCE_SCATTER"
#define DAT_IB_COLL_SCAN "DAT_COLL_SCAN"

/* ---- Events ---- */

typedef enum dat_ib_event_number {
  DAT_IB_DTO_EVENT = DAT_IB_EXTENSION_RANGE_BASE, /* an operation of the extension is complete, or came in */
  DAT_IB_UD_CONNECTION_REQUEST_EVENT,
  DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED,
  DAT_IB_UD_CONNECTION_REJECT_EVENT,
  DAT_IB_UD_CONNECTION_ERROR_EVENT,
  DAT_IB_COLLECTIVE_EVENT
} DAT_IB_EVENT_NUMBER;

/* What an event of the extension is about. */
typedef enum dat_ib_ext_type {
  DAT_IB_FETCH_AND_ADD,
  // 0
  DAT_IB_CMP_AND_SWAP,
  // 1
  DAT_IB_RDMA_WRITE_IMMED,
  // 2
  DAT_IB_RDMA_WRITE_IMMED_DATA,
  // 3
  DAT_IB_RECV_IMMED_DATA,
  // 4
  DAT_IB_UD_CONNECT_REQUEST,
  // 5
  DAT_IB_UD_REMOTE_AH,
  // 6
  DAT_IB_UD_PASSIVE_REMOTE_AH,
  // 7
  DAT_IB_UD_SEND,
  // 8
  DAT_IB_UD_RECV,
  // 9
  DAT_IB_UD_CONNECT_REJECT,
  // 10
  DAT_IB_UD_CONNECT_ERROR,
  // 11

  DAT_IB_COLLECTIVE_CREATE_STATUS,
  // 12
  DAT_IB_COLLECTIVE_CREATE_DATA,
  // 13
  DAT_IB_COLLECTIVE_CLOCK_SET_STATUS,
  // 14
  DAT_IB_COLLECTIVE_SCATTER_STATUS,
  // 15
  DAT_IB_COLLECTIVE_SCATTERV_STATUS,
  // 16
  DAT_IB_COLLECTIVE_GATHER_STATUS,
  // 17
  DAT_IB_COLLECTIVE_GATHERV_STATUS,
  // 18
  DAT_IB_COLLECTIVE_ALLGATHER_STATUS,
  // 19
  DAT_IB_COLLECTIVE_ALLGATHERV_STATUS,
  // 20
  DAT_IB_COLLECTIVE_ALLTOALL_STATUS,
  // 21
  DAT_IB_COLLECTIVE_ALLTOALLV_STATUS,
  // 22
  DAT_IB_COLLECTIVE_REDUCE_STATUS,
  // 23
  DAT_IB_COLLECTIVE_ALLREDUCE_STATUS,
  // 24
  DAT_IB_COLLECTIVE_REDUCE_SCATTER_STATUS,
  // 25
  DAT_IB_COLLECTIVE_SCAN_STATUS,
  // 26
  DAT_IB_COLLECTIVE_BROADCAST_STATUS,
  // 27
  DAT_IB_COLLECTIVE_BARRIER_STATUS,
  // 28
} DAT_IB_EXT_TYPE;

typedef enum dat_ib_status { DAT_OP_SUCCESS = DAT_SUCCESS, DAT_IB_OP_ERR, DAT_IB_COLL_COMP_ERR } DAT_IB_STATUS;

typedef enum dat_ib_return { DAT_IB_ERR = DAT_EXTENSION_BASE, DAT_IB_COLLECTIVE_ERR } DAT_IB_RETURN;

/* `operation` of a completion. */
typedef enum dat_ib_dtos {
  DAT_IB_DTO_RDMA_WRITE_IMMED = DAT_DTO_EXTENSION_BASE,
  DAT_IB_DTO_RECV_IMMED,
  DAT_IB_DTO_FETCH_ADD,
  DAT_IB_DTO_CMP_SWAP,
  DAT_IB_DTO_RECV_MSG_IMMED,
  DAT_IB_DTO_SEND_UD,
  DAT_IB_DTO_RECV_UD,
  DAT_IB_DTO_RECV_UD_IMMED,
  DAT_IB_DTO_COLLECTIVES
} DAT_IB_DTOS;

typedef enum dat_ib_handle_type {
  DAT_IB_HANDLE_TYPE_EXT = DAT_HANDLE_TYPE_EXTENSION_BASE,
  DAT_IB_HANDLE_TYPE_COLLECTIVE
} DAT_IB_HANDLE_TYPE;

/* Accepted by dat_evd_create() and not needed: DAT_EVD_DTO_FLAG is enough (rule D2-EVT-10). */
typedef enum dat_ib_evd_extension_flags {
  DAT_IB_EVD_EXTENSION_FLAG = DAT_EVD_EXTENSION_BASE
} DAT_IB_EVD_EXTENSION_FLAGS;

/* What dat_lmr_create() has to grant for atomic operations of peers. */
typedef enum dat_ib_mem_priv_flags {
  DAT_IB_MEM_PRIV_REMOTE_ATOMIC = DAT_MEM_PRIV_EXTENSION_BASE
} DAT_IB_MEM_PRIV_FLAGS;

typedef enum dat_ib_service_type { DAT_IB_SERVICE_TYPE_UD = DAT_SERVICE_TYPE_EXTENSION_BASE } DAT_IB_SERVICE_TYPE;

/* Where a datagram goes to. */
typedef struct dat_ib_addr_handle {
  struct ibv_ah* ah;
  DAT_UINT32 qpn;
  DAT_SOCK_ADDR6 ia_addr;
} DAT_IB_ADDR_HANDLE;

/* A number, in host byte order on both sides (rule D2-IMM-4). */
typedef struct dat_ib_immed_data {
  DAT_UINT32 data;
} DAT_IB_IMMED_DATA;

typedef DAT_HANDLE DAT_IB_COLLECTIVE_HANDLE;

typedef struct dat_ib_collective_event_data {
  DAT_HANDLE handle;
  DAT_CONTEXT context;
} DAT_IB_COLLECTIVE_EVENT_DATA;

/* What event_extension_data of a DAT_EVENT holds. `type` tells which of the rest is defined. */
typedef struct dat_ib_extension_event_data {
  DAT_IB_EXT_TYPE type;
  DAT_IB_STATUS status;
  union {
    DAT_IB_IMMED_DATA immed;
  } val;
  union {
    DAT_IB_ADDR_HANDLE remote_ah;
    DAT_IB_COLLECTIVE_EVENT_DATA coll;
  };
  DAT_CONTEXT context;
} DAT_IB_EXTENSION_EVENT_DATA;

/* ---- Operations ---- */

/* The second argument of dat_extension_op(). */
typedef enum dat_ib_op {
  DAT_IB_FETCH_AND_ADD_OP,
  DAT_IB_CMP_AND_SWAP_OP,
  DAT_IB_RDMA_WRITE_IMMED_OP,
  DAT_IB_UD_SEND_OP,
  DAT_IB_QUERY_COUNTERS_OP,
  DAT_IB_PRINT_COUNTERS_OP,
  DAT_IB_COLLECTIVE_CREATE_MEMBER_OP,
  DAT_IB_COLLECTIVE_FREE_MEMBER_OP,
  DAT_IB_COLLECTIVE_CREATE_GROUP_OP,
  DAT_IB_COLLECTIVE_FREE_GROUP_OP,
  DAT_IB_COLLECTIVE_SET_CLOCK_OP,
  DAT_IB_COLLECTIVE_READ_CLOCK_OP,
  DAT_IB_COLLECTIVE_SCATTER_OP,
  DAT_IB_COLLECTIVE_SCATTERV_OP,
  DAT_IB_COLLECTIVE_GATHER_OP,
  DAT_IB_COLLECTIVE_GATHERV_OP,
  DAT_IB_COLLECTIVE_ALLGATHER_OP,
  DAT_IB_COLLECTIVE_ALLGATHERV_OP,
  DAT_IB_COLLECTIVE_ALLTOALL_OP,
  DAT_IB_COLLECTIVE_ALLTOALLV_OP,
  DAT_IB_COLLECTIVE_REDUCE_OP,
  DAT_IB_COLLECTIVE_ALLREDUCE_OP,
  DAT_IB_COLLECTIVE_REDUCE_SCATTER_OP,
  DAT_IB_COLLECTIVE_SCAN_OP,
  DAT_IB_COLLECTIVE_BROADCAST_OP,
  DAT_IB_COLLECTIVE_BARRIER_OP,
  DAT_IB_START_COUNTERS_OP,
  DAT_IB_STOP_COUNTERS_OP,
  DAT_IB_UD_CM_FREE_OP,
  DAT_IB_UD_AH_FREE_OP,
  DAT_IB_OPEN_QUERY_OP = DAT_OPEN_EXTENSION_BASE,
  DAT_IB_CLOSE_QUERY_OP = DAT_CLOSE_EXTENSION_BASE
} DAT_IB_OP;

/* Posts of endpoints, with the rules of dat_ep_post_rdma_write() and dat_ep_post_rdma_read(). Their completions are
 * DAT_IB_DTO_EVENTs. An atomic operation works on 8 bytes at a remote address that is a multiple of 8, and puts the old
 * value into the one local segment of 8 bytes. `cookie` is a DAT_DTO_COOKIE. */
#define dat_ib_post_fetch_and_add(ep_handle, add_value, local_iov, cookie, remote_buffer, flags) \
  dat_extension_op((DAT_EP_HANDLE)(ep_handle), DAT_IB_FETCH_AND_ADD_OP, (DAT_UINT64)(add_value), \
                   (DAT_LMR_TRIPLET*)(local_iov), (cookie), (DAT_RMR_TRIPLET*)(remote_buffer),   \
                   (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_post_cmp_and_swap(ep_handle, compare_value, swap_value, local_iov, cookie, remote_buffer, flags) \
  dat_extension_op((DAT_EP_HANDLE)(ep_handle), DAT_IB_CMP_AND_SWAP_OP, (DAT_UINT64)(compare_value),             \
                   (DAT_UINT64)(swap_value), (DAT_LMR_TRIPLET*)(local_iov), (cookie),                           \
                   (DAT_RMR_TRIPLET*)(remote_buffer), (DAT_COMPLETION_FLAGS)(flags))
/* An RDMA Write whose end takes a receive of the peer, which completes with the number and the length of the Write. */
#define dat_ib_post_rdma_write_immed(ep_handle, num_segments, local_iov, cookie, remote_buffer, number, flags)       \
  dat_extension_op((DAT_EP_HANDLE)(ep_handle), DAT_IB_RDMA_WRITE_IMMED_OP, (DAT_COUNT)(num_segments),                \
                   (DAT_LMR_TRIPLET*)(local_iov), (cookie), (DAT_RMR_TRIPLET*)(remote_buffer), (DAT_UINT32)(number), \
                   (DAT_COMPLETION_FLAGS)(flags))

/* Datagrams. */
#define dat_ib_post_send_ud(ep_handle, num_segments, local_iov, address, cookie, flags)      \
  dat_extension_op((DAT_EP_HANDLE)(ep_handle), DAT_IB_UD_SEND_OP, (DAT_COUNT)(num_segments), \
                   (DAT_LMR_TRIPLET*)(local_iov), (DAT_IB_ADDR_HANDLE*)(address), (cookie),  \
                   (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_post_recv_ud dat_ep_post_recv
#define dat_ib_ud_cm_free(ep_handle, context) \
  dat_extension_op((DAT_EP_HANDLE)(ep_handle), DAT_IB_UD_CM_FREE_OP, (context))
#define dat_ib_ud_ah_free(ep_handle, address) \
  dat_extension_op((DAT_EP_HANDLE)(ep_handle), DAT_IB_UD_AH_FREE_OP, (DAT_IB_ADDR_HANDLE*)(address))

/* ---- A query without an open ---- */

/* Finds the adapter ia_name, fills the structures as dat_ia_query() does, and gives a handle that is good for
 * dat_ia_query() and dat_ib_close_query() alone. */
#define dat_ib_open_query(ia_name, ia_handle, ia_attr_mask, ia_attributes, provider_attr_mask, provider_attributes) \
  dat_extension_op(DAT_HANDLE_NULL, DAT_IB_OPEN_QUERY_OP, (DAT_NAME_PTR)(ia_name), (DAT_HANDLE*)(ia_handle),        \
                   (DAT_IA_ATTR_MASK)(ia_attr_mask), (DAT_IA_ATTR*)(ia_attributes),                                 \
                   (DAT_PROVIDER_ATTR_MASK)(provider_attr_mask), (DAT_PROVIDER_ATTR*)(provider_attributes))
#define dat_ib_close_query(ia_handle) dat_extension_op((DAT_HANDLE)(ia_handle), DAT_IB_CLOSE_QUERY_OP)

/* ---- Counters: rules D2-CNTR ---- */

/* The counters of an IA, of an endpoint and of an EVD; the last of each list stands for all of them. */
typedef enum dat_ia_counters {
  DCNT_IA_PZ_CREATE,
  DCNT_IA_PZ_FREE,
  DCNT_IA_LMR_CREATE,
  DCNT_IA_LMR_FREE,
  DCNT_IA_RMR_CREATE,
  DCNT_IA_RMR_FREE,
  DCNT_IA_PSP_CREATE,
  DCNT_IA_PSP_CREATE_ANY,
  DCNT_IA_PSP_FREE,
  DCNT_IA_RSP_CREATE,
  DCNT_IA_RSP_FREE,
  DCNT_IA_EVD_CREATE,
  DCNT_IA_EVD_FREE,
  DCNT_IA_EP_CREATE,
  DCNT_IA_EP_FREE,
  DCNT_IA_SRQ_CREATE,
  DCNT_IA_SRQ_FREE,
  DCNT_IA_SP_CR,
  DCNT_IA_SP_CR_ACCEPTED,
  DCNT_IA_SP_CR_REJECTED,
  DCNT_IA_MEM_ALLOC,
  DCNT_IA_MEM_ALLOC_DATA,
  DCNT_IA_MEM_FREE,
  DCNT_IA_ASYNC_ERROR,
  DCNT_IA_ASYNC_QP_ERROR,
  DCNT_IA_ASYNC_CQ_ERROR,
  DCNT_IA_CM_LISTEN,
  DCNT_IA_CM_REQ_TX,
  DCNT_IA_CM_REQ_RX,
  DCNT_IA_CM_REP_TX,
  DCNT_IA_CM_REP_RX,
  DCNT_IA_CM_RTU_TX,
  DCNT_IA_CM_RTU_RX,
  DCNT_IA_CM_USER_REJ_TX,
  DCNT_IA_CM_USER_REJ_RX,
  DCNT_IA_CM_ACTIVE_EST,
  DCNT_IA_CM_PASSIVE_EST,
  DCNT_IA_CM_AH_REQ_TX,
  DCNT_IA_CM_AH_REQ_RX,
  DCNT_IA_CM_AH_RESOLVED,
  DCNT_IA_CM_DREQ_TX,
  DCNT_IA_CM_DREQ_RX,
  DCNT_IA_CM_DREP_TX,
  DCNT_IA_CM_DREP_RX,
  DCNT_IA_CM_MRA_TX,
  DCNT_IA_CM_MRA_RX,
  DCNT_IA_CM_REQ_FULLQ_POLL,
  DCNT_IA_CM_ERR,
  DCNT_IA_CM_ERR_REQ_FULLQ,
  DCNT_IA_CM_ERR_REQ_DUP,
  DCNT_IA_CM_ERR_REQ_RETRY,
  DCNT_IA_CM_ERR_REP_DUP,
  DCNT_IA_CM_ERR_REP_RETRY,
  DCNT_IA_CM_ERR_RTU_DUP,
  DCNT_IA_CM_ERR_RTU_RETRY,
  DCNT_IA_CM_ERR_REFUSED,
  DCNT_IA_CM_ERR_RESET,
  DCNT_IA_CM_ERR_TIMEOUT,
  DCNT_IA_CM_ERR_REJ_TX,
  DCNT_IA_CM_ERR_REJ_RX,
  DCNT_IA_CM_ERR_DREQ_DUP,
  DCNT_IA_CM_ERR_DREQ_RETRY,
  DCNT_IA_CM_ERR_DREP_DUP,
  DCNT_IA_CM_ERR_DREP_RETRY,
  DCNT_IA_CM_ERR_MRA_DUP,
  DCNT_IA_CM_ERR_MRA_RETRY,
  DCNT_IA_CM_ERR_UNEXPECTED,
  DCNT_IA_LNK_ERR_RCV,
  DCNT_IA_LNK_ERR_RCV_REM_PHYS,
  DCNT_IA_LNK_ERR_RCV_CONSTRAINT,
  DCNT_IA_LNK_ERR_XMT_DISCARDS,
  DCNT_IA_LNK_ERR_XMT_CONTRAINT,
  DCNT_IA_LNK_ERR_INTEGRITY,
  DCNT_IA_LNK_ERR_EXC_BUF_OVERRUN,
  DCNT_IA_LNK_WARN_RCV_SW_RELAY,
  DCNT_IA_LNK_WARN_XMT_WAIT,
  DCNT_IA_DIAG_ERR_RQ_RAE,
  DCNT_IA_DIAG_ERR_RQ_OOS,
  DCNT_IA_DIAG_ERR_RQ_RIRE,
  DCNT_IA_DIAG_ERR_RQ_UDSDPRD,
  DCNT_IA_DIAG_ERR_SQ_RAE,
  DCNT_IA_DIAG_ERR_SQ_OOS,
  DCNT_IA_DIAG_ERR_SQ_RIRE,
  DCNT_IA_DIAG_ERR_SQ_RREE,
  DCNT_IA_DIAG_ERR_SQ_TREE,
  DCNT_IA_ALL_COUNTERS
} DAT_IA_COUNTERS;

typedef enum dat_ep_counters {
  DCNT_EP_CONNECT,
  DCNT_EP_DISCONNECT,
  DCNT_EP_POST_SEND,
  DCNT_EP_POST_SEND_DATA,
  DCNT_EP_POST_SEND_UD,
  DCNT_EP_POST_SEND_UD_DATA,
  DCNT_EP_POST_RECV,
  DCNT_EP_POST_RECV_DATA,
  DCNT_EP_POST_WRITE,
  DCNT_EP_POST_WRITE_DATA,
  DCNT_EP_POST_WRITE_IMM,
  DCNT_EP_POST_WRITE_IMM_DATA,
  DCNT_EP_POST_READ,
  DCNT_EP_POST_READ_DATA,
  DCNT_EP_POST_CMP_SWAP,
  DCNT_EP_POST_FETCH_ADD,
  DCNT_EP_RECV,
  DCNT_EP_RECV_DATA,
  DCNT_EP_RECV_UD,
  DCNT_EP_RECV_UD_DATA,
  DCNT_EP_RECV_IMM,
  DCNT_EP_RECV_IMM_DATA,
  DCNT_EP_RECV_RDMA_IMM,
  DCNT_EP_RECV_RDMA_IMM_DATA,
  DCNT_EP_ALL_COUNTERS
} DAT_EP_COUNTERS;

typedef enum dat_evd_counters {
  DCNT_EVD_WAIT,
  DCNT_EVD_WAIT_BLOCKED,
  DCNT_EVD_WAIT_NOTIFY,
  DCNT_EVD_DEQUEUE,
  DCNT_EVD_DEQUEUE_FOUND,
  DCNT_EVD_DEQUEUE_NOT_FOUND,
  DCNT_EVD_DEQUEUE_POLL,
  DCNT_EVD_DEQUEUE_POLL_FOUND,
  DCNT_EVD_CONN_CALLBACK,
  DCNT_EVD_DTO_CALLBACK,
  DCNT_EVD_ALL_COUNTERS
} DAT_EVD_COUNTERS;

typedef enum dat_ia_counter_type { DCNT_IA_CM, DCNT_IA_LNK, DCNT_IA_DIAG } DAT_IA_COUNTER_TYPE;

/* Writes values[counter], or all elements if counter is the last of the list; reset not 0 counts from 0 again. The
 * array has as many elements as the list has counters. */
#define dat_ib_query_counters(dat_handle, counter, values, reset)                                             \
  dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_QUERY_COUNTERS_OP, (int)(counter), (DAT_UINT64*)(values), \
                   (int)(reset))
/* Prints them. */
#define dat_ib_print_counters(dat_handle, counter, reset) \
  dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_PRINT_COUNTERS_OP, (int)(counter), (int)(reset))
#define dat_ib_start_counter(dat_handle, type) \
  dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_START_COUNTERS_OP, (DAT_IA_COUNTER_TYPE)(type))
#define dat_ib_stop_counter(dat_handle, type) \
  dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_STOP_COUNTERS_OP, (DAT_IA_COUNTER_TYPE)(type))

/* Their older names. */
#define DAT_ATTR_COUNTERS DAT_IB_ATTR_COUNTERS
#define dat_query_counters dat_ib_query_counters
#define dat_print_counters dat_ib_print_counters
#define DAT_QUERY_COUNTERS_OP DAT_IB_QUERY_COUNTERS_OP
#define DAT_PRINT_COUNTERS_OP DAT_IB_PRINT_COUNTERS_OP

/* ---- Collective operations ---- */

typedef enum dat_ib_collective_data_type {
  DAT_IB_COLLECTIVE_TYPE_INT8,
  DAT_IB_COLLECTIVE_TYPE_UINT8,
  DAT_IB_COLLECTIVE_TYPE_INT16,
  DAT_IB_COLLECTIVE_TYPE_UINT16,
  DAT_IB_COLLECTIVE_TYPE_INT32,
  DAT_IB_COLLECTIVE_TYPE_UINT32,
  DAT_IB_COLLECTIVE_TYPE_INT64,
  DAT_IB_COLLECTIVE_TYPE_UINT64,
  DAT_IB_COLLECTIVE_TYPE_FLOAT,
  DAT_IB_COLLECTIVE_TYPE_DOUBLE,
  DAT_IB_COLLECTIVE_TYPE_LONG_DOUBLE,
  DAT_IB_COLLECTIVE_TYPE_SHORT_INT,
  DAT_IB_COLLECTIVE_TYPE_2INT,
  DAT_IB_COLLECTIVE_TYPE_FLOAT_INT,
  DAT_IB_COLLECTIVE_TYPE_LONG_INT,
  DAT_IB_COLLECTIVE_TYPE_DOUBLE_INT
} DAT_IB_COLLECTIVE_DATA_TYPE;

typedef enum dat_ib_collective_reduce_data_op {
  DAT_IB_COLLECTIVE_REDUCE_OP_MAX,
  DAT_IB_COLLECTIVE_REDUCE_OP_MIN,
  DAT_IB_COLLECTIVE_REDUCE_OP_SUM,
  DAT_IB_COLLECTIVE_REDUCE_OP_PROD,
  DAT_IB_COLLECTIVE_REDUCE_OP_LAND,
  DAT_IB_COLLECTIVE_REDUCE_OP_BAND,
  DAT_IB_COLLECTIVE_REDUCE_OP_LOR,
  DAT_IB_COLLECTIVE_REDUCE_OP_BOR,
  DAT_IB_COLLECTIVE_REDUCE_OP_LXOR,
  DAT_IB_COLLECTIVE_REDUCE_OP_BXOR,
  DAT_IB_COLLECTIVE_REDUCE_OP_MAXLOC,
  DAT_IB_COLLECTIVE_REDUCE_OP_MINLOC
} DAT_IB_COLLECTIVE_REDUCE_DATA_OP;

typedef unsigned int DAT_IB_COLLECTIVE_RANK;
typedef unsigned int DAT_IB_COLLECTIVE_ID;
typedef void* DAT_IB_COLLECTIVE_MEMBER;

typedef struct dat_ib_collective_group {
  int local_size;
  int local_rank;
  int* local_ranks;
  int external_size;
  int external_rank;
  int* external_ranks;
  int* intranode_table;
  int* internode_table;
  int is_comm_world;
} DAT_IB_COLLECTIVE_GROUP;

#define dat_ib_collective_create_member(ia_handle, progress_func, member, member_size)                     \
  dat_extension_op((DAT_IA_HANDLE)(ia_handle), DAT_IB_COLLECTIVE_CREATE_MEMBER_OP, (void*)(progress_func), \
                   (DAT_IB_COLLECTIVE_MEMBER*)(member), (DAT_UINT32*)(member_size))
#define dat_ib_collective_free_member(ia_handle, member) \
  dat_extension_op((DAT_IA_HANDLE)(ia_handle), DAT_IB_COLLECTIVE_FREE_MEMBER_OP, (DAT_IB_COLLECTIVE_MEMBER)(member))
#define dat_ib_collective_create_group(members, group_size, self, group_id, group_info, evd, pd, user_context)     \
  dat_extension_op((DAT_EVD_HANDLE)(evd), DAT_IB_COLLECTIVE_CREATE_GROUP_OP, (DAT_IB_COLLECTIVE_MEMBER*)(members), \
                   (DAT_COUNT)(group_size), (DAT_IB_COLLECTIVE_RANK)(self), (DAT_IB_COLLECTIVE_ID)(group_id),      \
                   (DAT_IB_COLLECTIVE_GROUP*)(group_info), (DAT_PZ_HANDLE)(pd), (user_context))
#define dat_ib_collective_free_group(coll_handle) \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_FREE_GROUP_OP)
#define dat_ib_collective_set_clock(coll_handle, clock_value, user_context)                                            \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_SET_CLOCK_OP, (DAT_UINT64)(clock_value), \
                   (user_context))
#define dat_ib_collective_read_clock(coll_handle, clock_value) \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_READ_CLOCK_OP, (DAT_UINT64*)(clock_value))
#define dat_ib_collective_scatter(coll_handle, sendbuf, sendsize, recvbuf, recvsize, root, user_context, flags)        \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_SCATTER_OP, (DAT_PVOID)(sendbuf),        \
                   (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), (DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_RANK)(root), \
                   (user_context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_scatterv(coll_handle, sendbuf, sendsizes, displs, recvbuf, recvsize, root, user_context, \
                                   flags)                                                                          \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_SCATTERV_OP, (DAT_PVOID)(sendbuf),   \
                   (DAT_COUNT*)(sendsizes), (DAT_COUNT*)(displs), (DAT_PVOID)(recvbuf), (DAT_COUNT)(recvsize),     \
                   (DAT_IB_COLLECTIVE_RANK)(root), (user_context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_gather(coll_handle, sendbuf, sendsize, recvbuf, recvsize, root, user_context, flags)         \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_GATHER_OP, (DAT_PVOID)(sendbuf),         \
                   (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), (DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_RANK)(root), \
                   (user_context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_gatherv(coll_handle, sendbuf, sendsize, recvbufs, recvsizes, displs, root, user_context, \
                                  flags)                                                                           \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_GATHERV_OP, (DAT_PVOID)(sendbuf),    \
                   (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbufs), (DAT_COUNT*)(recvsizes), (DAT_COUNT*)(displs),    \
                   (DAT_IB_COLLECTIVE_RANK)(root), (user_context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_allgather(coll_handle, sendbuf, sendsize, recvbuf, recvsize, user_context, flags)       \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLGATHER_OP, (DAT_PVOID)(sendbuf), \
                   (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), (DAT_COUNT)(recvsize), (user_context),            \
                   (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_allgatherv(coll_handle, sendbuf, sendsize, recvbuf, recvsizes, displs, user_context, flags) \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLGATHERV_OP, (DAT_PVOID)(sendbuf),    \
                   (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), (DAT_COUNT*)(recvsizes), (DAT_COUNT*)(displs),        \
                   (user_context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_alltoall(coll_handle, sendbuf, sendsize, recvbuf, recvsize, user_context, flags)       \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLTOALL_OP, (DAT_PVOID)(sendbuf), \
                   (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), (DAT_COUNT)(recvsize), (user_context),           \
                   (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_alltoallv(coll_handle, sendbuf, sendsizes, senddispls, recvbuf, recvsizes, recvdispls,     \
                                    user_context, flags)                                                             \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLTOALLV_OP, (DAT_PVOID)(sendbuf),    \
                   (DAT_COUNT*)(sendsizes), (DAT_COUNT*)(senddispls), (DAT_PVOID)(recvbuf), (DAT_COUNT*)(recvsizes), \
                   (DAT_COUNT*)(recvdispls), (user_context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_reduce(coll_handle, sendbuf, sendsize, recvbuf, recvsize, op, type, root, user_context, \
                                 flags)                                                                           \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_REDUCE_OP, (DAT_PVOID)(sendbuf),    \
                   (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), (DAT_COUNT)(recvsize),                            \
                   (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), (DAT_IB_COLLECTIVE_DATA_TYPE)(type),                   \
                   (DAT_IB_COLLECTIVE_RANK)(root), (user_context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_allreduce(coll_handle, sendbuf, sendsize, recvbuf, recvsize, op, type, user_context, flags) \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLREDUCE_OP, (DAT_PVOID)(sendbuf),     \
                   (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), (DAT_COUNT)(recvsize),                                \
                   (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), (DAT_IB_COLLECTIVE_DATA_TYPE)(type), (user_context),       \
                   (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_reduce_scatter(coll_handle, sendbuf, sendsize, recvbuf, recvsizes, op, type, user_context,   \
                                         flags)                                                                        \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_REDUCE_SCATTER_OP, (DAT_PVOID)(sendbuf), \
                   (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), (DAT_COUNT*)(recvsizes),                               \
                   (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), (DAT_IB_COLLECTIVE_DATA_TYPE)(type), (user_context),        \
                   (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_scan(coll_handle, sendbuf, sendsize, recvbuf, recvsize, op, type, user_context, flags) \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_SCAN_OP, (DAT_PVOID)(sendbuf),     \
                   (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), (DAT_COUNT)(recvsize),                           \
                   (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), (DAT_IB_COLLECTIVE_DATA_TYPE)(type), (user_context),  \
                   (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_broadcast(coll_handle, buf, size, root, user_context, flags)                        \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_BROADCAST_OP, (DAT_PVOID)(buf), \
                   (DAT_COUNT)(size), (DAT_IB_COLLECTIVE_RANK)(root), (user_context), (DAT_COMPLETION_FLAGS)(flags))
#define dat_ib_collective_barrier(coll_handle, user_context, flags)                                       \
  dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_BARRIER_OP, (user_context), \
                   (DAT_COMPLETION_FLAGS)(flags))

/* ---- Words for codes ---- */

/* As dat_strerror(), for a code that an operation of the extension returned. */
static inline DAT_RETURN dat_strerror_extension(IN DAT_IB_RETURN value, OUT const char** message) {
  if (DAT_GET_TYPE(value) != DAT_IB_ERR) return dat_strerror((DAT_RETURN)value, message, NULL);
  *message = "DAT_IB_ERR";
  return DAT_SUCCESS;
}

/* For the status in DAT_IB_EXTENSION_EVENT_DATA. */
static inline DAT_RETURN dat_strerror_ext_status(IN DAT_IB_STATUS value, OUT const char** message) {
  if (value == DAT_OP_SUCCESS) {
    *message = " ";
    return DAT_SUCCESS;
  }
  if (value == DAT_IB_OP_ERR) {
    *message = "DAT_IB_OP_ERR";
    return DAT_SUCCESS;
  }
  *message = "unknown extension status";
  return DAT_INVALID_PARAMETER;
}

#ifdef __cplusplus
}
#endif

#endif
