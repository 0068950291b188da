// SPDX-License-Identifier: BSD-3-Clause
#include "support/dat_matchers.h"

#include <fmt/format.h>

namespace anydat::test {

std::string describe(DAT_RETURN rc) {
  const char* major = nullptr;
  const char* minor = nullptr;
  (void)dat_strerror(rc, &major, &minor);
  return fmt::format("{} {} (0x{:08X})", major == nullptr ? "?" : major, minor == nullptr ? "?" : minor, rc);
}

}  // namespace anydat::test
