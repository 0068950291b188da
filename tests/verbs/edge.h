// SPDX-License-Identifier: BSD-3-Clause
// The edge between the adapter for RDMA devices and libibverbs or librdmacm: this program's own definitions of a few
// functions come before the library's, pass everything on, and do what a device or a kernel seldom does when a test
// asks for it.
#pragma once

#include <infiniband/verbs.h>

#include <vector>

namespace anydat::test::edge {

// The queue pairs that the adapter has made and not destroyed, oldest first, with the queues they were made with.
struct QueuePair {
  ibv_qp* qp;
  ibv_context* device;  // as one instance of the adapter has opened it
  ibv_cq* completions;
  ibv_cq* receives;
  ibv_srq* shared;  // or null
};
std::vector<QueuePair> queue_pairs();

// The kernel is slow: while one of these lives, calls of that kind do not come back. `connecting` is rdma_connect(),
// which has done its work by then.
enum class Call { registering, deregistering, destroying, connecting };
class Gate {
 public:
  explicit Gate(Call call);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  bool reached() const;  // a call waits
  void let_one_pass();   // of those that wait, or the next

 private:
  const Call call_;
};

// A device that cannot change the size of a shared receive queue, as long as one of these lives.
class FixedSizes {
 public:
  FixedSizes();
  ~FixedSizes();
  FixedSizes(const FixedSizes&) = delete;
  FixedSizes& operator=(const FixedSizes&) = delete;
};

// The device tells its owner of an asynchronous event.
void raise(ibv_context* device, const ibv_async_event& event);

}  // namespace anydat::test::edge
