/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Return codes. Every DAT call answers with a DAT_RETURN made of three parts:
 *
 *   bits 31-30  class     error, warning, or neither
 *   bits 29-16  type      what kind of failure; one of DAT_RETURN_TYPE
 *   bits 15-0   subtype   the argument, state or resource concerned; one of DAT_RETURN_SUBTYPE
 *
 * Success is exactly 0 (rule RC-1). Every failure has the error class set (RC-3), so compare types with
 * DAT_GET_TYPE(code) rather than whole codes (RC-4); dat_strerror() turns both parts into words.
 */
#ifndef DAT2_ERROR_H
#define DAT2_ERROR_H

#include <dat2/dat_platform_specific.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef DAT_UINT32 DAT_RETURN;

#define DAT_CLASS_ERROR 0x80000000U
#define DAT_CLASS_WARNING 0x40000000U
#define DAT_CLASS_SUCCESS 0x00000000U

#define DAT_TYPE_MASK 0x3fff0000U
#define DAT_SUBTYPE_MASK 0x0000ffffU

/* Non-zero means a warning: the call was carried out, with a reservation. */
#define DAT_IS_WARNING(status) (DAT_CLASS_WARNING & (DAT_UINT32)(status))
#define DAT_GET_TYPE(status) (DAT_TYPE_MASK & (DAT_UINT32)(status))
#define DAT_GET_SUBTYPE(status) (DAT_SUBTYPE_MASK & (DAT_UINT32)(status))

/* The types, without class bits (rules RC-2, D2-RC-1, D2-RC-2). */
typedef enum dat_return_type {
  DAT_SUCCESS = 0x00000000,
  DAT_ABORT = 0x00010000,                       /* cut short: the IA was closed or the EVD freed meanwhile */
  DAT_CONN_QUAL_IN_USE = 0x00020000,            /* another service point listens there */
  DAT_INSUFFICIENT_RESOURCES = 0x00030000,      /* memory, an IA limit or a queue is exhausted */
  DAT_INTERNAL_ERROR = 0x00040000,              /* a fault of the Provider itself */
  DAT_INVALID_HANDLE = 0x00050000,              /* NULL, freed, or of another kind of object */
  DAT_INVALID_PARAMETER = 0x00060000,           /* any other argument is wrong */
  DAT_INVALID_STATE = 0x00070000,               /* the object's state does not permit the call */
  DAT_LENGTH_ERROR = 0x00080000,                /* a buffer is too small, or a region empty */
  DAT_MODEL_NOT_SUPPORTED = 0x00090000,         /* an optional feature that the Provider lacks */
  DAT_PROVIDER_NOT_FOUND = 0x000a0000,          /* no such IA name, version or thread safety */
  DAT_PRIVILEGES_VIOLATION = 0x000b0000,        /* the memory does not grant the access */
  DAT_PROTECTION_VIOLATION = 0x000c0000,        /* the memory lies in another protection zone */
  DAT_QUEUE_EMPTY = 0x000d0000,                 /* no event; also a CNO wait that timed out */
  DAT_QUEUE_FULL = 0x000e0000,                  /* no room for another software event */
  DAT_TIMEOUT_EXPIRED = 0x000f0000,             /* an EVD wait that timed out */
  DAT_PROVIDER_ALREADY_REGISTERED = 0x00100000, /* the registry holds this name, version and safety */
  DAT_PROVIDER_IN_USE = 0x00110000,             /* an IA of this Provider is still open */
  DAT_INVALID_ADDRESS = 0x00120000,             /* malformed, unsupported or unreachable address */
  DAT_INTERRUPTED_CALL = 0x00130000,            /* a signal handler ran during a wait */
  DAT_CONN_QUAL_UNAVAILABLE = 0x00140000,       /* no free connection qualifier is left */
  DAT_RESERVED_LMR = 0x00150000,                /* known by name only: there is no reserved LMR here (D2-RC-6) */
  DAT_PORT_IN_USE = 0x00160000,                 /* another service point listens at the port of a CSP */
  DAT_COMM_NOT_SUPPORTED = 0x00170000,          /* a DAT_COMM that the IA does not speak */
  DAT_EXTENSION_BASE = 0x10000000,              /* types of extensions begin here */
  DAT_NOT_IMPLEMENTED = 0x3fff0000              /* the Provider does not have this call */
} DAT_RETURN_TYPE;

/* The older name of the type. */
#define DAT_NAME_NOT_FOUND DAT_PROVIDER_NOT_FOUND

/* The subtypes. Numbers in names are argument positions, counted from 1. From 26 on they are not those of version 1.2
 * (rule D2-RC-3). */
