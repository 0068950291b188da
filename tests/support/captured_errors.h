// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace anydat::test {

// Standard error of this process as text, from now on to its end. For roles (support/peer_process.h).
class CapturedErrors {
 public:
  CapturedErrors() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0 || ::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 || ::dup2(ends[1], 2) != 2) {
      throw std::runtime_error("standard error cannot be captured");
    }
    read_end_ = ends[0];
  }
  std::string take() const {
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(read_end_, buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  int read_end_ = -1;
};

}  // namespace anydat::test
