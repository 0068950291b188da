// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "os/unique_fd.h"

namespace anydat::os {

// A descriptor that poll(2) finds readable from set() to clear(). It is closed with the object, and on exec. Neither
// call blocks or is a cancellation point; the caller keeps them apart. Where the program has closed the descriptor by
// its number they do nothing.
class Readable {
 public:
  // Null if there is no descriptor left.
  static std::unique_ptr<Readable> make();

  int fd() const { return fd_.get(); }
  void set();
  void clear();

 private:
  explicit Readable(UniqueFd fd) : fd_(std::move(fd)) {}

  const UniqueFd fd_;
};

}  // namespace anydat::os