typedef enum dat_return_subtype {
  DAT_NO_SUBTYPE = 0,

  /* of DAT_ABORT */
  DAT_SUB_INTERRUPTED = 1,

  /* of DAT_INSUFFICIENT_RESOURCES */
  DAT_RESOURCE_MEMORY = 2,
  DAT_RESOURCE_DEVICE,
  DAT_RESOURCE_TEP,
  DAT_RESOURCE_TEVD,
  DAT_RESOURCE_PROTECTION_DOMAIN,
  DAT_RESOURCE_MEMORY_REGION,
  DAT_RESOURCE_ERROR_HANDLER,
  DAT_RESOURCE_CREDITS,
  DAT_RESOURCE_SRQ,

  /* of DAT_INVALID_HANDLE */
  DAT_INVALID_HANDLE_IA = 11,
  DAT_INVALID_HANDLE_EP,
  DAT_INVALID_HANDLE_LMR,
  DAT_INVALID_HANDLE_RMR,
  DAT_INVALID_HANDLE_PZ,
  DAT_INVALID_HANDLE_PSP,
  DAT_INVALID_HANDLE_RSP,
  DAT_INVALID_HANDLE_CR,
  DAT_INVALID_HANDLE_CNO,
  DAT_INVALID_HANDLE_EVD_CR,
  DAT_INVALID_HANDLE_EVD_REQUEST,
  DAT_INVALID_HANDLE_EVD_RECV,
  DAT_INVALID_HANDLE_EVD_CONN,
  DAT_INVALID_HANDLE_EVD_ASYNC,
  DAT_INVALID_HANDLE_SRQ,
  DAT_INVALID_HANDLE_CSP,
  DAT_INVALID_HANDLE1 = 27,
  DAT_INVALID_HANDLE2,
  DAT_INVALID_HANDLE3,
  DAT_INVALID_HANDLE4,
  DAT_INVALID_HANDLE5,
  DAT_INVALID_HANDLE6,
  DAT_INVALID_HANDLE7,
  DAT_INVALID_HANDLE8,
  DAT_INVALID_HANDLE9,
  DAT_INVALID_HANDLE10,

  /* of DAT_INVALID_PARAMETER */
  DAT_INVALID_ARG1 = 37,
  DAT_INVALID_ARG2,
  DAT_INVALID_ARG3,
  DAT_INVALID_ARG4,
  DAT_INVALID_ARG5,
  DAT_INVALID_ARG6,
  DAT_INVALID_ARG7,
  DAT_INVALID_ARG8,
  DAT_INVALID_ARG9,
  DAT_INVALID_ARG10,

  /* of DAT_INVALID_STATE */
  DAT_INVALID_STATE_EP_UNCONNECTED = 47,
  DAT_INVALID_STATE_EP_ACTCONNPENDING,
  DAT_INVALID_STATE_EP_PASSCONNPENDING,
  DAT_INVALID_STATE_EP_TENTCONNPENDING,
  DAT_INVALID_STATE_EP_CONNECTED,
  DAT_INVALID_STATE_EP_DISCONNECTED,
  DAT_INVALID_STATE_EP_RESERVED,
  DAT_INVALID_STATE_EP_COMPLPENDING,
  DAT_INVALID_STATE_EP_DISCPENDING,
  DAT_INVALID_STATE_EP_PROVIDERCONTROL,
  DAT_INVALID_STATE_EP_NOTREADY,
  DAT_INVALID_STATE_EP_RECV_WATERMARK,
  DAT_INVALID_STATE_EP_PZ,
  DAT_INVALID_STATE_EP_EVD_REQUEST,
  DAT_INVALID_STATE_EP_EVD_RECV,
  DAT_INVALID_STATE_EP_EVD_CONNECT,
  DAT_INVALID_STATE_EP_UNCONFIGURED,
  DAT_INVALID_STATE_EP_UNCONFRESERVED,
  DAT_INVALID_STATE_EP_UNCONFPASSIVE,
  DAT_INVALID_STATE_EP_UNCONFTENTATIVE,
  DAT_INVALID_STATE_CNO_IN_USE = 67,
  DAT_INVALID_STATE_CNO_DEAD,
  DAT_INVALID_STATE_EVD_OPEN = 69,
  DAT_INVALID_STATE_EVD_ENABLED,
  DAT_INVALID_STATE_EVD_DISABLED,
  DAT_INVALID_STATE_EVD_WAITABLE,
  DAT_INVALID_STATE_EVD_UNWAITABLE,
  DAT_INVALID_STATE_EVD_IN_USE,
  DAT_INVALID_STATE_EVD_CONFIG_NOTIFY,
  DAT_INVALID_STATE_EVD_CONFIG_SOLICITED,
  DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD,
  DAT_INVALID_STATE_EVD_WAITER,
  DAT_INVALID_STATE_EVD_ASYNC,
  DAT_INVALID_STATE_IA_IN_USE = 80,
  DAT_INVALID_STATE_LMR_IN_USE,
  DAT_INVALID_STATE_LMR_FREE,
  DAT_INVALID_STATE_PZ_IN_USE,
  DAT_INVALID_STATE_PZ_FREE,
  DAT_INVALID_STATE_SRQ_OPERATIONAL = 85,
  DAT_INVALID_STATE_SRQ_ERROR,
  DAT_INVALID_STATE_SRQ_IN_USE,
  DAT_INVALID_STATE_SRQ_SHUTDOWN, /* known by name only (D2-SRQ-3) */

  /* of DAT_PRIVILEGES_VIOLATION */
  DAT_PRIVILEGES_READ = 89,
  DAT_PRIVILEGES_WRITE,
  DAT_PRIVILEGES_RDMA_READ,
  DAT_PRIVILEGES_RDMA_WRITE,

  /* of DAT_PROTECTION_VIOLATION */
  DAT_PROTECTION_READ = 93,
  DAT_PROTECTION_WRITE,
  DAT_PROTECTION_RDMA_READ,
  DAT_PROTECTION_RDMA_WRITE,

  /* of DAT_INVALID_ADDRESS */
  DAT_INVALID_ADDRESS_UNSUPPORTED = 97, /* a multicast or broadcast address, or a family the IA does not speak */
  DAT_INVALID_ADDRESS_UNREACHABLE,      /* no route is known */
  DAT_INVALID_ADDRESS_MALFORMED,        /* a reserved or unassigned form */

  /* of DAT_PROVIDER_NOT_FOUND */
  DAT_NAME_NOT_REGISTERED = 100,
  DAT_MAJOR_NOT_FOUND,
  DAT_MINOR_NOT_FOUND,
  DAT_THREAD_SAFETY_NOT_FOUND
} DAT_RETURN_SUBTYPE;

#ifdef __cplusplus
}
#endif

#endif
