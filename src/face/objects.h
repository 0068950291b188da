// SPDX-License-Identifier: BSD-3-Clause
// Turning handle arguments into objects, for our functions.
#pragma once

#include "dapl/ia.h"
#include "dapl/instances.h"
#include "face/dat.h"

namespace anydat::face {

dapl::Error bad_handle(const char* call, const char* argument, DAT_HANDLE handle, dapl::Detail detail);

// GEN-7, GEN-14: a mask and the structure that it is about. `unknown_bits`: whether it may have bits outside `all`.
// `place`: the mask's in the call; the structure follows.
dapl::Error check_query(const char* call, std::uint64_t mask, std::uint64_t all, const void* result,
                        const dapl::Habit& unknown_bits, unsigned place = 2);
inline bool is_aligned(const void* structure) {
  return reinterpret_cast<std::uintptr_t>(structure) % 4 == 0;
}

// Frees an object whose free() answers nothing while a peer is in the middle of writing into memory that the program is
// to get back. A peer that has been stopped can make this last; other connections go on meanwhile.
template <typename Object>
dapl::Error free_when_quiet(DAT_HANDLE handle, const char* call, const char* argument, dapl::Detail detail) {
  for (;;) {
    Object* const object = dapl::lookup<Object>(handle);
    if (!object) return bad_handle(call, argument, handle, detail);
    dapl::Ia& ia = object->ia();
    {
      os::Guard guard(ia.engine());
      if (!object->alive()) return bad_handle(call, argument, handle, detail);
      if (const auto outcome = object->free()) return *outcome;
    }
    ia.nic().await_quiet();
  }
}

}  // namespace anydat::face

// Declares `var`, the object of class Type behind the argument `handle`, or returns the error that it is none.
#define ANYDAT_OBJECT(Type, var, handle, call, detail)          \
  auto* const var = ::anydat::dapl::lookup<dapl::Type>(handle); \
  if (!var) [[unlikely]]                                        \
  return ::anydat::face::bad_handle(call, #handle, handle, dapl::Detail::detail)

// Holds the engine of its instance from here on, or returns that error if another thread has freed the object
// meanwhile: it is dead then, but still there (MT-4).
#define ANYDAT_HOLD(var, handle, call, detail)                \
  const ::anydat::os::Guard var##_engine(var->ia().engine()); \
  if (!var->alive()) [[unlikely]]                             \
  return ::anydat::face::bad_handle(call, #handle, handle, dapl::Detail::detail)

// The same for an object that must belong to the IA instance `owner` (GEN-12).
#define ANYDAT_OBJECT_OF(owner, Type, var, handle, call, detail) \
  auto* const var = ::anydat::dapl::lookup<dapl::Type>(handle);  \
  if (!var || &var->ia() != (owner)) return ::anydat::face::bad_handle(call, #handle, handle, dapl::Detail::detail)

// And for one that may be DAT_HANDLE_NULL; `var` is null then.
#define ANYDAT_OPTIONAL_OF(owner, Type, var, handle, call, detail)                         \
  dapl::Type* const var = (handle) ? ::anydat::dapl::lookup<dapl::Type>(handle) : nullptr; \
  if ((handle) && (!var || &var->ia() != (owner)))                                         \
  return ::anydat::face::bad_handle(call, #handle, handle, dapl::Detail::detail)

// An endpoint's EVD, which may be DAT_HANDLE_NULL, and by habit of another instance. `evds`: dapl::EvdsOfCall.
#define ANYDAT_OPTIONAL_EVD(evds, var, handle, call, detail)                                            \
  dapl::Evd* const var = (handle) ? ::anydat::dapl::lookup<dapl::Evd>(handle) : nullptr;                \
  if ((handle) && !var) return ::anydat::face::bad_handle(call, #handle, handle, dapl::Detail::detail); \
  if ((handle) && !(evds).allows(*var)) return (evds).refuse(*var, call, #handle, dapl::Detail::detail)
