// SPDX-License-Identifier: BSD-3-Clause
// The RDMA device "fake0" of any machine: this program's own definitions of what the adapter calls of libibverbs and
// librdmacm come before the libraries'. It has objects and descriptors as a device has, but reaches no host.
#pragma once

#include <vector>

namespace anydat::test::fake {

// How many objects of all kinds the adapter has and has not given back.
int objects();
// The descriptors in them.
std::vector<int> descriptors();

// A device that has no shared receive queues, for the length of a scope.
class WithoutSharedQueues {
 public:
  WithoutSharedQueues();
  ~WithoutSharedQueues();
  WithoutSharedQueues(const WithoutSharedQueues&) = delete;
  WithoutSharedQueues& operator=(const WithoutSharedQueues&) = delete;
};

}  // namespace anydat::test::fake
