// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "face/dat.h"

#include <cstdint>

#include "dapl/error.h"
#include "registry/foreign.h"

namespace anydat::registry {

// One call into a Provider other than ours.
class ForeignCall {
 public:
  enum class Subject : std::uint8_t {
    object,
    ia,                // an instance, checked against those that are open (ruling A7)
    destroyed_object,  // one that may be gone when the call has returned
    destroyed_ia,
  };

  ForeignCall(DAT_HANDLE handle, Subject subject);
  ~ForeignCall();
  ForeignCall(const ForeignCall&) = delete;
  ForeignCall& operator=(const ForeignCall&) = delete;

  // False: the handle is of no Provider.
  explicit operator bool() const { return table_ != nullptr; }

  // The call, or DAT_NOT_IMPLEMENTED if the Provider has not got it (RC-7). Requires: *this is true.
  template <typename Function, typename... Arguments>
  DAT_RETURN operator()(Function DAT_PROVIDER::*slot, Arguments... arguments) const {
    return table_->has(slot) ? (table_->provider->*slot)(arguments...) : static_cast<DAT_RETURN>(DAT_NOT_IMPLEMENTED);
  }

 private:
  ForeignTable* table_ = nullptr;
  const bool destroys_;
};

// What another Provider returns for `call`. A refusal that has no sentence of ours becomes that of anydat_last_error(),
// where an older one would mislead; everyday outcomes have none.
DAT_RETURN noted(const char* call, std::uint64_t sentences_before, DAT_RETURN rc);
template <typename Function>
DAT_RETURN noted(const char* call, Function&& foreign) {
  const std::uint64_t before = dapl::sentences();
  return noted(call, before, foreign());
}

}  // namespace anydat::registry
