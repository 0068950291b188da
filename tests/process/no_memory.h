// SPDX-License-Identifier: BSD-3-Clause
// Allocations that fail on purpose. The program's own operator new does it; the library's allocations go there, too, as
// those of any library do.
#pragma once

namespace anydat::test {

// While it lives, so many allocations of all threads work; the next one fails, or all from there on. One at a time.
class NoMemory {
 public:
  enum class Failing { one, all };
  NoMemory(long working, Failing which);
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;

  // Whether the last one that lived has made any fail.
  static bool has_failed_any();
};

}  // namespace anydat::test
