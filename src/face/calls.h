// SPDX-License-Identifier: BSD-3-Clause
// Our functions behind the calls of a Provider (calls.def). Each checks its handles, converts its arguments and calls
// the object; it has no behaviour of its own. The exported calls come here (exports.cc), and so does the call table,
// through which the macros of old programs call.
#pragma once

#include "dapl/error.h"
#include "face/edge.h"
#include "registry/foreign_call.h"

namespace anydat::face {

// A table of all our calls, for the adapters registered as `device_name` (REG-TBL-2), which must outlive it.
DAT_PROVIDER make_provider_table(const char* device_name, DAT_IA_OPEN_FUNC open);

#define ANYDAT_CALL(name, subject, cancelling, parameters, arguments) dapl::Error name parameters;
#include "face/calls.def"

}  // namespace anydat::face

#include "face/hot_calls.h"

#if ANYDAT_FACE == 20
namespace anydat::face {

// dat_extension_op() with the two operations that the registry has a part in (registry_calls.cc).
DAT_RETURN query_operation(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list arguments);

}  // namespace anydat::face
#endif

namespace anydat::face {

// What the edge needs of each.
#define ANYDAT_CALL(name, its_subject, cancelling, parameters, arguments)                       \
  struct name##_call {                                                                          \
    using Cancelling = cancelling;                                                              \
    static constexpr auto slot = &DAT_PROVIDER::name##_func;                                    \
    static constexpr auto subject = registry::ForeignCall::Subject::its_subject;                \
    static constexpr const char* names = #arguments;                                            \
    static constexpr const char* call_name = "dat_" #name;                                      \
    [[gnu::always_inline]] static inline dapl::Error ours parameters { return name arguments; } \
  };
#include "face/calls.def"

}  // namespace anydat::face
