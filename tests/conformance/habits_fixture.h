// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the habits of other stacks' programs share.
#pragma once

#include <anydat/anydat.h>
#include <gtest/gtest.h>

#include <string>

#include "support/dat_fixture.h"

namespace anydat::test {

// The wire, with adapters opened under that setting.
inline Wire under(const char* compat, Wire wire) {
  wire.env["DAT_COMPAT"] = compat;
  return wire;
}

class HabitsTest : public testing::TestWithParam<Wire> {
 protected:
  // What the last refusal of this thread says.
  static std::string sentence() { return anydat_last_error(); }
};

}  // namespace anydat::test
