// SPDX-License-Identifier: BSD-3-Clause
#include "registry/strerror.h"

#include "face/dat.h"

#include <array>
#include <cstddef>

namespace anydat::registry {
namespace {

// Both tables are indexed by what they name: kTypeNames by the type's bits shifted down, kSubtypeNames by the subtype, as the
// version numbers them (D2-RC-3).
// An element out of place would be caught by the test that walks the ABI table.
constexpr std::size_t kTypeShift = 16;

constexpr std::array kTypeNames{
    "DAT_SUCCESS",
    "DAT_ABORT",
    "DAT_CONN_QUAL_IN_USE",
    "DAT_INSUFFICIENT_RESOURCES",
    "DAT_INTERNAL_ERROR",
    "DAT_INVALID_HANDLE",
    "DAT_INVALID_PARAMETER",
    "DAT_INVALID_STATE",
    "DAT_LENGTH_ERROR",
    "DAT_MODEL_NOT_SUPPORTED",
    "DAT_PROVIDER_NOT_FOUND",
    "DAT_PRIVILEGES_VIOLATION",
    "DAT_PROTECTION_VIOLATION",
    "DAT_QUEUE_EMPTY",
    "DAT_QUEUE_FULL",
    "DAT_TIMEOUT_EXPIRED",
    "DAT_PROVIDER_ALREADY_REGISTERED",
    "DAT_PROVIDER_IN_USE",
    "DAT_INVALID_ADDRESS",
    "DAT_INTERRUPTED_CALL",
    "DAT_CONN_QUAL_UNAVAILABLE",
#if ANYDAT_FACE == 20
    "DAT_RESERVED_LMR",
    "DAT_PORT_IN_USE",
    "DAT_COMM_NOT_SUPPORTED",
#endif
};

constexpr std::array kSubtypeNames{
    "",  // DAT_NO_SUBTYPE
    "DAT_SUB_INTERRUPTED",
    "DAT_RESOURCE_MEMORY",
    "DAT_RESOURCE_DEVICE",
    "DAT_RESOURCE_TEP",
    "DAT_RESOURCE_TEVD",
    "DAT_RESOURCE_PROTECTION_DOMAIN",
    "DAT_RESOURCE_MEMORY_REGION",
    "DAT_RESOURCE_ERROR_HANDLER",
    "DAT_RESOURCE_CREDITS",
    "DAT_RESOURCE_SRQ",
    "DAT_INVALID_HANDLE_IA",
    "DAT_INVALID_HANDLE_EP",
    "DAT_INVALID_HANDLE_LMR",
    "DAT_INVALID_HANDLE_RMR",
    "DAT_INVALID_HANDLE_PZ",
    "DAT_INVALID_HANDLE_PSP",
    "DAT_INVALID_HANDLE_RSP",
    "DAT_INVALID_HANDLE_CR",
    "DAT_INVALID_HANDLE_CNO",
    "DAT_INVALID_HANDLE_EVD_CR",
    "DAT_INVALID_HANDLE_EVD_REQUEST",
    "DAT_INVALID_HANDLE_EVD_RECV",
    "DAT_INVALID_HANDLE_EVD_CONN",
    "DAT_INVALID_HANDLE_EVD_ASYNC",
    "DAT_INVALID_HANDLE_SRQ",
#if ANYDAT_FACE == 20
    "DAT_INVALID_HANDLE_CSP",
#endif
    "DAT_INVALID_HANDLE1",
    "DAT_INVALID_HANDLE2",
    "DAT_INVALID_HANDLE3",
    "DAT_INVALID_HANDLE4",
    "DAT_INVALID_HANDLE5",
    "DAT_INVALID_HANDLE6",
    "DAT_INVALID_HANDLE7",
    "DAT_INVALID_HANDLE8",
    "DAT_INVALID_HANDLE9",
    "DAT_INVALID_HANDLE10",
    "DAT_INVALID_ARG1",
    "DAT_INVALID_ARG2",
    "DAT_INVALID_ARG3",
    "DAT_INVALID_ARG4",
    "DAT_INVALID_ARG5",
    "DAT_INVALID_ARG6",
    "DAT_INVALID_ARG7",
    "DAT_INVALID_ARG8",
    "DAT_INVALID_ARG9",
    "DAT_INVALID_ARG10",
    "DAT_INVALID_STATE_EP_UNCONNECTED",
    "DAT_INVALID_STATE_EP_ACTCONNPENDING",
    "DAT_INVALID_STATE_EP_PASSCONNPENDING",
    "DAT_INVALID_STATE_EP_TENTCONNPENDING",
    "DAT_INVALID_STATE_EP_CONNECTED",
    "DAT_INVALID_STATE_EP_DISCONNECTED",
    "DAT_INVALID_STATE_EP_RESERVED",
    "DAT_INVALID_STATE_EP_COMPLPENDING",
    "DAT_INVALID_STATE_EP_DISCPENDING",
    "DAT_INVALID_STATE_EP_PROVIDERCONTROL",
    "DAT_INVALID_STATE_EP_NOTREADY",
    "DAT_INVALID_STATE_EP_RECV_WATERMARK",
    "DAT_INVALID_STATE_EP_PZ",
    "DAT_INVALID_STATE_EP_EVD_REQUEST",
    "DAT_INVALID_STATE_EP_EVD_RECV",
    "DAT_INVALID_STATE_EP_EVD_CONNECT",
    "DAT_INVALID_STATE_EP_UNCONFIGURED",
    "DAT_INVALID_STATE_EP_UNCONFRESERVED",
    "DAT_INVALID_STATE_EP_UNCONFPASSIVE",
    "DAT_INVALID_STATE_EP_UNCONFTENTATIVE",
    "DAT_INVALID_STATE_CNO_IN_USE",
    "DAT_INVALID_STATE_CNO_DEAD",
    "DAT_INVALID_STATE_EVD_OPEN",
    "DAT_INVALID_STATE_EVD_ENABLED",
    "DAT_INVALID_STATE_EVD_DISABLED",
    "DAT_INVALID_STATE_EVD_WAITABLE",
    "DAT_INVALID_STATE_EVD_UNWAITABLE",
    "DAT_INVALID_STATE_EVD_IN_USE",
    "DAT_INVALID_STATE_EVD_CONFIG_NOTIFY",
    "DAT_INVALID_STATE_EVD_CONFIG_SOLICITED",
    "DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD",
    "DAT_INVALID_STATE_EVD_WAITER",
    "DAT_INVALID_STATE_EVD_ASYNC",
    "DAT_INVALID_STATE_IA_IN_USE",
    "DAT_INVALID_STATE_LMR_IN_USE",
    "DAT_INVALID_STATE_LMR_FREE",
    "DAT_INVALID_STATE_PZ_IN_USE",
    "DAT_INVALID_STATE_PZ_FREE",
    "DAT_INVALID_STATE_SRQ_OPERATIONAL",
    "DAT_INVALID_STATE_SRQ_ERROR",
    "DAT_INVALID_STATE_SRQ_IN_USE",
#if ANYDAT_FACE == 20
    "DAT_INVALID_STATE_SRQ_SHUTDOWN",
#endif
    "DAT_PRIVILEGES_READ",
    "DAT_PRIVILEGES_WRITE",
    "DAT_PRIVILEGES_RDMA_READ",
    "DAT_PRIVILEGES_RDMA_WRITE",
    "DAT_PROTECTION_READ",
    "DAT_PROTECTION_WRITE",
    "DAT_PROTECTION_RDMA_READ",
    "DAT_PROTECTION_RDMA_WRITE",
    "DAT_INVALID_ADDRESS_UNSUPPORTED",
    "DAT_INVALID_ADDRESS_UNREACHABLE",
    "DAT_INVALID_ADDRESS_MALFORMED",
    "DAT_NAME_NOT_REGISTERED",
    "DAT_MAJOR_NOT_FOUND",
    "DAT_MINOR_NOT_FOUND",
    "DAT_THREAD_SAFETY_NOT_FOUND",
#if ANYDAT_FACE == 12
    "DAT_INVALID_RO_COOKIE",
#endif
};
// The last of each, by the version's own numbers.
#if ANYDAT_FACE == 12
static_assert(kTypeNames.size() == (DAT_CONN_QUAL_UNAVAILABLE >> kTypeShift) + 1);
static_assert(kSubtypeNames.size() == DAT_INVALID_RO_COOKIE + 1);
#else
static_assert(kTypeNames.size() == (DAT_COMM_NOT_SUPPORTED >> kTypeShift) + 1);
static_assert(kSubtypeNames.size() == DAT_THREAD_SAFETY_NOT_FOUND + 1);
#endif

// What masking leaves of DAT_NOT_IMPLEMENTED, whose own value sets the class bits, here and on Solaris (ruling A4).
constexpr DAT_RETURN kNotImplementedType = 0x3fff0000;
constexpr DAT_RETURN kNotImplementedTypeSolaris = 0x0fff0000;

}  // namespace

const char* return_type_name(DAT_RETURN code) {
  const DAT_RETURN type = DAT_GET_TYPE(code);
  if (type == kNotImplementedType || type == kNotImplementedTypeSolaris) return "DAT_NOT_IMPLEMENTED";
#if ANYDAT_FACE == 20
  if (type == DAT_EXTENSION_BASE) return "DAT_EXTENSION_BASE";  // far from the others
#endif
  const std::size_t index = type >> kTypeShift;
  return index < kTypeNames.size() ? kTypeNames[index] : nullptr;
}

const char* return_subtype_name(DAT_RETURN code) {
  const std::size_t index = DAT_GET_SUBTYPE(code);
  return index < kSubtypeNames.size() ? kSubtypeNames[index] : nullptr;
}

}  // namespace anydat::registry

// Old programs print both messages without a look at the return, so an unknown part gets words too (never NULL, never
// left as it was), beside the error that STRERR-6 asks for.
extern "C" DAT_RETURN dat_strerror(DAT_RETURN value, const char** major_message, const char** minor_message) {
  constexpr DAT_RETURN kInvalid = static_cast<DAT_RETURN>(DAT_CLASS_ERROR) | DAT_INVALID_PARAMETER;
  if (major_message == nullptr) {
    if (minor_message != nullptr) *minor_message = "";
    return kInvalid | DAT_INVALID_ARG2;
  }
  const char* type = anydat::registry::return_type_name(value);
  const char* subtype = anydat::registry::return_subtype_name(value);
  *major_message = type != nullptr ? type : "unknown DAT_RETURN type";
  if (minor_message != nullptr) *minor_message = subtype != nullptr ? subtype : "unknown DAT_RETURN subtype";
  const bool subtype_wanted = minor_message != nullptr;  // STRERR-8
  if (type == nullptr || (subtype_wanted && subtype == nullptr)) return kInvalid | DAT_INVALID_ARG1;
  return DAT_SUCCESS;
}
