// SPDX-License-Identifier: BSD-3-Clause
#include "dapl/pz.h"

#include "dapl/error.h"
#include "dapl/ia.h"
#include "dapl/ranges.h"

namespace anydat::dapl {

DAT_RETURN Pz::create(Ia& ia, DAT_PZ_HANDLE* handle) {
  if (!handle) return fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_pz_create: pz_handle is NULL");
  base::Guard guard(ia.engine());
  Pz* pz = ia.adopt(std::make_unique<Pz>(ia, ia.next_zone()));
  if (!pz) return ia.out_of("dat_pz_create", "protection zones", DAT_RESOURCE_PROTECTION_DOMAIN);
  *handle = pz->handle();
  return DAT_SUCCESS;
}

DAT_RETURN Pz::query(DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* param) {
  if (const DAT_RETURN rc = check_query("dat_pz_query", mask, DAT_PZ_FIELD_ALL, param)) return rc;
  param->ia_handle = ia().handle();
  return DAT_SUCCESS;
}

DAT_RETURN Pz::free() {
  if (uses_ > 0) {
    return fail(DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE, "dat_pz_free: {} objects still use the zone", uses_);
  }
  ia().retire(*this);
  return DAT_SUCCESS;
}

}  // namespace anydat::dapl
