// SPDX-License-Identifier: BSD-3-Clause
// The whole API as data: every call that takes a handle, with what its arguments are.
#pragma once

#include <dat/udat.h>

#include <functional>
#include <string>
#include <vector>

#include "handles_fixture.h"

namespace anydat::test {

// One handle among the arguments of a call.
struct HandleArgument {
  DAT_HANDLE_TYPE type;
  DAT_HANDLE Household::*good;  // what a test that means no harm passes
  DAT_RETURN_SUBTYPE subtype;   // of the refusal; DAT_NO_SUBTYPE if no rule names one
  bool null_is_allowed = false;
};

using Handles = std::vector<DAT_HANDLE>;

struct ApiCall {
  std::string name;  // of the function; behind a space, which of its uses
  std::vector<HandleArgument> handles;
  // The call with these handles and otherwise good arguments.
  std::function<DAT_RETURN(Household&, const Handles&)> call;
  bool may_lack = false;  // an adapter may answer DAT_MODEL_NOT_SUPPORTED

  std::string function() const { return name.substr(0, name.find(' ')); }
  Handles good_handles(const Household& home) const;
};

// Those that version 2.0 has added or changed: those of api_table2.cc, or none.
std::vector<ApiCall> calls_of_version2();

// Every exported call that takes a handle.
const std::vector<ApiCall>& api_calls();

}  // namespace anydat::test
