// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace anydat::test {

// Where a helper was called, so that its failure names the line of the test.
struct Caller {
  const char* file;
  int line;
  static constexpr Caller here(const char* from_file = __builtin_FILE(), int from_line = __builtin_LINE()) {
    return {from_file, from_line};
  }
};

}  // namespace anydat::test
