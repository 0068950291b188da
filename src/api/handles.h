// SPDX-License-Identifier: BSD-3-Clause
// Turning handle arguments into objects, for the functions of the provider.
#pragma once

#include "api/provider.h"
#include "dapl/ia.h"

namespace anydat::api {

// Frees an object whose free() answers nothing while a peer is in the middle of writing into memory that the program is
// to get back. A peer that has been stopped can make this last; other connections go on meanwhile.
template <typename Object>
DAT_RETURN free_when_quiet(DAT_HANDLE handle, const char* call, const char* argument, DAT_RETURN subtype) {
  for (;;) {
    Object* const object = dapl::lookup<Object>(handle);
    if (!object) return bad_handle(call, argument, handle, subtype);
    dapl::Ia& ia = object->ia();
    {
      base::Guard guard(ia.engine());
      if (const auto rc = object->free()) return *rc;
    }
    ia.nic().await_quiet();
  }
}

}  // namespace anydat::api

// Declares `var`, the object of class Type behind the argument `handle`, or returns DAT_INVALID_HANDLE.
#define ANYDAT_OBJECT(Type, var, handle, call, subtype)   \
  auto* const var = ::anydat::dapl::lookup<Type>(handle); \
  if (!var) [[unlikely]]                                  \
  return ::anydat::api::bad_handle(call, #handle, handle, subtype)

// The same for an object that must belong to the IA instance `owner` (GEN-12).
#define ANYDAT_OBJECT_OF(owner, Type, var, handle, call, subtype) \
  auto* const var = ::anydat::dapl::lookup<Type>(handle);         \
  if (!var || &var->ia() != (owner)) return ::anydat::api::bad_handle(call, #handle, handle, subtype)

// And for one that may be DAT_HANDLE_NULL; `var` is null then.
#define ANYDAT_OPTIONAL_OF(owner, Type, var, handle, call, subtype)            \
  Type* const var = (handle) ? ::anydat::dapl::lookup<Type>(handle) : nullptr; \
  if ((handle) && (!var || &var->ia() != (owner))) return ::anydat::api::bad_handle(call, #handle, handle, subtype)
