// SPDX-License-Identifier: BSD-3-Clause
// Of every program of tests.
#include <gtest/gtest.h>

#include "support/watchdog.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  anydat::test::watch_tests();
  return RUN_ALL_TESTS();
}
