// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>

#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Pz;

// A shared receive queue as DAT sees it: argument rules and events. The NIC's receive queue holds the buffers and their
// counts.
//
// Thread safety: any thread may call any method; (engine) means with the engine held.
class Srq final : public Object, public nic::ReceiveQueueEvents {
 public:
  static constexpr DAT_HANDLE_TYPE kType = DAT_HANDLE_TYPE_SRQ;

  Srq(Ia& ia, Pz& pz, const DAT_SRQ_ATTR& attr);
  ~Srq() override;

  static DAT_RETURN create(Ia& ia, Pz& pz, const DAT_SRQ_ATTR* attr, DAT_SRQ_HANDLE* handle);
  DAT_RETURN post_recv(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie);
  DAT_RETURN query(DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM* param);
  DAT_RETURN resize(DAT_COUNT max_recv_dtos);
  DAT_RETURN set_low_watermark(DAT_COUNT low_watermark);
  DAT_RETURN free();  // (engine)
  void shut_down();   // (engine)

  Pz& pz() const { return pz_; }
  nic::ReceiveQueue& queue() const { return *queue_; }
  void attach() { ++endpoints_; }  // (engine)
  void detach() { --endpoints_; }  // (engine)
  DAT_COUNT endpoints() const { return endpoints_; }

  void on_low_watermark() override;
  void on_fault() override;

 private:
  DAT_RETURN post_any_recv(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie);
  DAT_RETURN is_full() const;

  Pz& pz_;
  const nic::RegionTable& regions_;  // the adapter's
  const DAT_COUNT max_iov_;
  std::unique_ptr<nic::ReceiveQueue> queue_;
  DAT_COUNT endpoints_ = 0;               // with the engine
  std::atomic<DAT_COUNT> low_watermark_;  // as last set (SRQ-QUERY-4); written with the engine
};

}  // namespace anydat::dapl
