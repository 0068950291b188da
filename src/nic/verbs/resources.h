// SPDX-License-Identifier: BSD-3-Clause
// Owners for what libibverbs and librdmacm hand out.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>

namespace anydat::nic::verbs {

template <auto kDestroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const {
    kDestroy(object);
  }
};

using ContextPtr = std::unique_ptr<ibv_context, Destroyer<ibv_close_device>>;
using ChannelPtr = std::unique_ptr<ibv_comp_channel, Destroyer<ibv_destroy_comp_channel>>;
using CqPtr = std::unique_ptr<ibv_cq, Destroyer<ibv_destroy_cq>>;
using SrqPtr = std::unique_ptr<ibv_srq, Destroyer<ibv_destroy_srq>>;
using QpPtr = std::unique_ptr<ibv_qp, Destroyer<ibv_destroy_qp>>;
using CmChannelPtr = std::unique_ptr<rdma_event_channel, Destroyer<rdma_destroy_event_channel>>;
using CmIdPtr = std::unique_ptr<rdma_cm_id, Destroyer<rdma_destroy_id>>;
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
