// SPDX-License-Identifier: BSD-3-Clause
// The rules are tested as they are written: DAT_COMPAT=strict, unless the environment of the run says otherwise.
#include <cstdlib>

namespace {

[[maybe_unused]] const int strict = ::setenv("DAT_COMPAT", "strict", 0);

}  // namespace
