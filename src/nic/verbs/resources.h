// SPDX-License-Identifier: BSD-3-Clause
// Owners for what libibverbs and librdmacm hand out.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>

#include "nic/verbs/opened.h"

namespace anydat::nic::verbs {

template <auto kDestroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const {
    kDestroy(object);
  }
};

using Context = Opened<ibv_context, ibv_close_device, &ibv_context::cmd_fd, &ibv_context::async_fd>;
using CompletionChannel = Opened<ibv_comp_channel, ibv_destroy_comp_channel, &ibv_comp_channel::fd>;
using CmChannel = Opened<rdma_event_channel, rdma_destroy_event_channel, &rdma_event_channel::fd>;
using CqPtr = std::unique_ptr<ibv_cq, Destroyer<ibv_destroy_cq>>;
using SrqPtr = std::unique_ptr<ibv_srq, Destroyer<ibv_destroy_srq>>;
using QpPtr = std::unique_ptr<ibv_qp, Destroyer<ibv_destroy_qp>>;

// No fork comes between the beginning and the end of calls that take librdmacm's locks: the child could never take
// them.
inline int create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context) {
  const os::ForkHeldOff held_off;
  return rdma_create_id(channel, id, context, RDMA_PS_TCP);
}
inline int bind_id(rdma_cm_id* id, sockaddr* address) {
  const os::ForkHeldOff held_off;
  return rdma_bind_addr(id, address);
}
inline int get_event(rdma_event_channel* channel, rdma_cm_event** event) {
  const os::ForkHeldOff held_off;
  return rdma_get_cm_event(channel, event);
}
// May take seconds over iWARP (AbandonedAttempts), longer than a fork is held off.
inline int destroy_id(rdma_cm_id* id) {
  const os::ForkHeldOff held_off;
  return rdma_destroy_id(id);
}
using CmIdPtr = std::unique_ptr<rdma_cm_id, Destroyer<destroy_id>>;
using PdPtr = std::shared_ptr<ibv_pd>;

// A registered piece of memory, which keeps its protection domain.
class MemoryRegion {
 public:
  MemoryRegion() = default;
  MemoryRegion(PdPtr pd, ibv_mr* mr) : pd_(std::move(pd)), mr_(mr) {}
  MemoryRegion(MemoryRegion&&) noexcept = default;
  MemoryRegion& operator=(MemoryRegion&& other) noexcept {
    mr_ = std::move(other.mr_);  // before the domain that it is of
    pd_ = std::move(other.pd_);
    return *this;
  }
  explicit operator bool() const { return mr_ != nullptr; }
  const ibv_mr* operator->() const { return mr_.get(); }

 private:
  PdPtr pd_;  // goes last
  std::unique_ptr<ibv_mr, Destroyer<ibv_dereg_mr>> mr_;
};

}  // namespace anydat::nic::verbs
