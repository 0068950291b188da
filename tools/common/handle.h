// SPDX-License-Identifier: BSD-3-Clause
// Owners for DAT handles: an owner frees its object, in the reverse order of creation.
#ifndef ANYDAT_TOOLS_COMMON_HANDLE_H
#define ANYDAT_TOOLS_COMMON_HANDLE_H

#include <dat/udat.h>

#include <utility>

namespace tools {

template <auto kFree>
class Handle {
 public:
  Handle() = default;
  explicit Handle(DAT_HANDLE handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Handle() { reset(); }

  DAT_HANDLE get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

  // A refusal to free is not reported: closing the IA abruptly takes whatever is left.
  void reset() {
    if (handle_ != nullptr) kFree(std::exchange(handle_, nullptr));
  }

 private:
  DAT_HANDLE handle_ = nullptr;
};

inline DAT_RETURN close_abruptly(DAT_IA_HANDLE ia) {
  return dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
}

using Ia = Handle<&close_abruptly>;
using Pz = Handle<&dat_pz_free>;
using Evd = Handle<&dat_evd_free>;
using Lmr = Handle<&dat_lmr_free>;
using Srq = Handle<&dat_srq_free>;
using Ep = Handle<&dat_ep_free>;
using Psp = Handle<&dat_psp_free>;

}  // namespace tools

#endif
