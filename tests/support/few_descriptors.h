// SPDX-License-Identifier: BSD-3-Clause
// A process that has hardly a descriptor left.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace anydat::test {

// Uses descriptors up until only `left` can still be opened.
class FewDescriptors {
 public:
  explicit FewDescriptors(int left) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = 256;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = 0; (fd = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0;) used_.push_back(fd);
    for (; left > 0 && !used_.empty(); --left) give_one_back();
  }
  ~FewDescriptors() {
    while (!used_.empty()) give_one_back();
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  void give_one_back() {
    ::close(used_.back());
    used_.pop_back();
  }

  rlimit before_{};
  std::vector<int> used_;
};

}  // namespace anydat::test
