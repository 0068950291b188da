// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdarg>

#include "dapl/open_query.h"
#include "face/ia_query.h"

namespace anydat::face {

// What DAT_IB_OPEN_QUERY_OP is given, read once (D2-EXT-4, D2-QUERY-1).
class QueryArguments {
 public:
  explicit QueryArguments(va_list arguments);

  dapl::Error check() const;
  const char* name() const { return name_; }
  DAT_HANDLE* handle() const { return handle_; }
  // open(DAT_HANDLE*) makes the query, of which the structures are filled. Requires: checked.
  template <typename Open>
  dapl::Error open(Open open) const {
    DAT_HANDLE made = DAT_HANDLE_NULL;
    if (const dapl::Error error = open(&made)) return error;
    (void)dapl::Query::with(made, [this](const dapl::Description& adapter) {
      structures_.answer(adapter);
      return dapl::kSuccess;
    });
    *handle_ = made;
    return dapl::kSuccess;
  }

 private:
  const char* name_;
  DAT_HANDLE* handle_;
  IaQuery structures_;
};

}  // namespace anydat::face
