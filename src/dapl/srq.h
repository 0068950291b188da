// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>

#include "dapl/attributes.h"
#include "dapl/error.h"
#include "dapl/object.h"
#include "dapl/pz.h"
#include "dapl/segments.h"
#include "nic/adapter.h"

namespace anydat::dapl {

// A shared receive queue as DAT sees it: argument rules and events. The NIC's receive queue holds the buffers and their
// counts.
//
// Thread safety: any thread may call any method; (engine) means with the engine held.
class Srq final : public Object, public nic::ReceiveQueueEvents {
 public:
  static constexpr HandleType kType = HandleType::srq;

  Srq(Ia& ia, Pz& pz, const SrqAttributes& attr);
  ~Srq() override;

  static Error create(Ia& ia, Pz& pz, const SrqAttributes& attr, Handle* handle);
  // The usual case here, where the face can have it without a call of its own.
  template <typename AnySegment>
  Error post_recv(Count num_segments, const AnySegment* iov, std::uint64_t cookie) {
    const nic::RegionTable& regions = regions_;  // once for both
    const std::uint64_t regions_seen = regions.removals();
    const nic::ZoneId zone = pz_.zone();
    if (max_iov_ >= 1 && is_plain(regions, num_segments, iov, zone, nic::access::kLocalWrite)) [[likely]] {
      const Segment& segment = whole(*iov);
      const nic::Status status = queue_->post({cookie, {&segment, 1}, false, zone, regions_seen});
      if (status != nic::Status::ok) [[unlikely]]
        return is_full();
      return kSuccess;
    }
    return post_any_recv(num_segments, iov, cookie);
  }
  // Receives that are posted together, as if by one post_recv() after the other.
  class Row {
   public:
    explicit Row(Srq& srq) : srq_(srq), zone_(srq.pz_.zone()) {}
    bool full() const { return count_ == nic::kRowMax; }
    // False: it is not as nearly all are, and shall be posted by itself, behind those of the row. Requires: not full.
    bool add(const Segment& segment, std::uint64_t cookie) {
      if (count_ == 0) regions_seen_ = srq_.regions_.removals();
      if (srq_.max_iov_ < 1 || !is_plain(srq_.regions_, 1, &segment, zone_, nic::access::kLocalWrite)) [[unlikely]]
        return false;
      receives_[count_++] = {cookie, segment};
      return true;
    }
    // Posts them; the row is empty afterwards. Adds to `posted` how many were.
    Error post(Count& posted);

   private:
    Srq& srq_;
    const nic::ZoneId zone_;
    std::uint64_t regions_seen_ = 0;
    std::size_t count_ = 0;
    nic::SingleRecv receives_[nic::kRowMax];  // written as far as it is used
  };
  SrqParameters query();
  Error resize(Count max_recv_dtos);
  Error set_low_watermark(Count low_watermark);
  Error free();      // (engine)
  void shut_down();  // (engine)

  Pz& pz() const { return pz_; }
  nic::ReceiveQueue& queue() const { return *queue_; }
  void attach() { ++endpoints_; }  // (engine)
  void detach() { --endpoints_; }  // (engine)
  Count endpoints() const { return endpoints_; }

  void on_low_watermark() override;
  void on_fault() override;

 private:
  template <typename AnySegment>
  Error post_any_recv(Count num_segments, const AnySegment* iov, std::uint64_t cookie);
  Error is_full() const;

  Pz& pz_;
  const nic::RegionTable& regions_;  // the adapter's
  const Count max_iov_;
  std::unique_ptr<nic::ReceiveQueue> queue_;
  Count endpoints_ = 0;               // with the engine
  std::atomic<Count> low_watermark_;  // as last set (SRQ-QUERY-4); written with the engine
};

}  // namespace anydat::dapl
