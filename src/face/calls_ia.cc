// SPDX-License-Identifier: BSD-3-Clause
// The provider's calls on adapters and on any object.
#include "dapl/open_query.h"
#include "face/calls.h"
#include "face/convert.h"
#include "face/ia_query.h"
#include "face/objects.h"

namespace anydat::face {

dapl::Error ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE* async_evd, DAT_IA_ATTR_MASK attr_mask, DAT_IA_ATTR* attr,
                     DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR* provider) {
  const char* call = "dat_ia_query";
  const IaQuery query{attr_mask, attr, provider_mask, provider, 3};
  const auto asked = dapl::Query::with(ia_handle, [&](const dapl::Description& adapter) {  // D2-QUERY-3
    const dapl::Error error = query.check(call, {});
    if (error) return error;
    if (async_evd) *async_evd = DAT_HANDLE_NULL;  // D2-QUERY-5
    query.answer(adapter);
    return error;
  });
  if (asked) return *asked;
  ANYDAT_OBJECT(Ia, ia, ia_handle, call, handle_ia);
  if (const dapl::Error error = query.check(call, ia->habits().unknown_mask_bits)) return error;
  if (async_evd) *async_evd = ia->async_evd();
  query.answer(ia->description());
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
