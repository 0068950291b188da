// SPDX-License-Identifier: BSD-3-Clause
// The edge of the library: what stands around every function of ours, whether it is reached through an exported call or
// through the call table. No exception gets out, and what the objects answer becomes a return code.
#pragma once

#include <new>

#include "dapl/error.h"
#include "face/versions.h"
#include "os/cancel.h"

namespace anydat::face {

// For the length of a call (calls.def).
struct Nothing {};
using os::CancelOff;

// An argument that only a face checks, by its place in the call, counted from 1.
constexpr dapl::Argument at(unsigned place) {
  return static_cast<dapl::Argument>(0x80 + place);
}

// The return code for an error. `names`: the parameters of the call in parentheses, as calls.def lists them.
[[gnu::cold]] DAT_RETURN return_code(dapl::Error error, const char* names);

inline DAT_RETURN to_dat(dapl::Error error, const char* names) {
  // What has no subtype, such as an empty queue, which those meet who poll, is what it will be.
  static_assert(DAT_SUCCESS == 0 && DAT_NO_SUBTYPE == 0);
  if (error.word() == error.upper_half()) [[likely]]
    return error.word();
  return return_code(error, names);
}

template <typename Call, typename Function = decltype(Call::ours)>
struct Edge;
template <typename Call, typename... Arguments>
struct Edge<Call, dapl::Error(Arguments...)> {
  // In place where the exported calls are, since both look at the handle.
  [[gnu::always_inline]] static inline DAT_RETURN call(Arguments... arguments) {
    [[maybe_unused]] const typename Call::Cancelling cancelling;
    try {
      return to_dat(Call::ours(arguments...), Call::names);
    } catch (const std::bad_alloc&) {
      return dapl::error_code(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
    }
  }
};

}  // namespace anydat::face
