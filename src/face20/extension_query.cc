// SPDX-License-Identifier: BSD-3-Clause
// The query without an open (chapter 13.4 of the rules).
#include <cstring>

#include "face/edge.h"
#include "face/objects.h"
#include "face/own_provider.h"
#include "face20/extension.h"
#include "face20/query_arguments.h"

namespace anydat::face {

namespace {

constexpr const char* kCall = "dat_ib_open_query";
// Of the arguments of dat_extension_op.
constexpr unsigned kNamePlace = 3;
constexpr unsigned kMaskPlace = 5;

}  // namespace

QueryArguments::QueryArguments(va_list arguments)
    : name_(va_arg(arguments, const char*)), handle_(va_arg(arguments, DAT_HANDLE*)) {
  structures_.attr_mask = va_arg(arguments, DAT_IA_ATTR_MASK);
  structures_.attr = va_arg(arguments, DAT_IA_ATTR*);
  structures_.provider_mask = va_arg(arguments, DAT_PROVIDER_ATTR_MASK);
  structures_.provider = va_arg(arguments, DAT_PROVIDER_ATTR*);
  structures_.place = kMaskPlace;
}

dapl::Error QueryArguments::check() const {
  if (handle_) *handle_ = DAT_HANDLE_NULL;  // as IA-OPEN-26
  if (!name_ || strnlen(name_, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH) {
    return dapl::fail(at(kNamePlace), "{}: the name is NULL or has no end", kCall);
  }
  if (!handle_) return dapl::fail(at(kNamePlace + 1), "{}: ia_handle is NULL", kCall);
  if (!structures_.attr && !structures_.provider) {
    return dapl::fail(at(kMaskPlace + 1), "{}: no structure is given", kCall);
  }
  return structures_.check(kCall, {});
}

dapl::Error open_query(va_list arguments) {
  const QueryArguments query(arguments);
  if (const dapl::Error error = query.check()) return error;
  return query.open([&](DAT_HANDLE* made) { return query_registered(query.name(), made); });
}

dapl::Error close_query(DAT_HANDLE handle) {
  if (dapl::Query::close(handle)) return dapl::kSuccess;
  return bad_handle("dat_ib_close_query", "ia_handle", handle, dapl::Detail::none);
}

}  // namespace anydat::face
