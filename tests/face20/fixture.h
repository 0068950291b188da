// SPDX-License-Identifier: BSD-3-Clause
// What the tests of uDAPL 2.0 alone share: they run over each wire, beside the suites that both versions have in common.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "support/dat_fixture.h"

namespace anydat::test {

class Dat2 : public testing::TestWithParam<Wire> {
 protected:
  Side server{GetParam()};
  Side client{GetParam()};
};

}  // namespace anydat::test
