// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class Evd;
class Pz;
class Srq;

const char* name_of(DAT_EP_STATE state);
DAT_RETURN subtype_of(DAT_EP_STATE state);  // table 2.4

// An endpoint: the DAT state machine and rules around a queue pair.
//
// Thread safety: posts and the queries marked so may come from any thread; all else is called with the engine held, and
// so are the queue pair's reports. Posts read what they need from atomics: attributes and zone change only in states in
// which nothing but receives can be posted.
class Ep final : public Object, public nic::QueuePairEvents {
 public:
  static constexpr DAT_HANDLE_TYPE kType = DAT_HANDLE_TYPE_EP;

  struct Parts {
    Pz* pz = nullptr;
    Evd* recv = nullptr;
    Evd* request = nullptr;
    Evd* connect = nullptr;
  };

  Ep(Ia& ia, Srq* srq);
  ~Ep() override;

  // `attr` may be null for the defaults, unless there is an SRQ.
  static DAT_RETURN create(Ia& ia, const Parts& parts, Srq* srq, const DAT_EP_ATTR* attr, DAT_EP_HANDLE* handle);
  // A provider-made endpoint for a connection request (PSP-CREATE-6): no parts, TENTATIVE.
  static Ep* create_tentative(Ia& ia);

  // From any thread.
  DAT_RETURN post_send(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                       DAT_COMPLETION_FLAGS flags);
  DAT_RETURN post_recv(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                       DAT_COMPLETION_FLAGS flags);
  DAT_RETURN post_rdma_read(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                            const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags);
  DAT_RETURN post_rdma_write(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                             const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags);
  const char* wire() const;  // of its connection; null if there is none
  DAT_RETURN get_status(DAT_EP_STATE* state, DAT_BOOLEAN* recv_idle, DAT_BOOLEAN* request_idle) const;
  DAT_RETURN recv_query(DAT_COUNT* allocated, DAT_COUNT* span) const;
  // Whether its receives notify only of messages that were sent so (EVM-31).
  bool receives_solicited() const;
  DAT_EP_STATE state() const { return state_.load(std::memory_order_acquire); }
  nic::QueuePair& queue_pair() const { return *queue_pair_; }

  // With the engine held.
  DAT_RETURN query(DAT_EP_PARAM_MASK mask, DAT_EP_PARAM* param);
  DAT_RETURN modify(DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM* param);
  DAT_RETURN connect(DAT_IA_ADDRESS_PTR remote, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
                     const void* private_data, DAT_QOS qos, DAT_CONNECT_FLAGS flags);
  DAT_RETURN dup_connect(const Ep& dup, DAT_TIMEOUT timeout, DAT_COUNT private_data_size, const void* private_data,
                         DAT_QOS qos);
  DAT_RETURN disconnect(DAT_CLOSE_FLAGS flags);
  DAT_RETURN reset();
  // Nothing: a peer is in the middle of writing into a buffer; ask again, with the engine released in between.
  std::optional<DAT_RETURN> free();
  bool cut() { return !queue_pair_ || queue_pair_->cut(); }
  DAT_RETURN set_watermark(DAT_COUNT soft, DAT_COUNT hard);
  // Whether requests may be posted. If only the peer's word that the connection stands is missing, looks for it, so not
  // to be asked with the engine held.
  bool takes_requests() { return open_to_requests(state()) || takes_requests_after_all(); }
  // Of an RMR of the zone `pz`, which has checked all that is its own. Fills in the flags; `key` is 0 if it was
  // flushed.
  DAT_RETURN post_bind(nic::BindRequest request, DAT_COMPLETION_FLAGS flags, const Pz& pz, std::uint32_t& key);
  void shut_down();

  // For service points and requests.
  DAT_RETURN wrong_state(const char* call) const;
  bool ready_to_connect() const { return parts_.pz && parts_.connect; }
  void set_state(DAT_EP_STATE state) { state_.store(state, std::memory_order_release); }
  // Notes who asks, for queries until the request is answered (EP-QUERY-7).
  void offer(const nic::ConnectionRequest& request, nic::ConnQual local_port);
  const Parts& parts() const { return parts_; }

  // nic::QueuePairEvents
  void on_established(std::span<const std::byte> private_data) override;
  void on_connect_failed(nic::ConnectFailure why, std::span<const std::byte> private_data) override;
  void on_accept_failed() override;
  void on_closed(bool broken) override;
  void on_soft_watermark() override;

