// SPDX-License-Identifier: BSD-3-Clause
// The provider's calls on adapters and on any object.
#include "api/handles.h"

namespace anydat::api {

using dapl::Ia;

DAT_RETURN ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE* async_evd, DAT_IA_ATTR_MASK attr_mask, DAT_IA_ATTR* attr,
                    DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR* provider) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_ia_query", DAT_INVALID_HANDLE_IA);
  return ia->query(async_evd, attr_mask, attr, provider_mask, provider);
}

DAT_RETURN ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_ia_close", DAT_INVALID_HANDLE_IA);
  return Ia::close(*ia, flags);
}

DAT_RETURN set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context) {
  dapl::HandleSlot* slot = dapl::HandleTable::find(handle);
  if (!slot) return bad_handle("dat_set_consumer_context", "dat_handle", handle, DAT_NO_SUBTYPE);
  slot->context.store(context.as_64, std::memory_order_relaxed);
  return DAT_SUCCESS;
}

DAT_RETURN get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT* context) {
  dapl::HandleSlot* slot = dapl::HandleTable::find(handle);
  if (!slot) return bad_handle("dat_get_consumer_context", "dat_handle", handle, DAT_NO_SUBTYPE);
  if (!context) {
    return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_get_consumer_context: context is NULL");
  }
  context->as_64 = slot->context.load(std::memory_order_relaxed);
  return DAT_SUCCESS;
}

DAT_RETURN get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE* type) {
  dapl::HandleSlot* slot = dapl::HandleTable::find(handle);
  if (!slot) return bad_handle("dat_get_handle_type", "dat_handle", handle, DAT_NO_SUBTYPE);
  if (!type) return dapl::fail(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "dat_get_handle_type: handle_type is NULL");
  *type = static_cast<DAT_HANDLE_TYPE>(slot->type.load(std::memory_order_relaxed));
  return DAT_SUCCESS;
}

}  // namespace anydat::api
