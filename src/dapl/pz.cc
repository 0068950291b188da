// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/pz.h"

#include "dapl/ia.h"

namespace anydat::dapl {

Error Pz::create(Ia& ia, Handle* handle) {
  if (!handle) return fail(Argument::pz_handle, "dat_pz_create: pz_handle is NULL");
  os::Guard guard(ia.engine());
  Pz* pz = ia.adopt(std::make_unique<Pz>(ia, ia.next_zone()));
  if (!pz) return ia.out_of("dat_pz_create", "protection zones", Detail::protection_domain);
  *handle = pz->handle();
  return kSuccess;
}

Error Pz::free() {
  if (uses_ > 0) {
    return fail(Code::invalid_state, Detail::pz_in_use, "dat_pz_free: {} objects still use the zone", uses_);
  }
  ia().retire(*this);
  return kSuccess;
}

}  // namespace anydat::dapl
