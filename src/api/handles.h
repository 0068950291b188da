// SPDX-License-Identifier: BSD-3-Clause
// Turning handle arguments into objects, for the functions of the provider.
#pragma once

#include "api/provider.h"
#include "dapl/ia.h"

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