 private:
  // What both ways to connect have in common, and the places of two arguments in the call.
  struct Request {
    const char* call;
    nic::Address remote;
    DAT_CONN_QUAL qual;
    DAT_TIMEOUT timeout;
    DAT_RETURN timeout_argument;
    std::span<const std::byte> private_data;
    DAT_QOS qos;
    std::string_view adapter;  // of nic::ServicePointName
  };
  DAT_RETURN connect(const Request& request);
  DAT_RETURN check_parts(const char* call, const Parts& parts, const DAT_EP_ATTR& attr) const;
  void take_parts(const Parts& parts, const DAT_EP_ATTR& attr);
  void set_attributes(const DAT_EP_ATTR& attr);
  bool report(DAT_EVENT_NUMBER number);
  struct FlagRules {
    unsigned allowed;
    std::uint32_t model;  // of the direction
    DAT_RETURN subtype;   // names the argument
  };
  DAT_RETURN check_post_flags(const char* call, DAT_COMPLETION_FLAGS flags, const FlagRules& rules) const {
    const unsigned usual = rules.allowed & ~unsigned{DAT_COMPLETION_UNSIGNALLED_FLAG};
    return (flags & ~usual) == 0 ? DAT_SUCCESS : check_unusual_flags(call, flags, rules);
  }
  DAT_RETURN check_unusual_flags(const char* call, DAT_COMPLETION_FLAGS flags, FlagRules rules) const;
  bool is_plain(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_COMPLETION_FLAGS flags,
                std::uint32_t rights) const;
  DAT_RETURN post_plain(const char* call, nic::WorkKind kind, const DAT_LMR_TRIPLET& local, std::uint64_t length,
                        DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags, const nic::RemoteSegment& remote,
                        std::uint64_t regions_seen);
  DAT_RETURN post_any_recv(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                           DAT_COMPLETION_FLAGS flags);
  DAT_RETURN receives_full() const;
  DAT_RETURN post_any_send(DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                           DAT_COMPLETION_FLAGS flags);
  template <nic::WorkKind kind>
  bool fits(DAT_VLEN from, DAT_VLEN to) const;
  template <nic::WorkKind kind>
  DAT_RETURN post_rdma(DAT_COUNT max_segments, DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov,
                       DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags);
  template <nic::WorkKind kind>
  [[gnu::noinline]] DAT_RETURN post_new_rdma(DAT_COUNT max_segments, DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov,
                                             DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote,
                                             DAT_COMPLETION_FLAGS flags);
  template <nic::WorkKind kind>
  DAT_RETURN post_any_rdma(DAT_COUNT max_segments, DAT_COUNT num_segments, const DAT_LMR_TRIPLET* iov,
                           DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags);
  static bool open_to_requests(DAT_EP_STATE now) {
    return now == DAT_EP_STATE_CONNECTED || now == DAT_EP_STATE_DISCONNECTED;
  }
  bool takes_requests_after_all();
  DAT_RETURN post_outcome(const char* call, nic::Status status) const;

  Srq* const srq_;
  const nic::RegionTable& regions_;  // the adapter's
  const bool local_length_counts_;   // by habit: of an RDMA whose remote segment is shorter
  std::unique_ptr<nic::QueuePair> queue_pair_;
  std::atomic<DAT_EP_STATE> state_{DAT_EP_STATE_UNCONNECTED};

  // With the engine held.
  Parts parts_;
  DAT_EP_ATTR attr_{};
  bool parts_taken_ = false;
  std::vector<std::byte> private_data_;  // of the last ESTABLISHED (PD-6)
  struct Ends {
    nic::Address local, remote;
    std::uint64_t local_port, remote_port;
  };
  Ends offered_{};  // of the pending request that names the endpoint

  // What posts need of the above.
  std::atomic<nic::ZoneId> zone_{nic::kNoZone};
  std::atomic<DAT_COUNT> max_recv_iov_{0};
  std::atomic<DAT_COUNT> max_request_iov_{0};
  std::atomic<DAT_COUNT> max_rdma_read_iov_{0};
  std::atomic<DAT_COUNT> max_rdma_write_iov_{0};
  std::atomic<DAT_VLEN> max_message_size_{0};
  std::atomic<DAT_VLEN> max_rdma_size_{0};
  std::atomic<std::uint32_t> recv_model_{0};
  std::atomic<std::uint32_t> request_model_{0};
};

}  // namespace anydat::dapl
