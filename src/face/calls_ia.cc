// SPDX-License-Identifier: BSD-3-Clause
// The provider's calls on adapters and on any object.
#include "face/calls.h"
#include "face/convert.h"
#include "face/objects.h"

namespace anydat::face {

dapl::Error ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE* async_evd, DAT_IA_ATTR_MASK attr_mask, DAT_IA_ATTR* attr,
                     DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR* provider) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_ia_query", handle_ia);
  const char* call = "dat_ia_query";
  if (attr_mask != 0) {
    if (const dapl::Error error = check_query(call, attr_mask, DAT_IA_FIELD_ALL, attr, 3)) return error;
  }
  if (provider_mask != 0) {
    if (const dapl::Error error = check_query(call, provider_mask, DAT_PROVIDER_FIELD_ALL, provider, 5)) return error;
  }
  if (async_evd) *async_evd = ia->async_evd();
  if (attr_mask != 0) fill(*ia, *attr);
  if (provider_mask != 0) {
    base::Guard guard(ia->engine());
    fill(ia->provider_attributes(), *provider);
  }
  return dapl::kSuccess;
}

dapl::Error ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags) {
  ANYDAT_OBJECT(Ia, ia, ia_handle, "dat_ia_close", handle_ia);
  return dapl::Ia::close(*ia, static_cast<dapl::CloseFlags>(flags));
}

dapl::Error set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context) {
  dapl::HandleSlot* slot = dapl::HandleTable::find(handle);
  if (!slot) return bad_handle("dat_set_consumer_context", "dat_handle", handle, dapl::Detail::none);
  slot->context.store(context.as_64, std::memory_order_relaxed);
  return dapl::kSuccess;
}

dapl::Error get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT* context) {
  dapl::HandleSlot* slot = dapl::HandleTable::find(handle);
  if (!slot) return bad_handle("dat_get_consumer_context", "dat_handle", handle, dapl::Detail::none);
  if (!context) {
    return dapl::fail(at(2), "dat_get_consumer_context: context is NULL");
  }
  context->as_64 = slot->context.load(std::memory_order_relaxed);
  return dapl::kSuccess;
}

dapl::Error get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE* type) {
  dapl::HandleSlot* slot = dapl::HandleTable::find(handle);
  if (!slot) return bad_handle("dat_get_handle_type", "dat_handle", handle, dapl::Detail::none);
  if (!type) return dapl::fail(at(2), "dat_get_handle_type: handle_type is NULL");
  *type = static_cast<DAT_HANDLE_TYPE>(slot->type.load(std::memory_order_relaxed));
  return dapl::kSuccess;
}

}  // namespace anydat::face
