// SPDX-License-Identifier: BSD-3-Clause
// The calls that libdat exports, made of the list. Each goes to the provider of the object it is about: ours directly,
// a foreign one through its table (OBJ-7). Our functions refuse what is no handle of anybody. The calls that the
// registry has a part in are in registry_calls.cc.
#include <cstdarg>

#include "dapl/handle_table.h"
#include "face/calls.h"

namespace anydat::face {

namespace {

// Apart, so that what it needs is not in the way of the usual case.
template <typename Call, typename... Rest>
[[gnu::noinline]] DAT_RETURN redirect_unknown(DAT_HANDLE handle, Rest... rest) {
  if (const registry::ForeignCall foreign(handle, Call::subject); foreign) {
    return registry::noted(Call::call_name, [&] { return foreign(Call::slot, handle, rest...); });
  }
  return Edge<Call>::call(handle, rest...);
}

template <typename Call, typename... Rest>
inline DAT_RETURN redirect(DAT_HANDLE handle, Rest... rest) {
  if (!dapl::HandleTable::owns(handle)) [[unlikely]]
    return redirect_unknown<Call>(handle, rest...);
  return Edge<Call>::call(handle, rest...);
}

}  // namespace

}  // namespace anydat::face

// At global scope, like the declarations, whose visibility they inherit.
extern "C" {
#define ANYDAT_CALL(name, subject, cancelling, parameters, arguments)   \
  DAT_RETURN dat_##name parameters {                                    \
    return anydat::face::redirect<anydat::face::name##_call> arguments; \
  }
#define ANYDAT_INNER_CALL(name, subject, cancelling, parameters, arguments)
#include "face/calls.def"

#if ANYDAT_FACE == 20
DAT_RETURN dat_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP operation, ...) {
  va_list arguments;
  va_start(arguments, operation);
  const bool registry_has_part = operation == DAT_OPEN_EXTENSION_BASE || operation == DAT_CLOSE_EXTENSION_BASE;
  const DAT_RETURN rc =
      registry_has_part ? anydat::face::query_operation(handle, operation, arguments)
                        : anydat::face::redirect<anydat::face::handle_extendedop_call>(handle, operation, arguments);
  va_end(arguments);
  return rc;
}
#endif
}
