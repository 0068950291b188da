// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "dapl/attributes.h"
#include "dapl/ep_state.h"
#include "dapl/error.h"
#include "dapl/event.h"
#include "dapl/object.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class CheckedSegments;
class Evd;
class EvdsOfCall;
class Pz;
class Srq;

// An endpoint: the DAT state machine and rules around a queue pair.
//
// Thread safety: posts and the queries marked so may come from any thread; all else is called with the engine held, and
// so are the queue pair's reports. Posts read what they need from atomics: attributes and zone change only in states in
// which nothing but receives can be posted.
class Ep final : public Object, public nic::QueuePairEvents {
 public:
  static constexpr HandleType kType = HandleType::ep;

  struct Parts {
    Pz* pz = nullptr;
    Evd* recv = nullptr;
    Evd* request = nullptr;
    Evd* connect = nullptr;
  };

  Ep(Ia& ia, Srq* srq);
  ~Ep() override;

  // `attr` may be null for the defaults, unless there is an SRQ.
  static Error create(Ia& ia, const Parts& parts, Srq* srq, const EpAttributes* attr, Handle* handle);
  // A provider-made endpoint for a connection request (PSP-CREATE-6): no parts, TENTATIVE.
  static Ep* create_tentative(Ia& ia);

  // From any thread. AnySegment: Segment, or PackedSegment.
  template <typename AnySegment>
  Error post_send(Count num_segments, const AnySegment* iov, std::uint64_t cookie, CompletionFlags flags);
  template <typename AnySegment>
  Error post_recv(Count num_segments, const AnySegment* iov, std::uint64_t cookie, CompletionFlags flags);
  template <typename AnySegment>
  Error post_rdma_read(Count num_segments, const AnySegment* iov, std::uint64_t cookie, const AnySegment* remote,
                       CompletionFlags flags);
  template <typename AnySegment>
  Error post_rdma_write(Count num_segments, const AnySegment* iov, std::uint64_t cookie, const AnySegment* remote,
                        CompletionFlags flags);
  // A Read into one of this process's windows, which `local` names as a peer would (D2-READRMR).
  Error post_rdma_read_to_rmr(const PackedSegment* local, std::uint64_t cookie, const PackedSegment* remote,
                              CompletionFlags flags);
  // Sends, or receives, that are posted together, as if by one of the calls above after the other. Used as Srq::Row.
  class SendRow {
   public:
    explicit SendRow(Ep& ep) : ep_(ep) {}
    bool full() const { return count_ == nic::kRowMax; }
    bool add(const Segment& segment, std::uint64_t cookie, CompletionFlags flags);
    Error post(Count& posted);

   private:
    Ep& ep_;
    std::uint64_t regions_seen_ = 0;
    std::size_t count_ = 0;
    nic::SingleSend sends_[nic::kRowMax];
  };
  class RecvRow {
   public:
    explicit RecvRow(Ep& ep) : ep_(ep) {}
    bool full() const { return count_ == nic::kRowMax; }
    bool add(const Segment& segment, std::uint64_t cookie, CompletionFlags flags);
    Error post(Count& posted);

   private:
    Ep& ep_;
    nic::ZoneId zone_ = nic::kNoZone;
    std::uint64_t regions_seen_ = 0;
    std::size_t count_ = 0;
    nic::SingleRecv receives_[nic::kRowMax];
  };
  // D2-SENDINV. `context`: of the peer's window, and not 0.
  Error post_send_invalidate(Count num_segments, const PackedSegment* iov, std::uint64_t cookie, CompletionFlags flags,
                             std::uint32_t context);
  // Of the extension (D2-EXT-5). The last is a fetch_add, whose `compare` means nothing, or a compare_swap.
  Error post_write_immediate(Count num_segments, const PackedSegment* iov, std::uint64_t cookie,
                             const PackedSegment* remote, std::uint32_t value, CompletionFlags flags);
  struct Atomic {
    nic::WorkKind kind;
    std::uint64_t operand;  // what is added, or put in the place of `compare`
    std::uint64_t compare;
  };
  Error post_atomic(const Atomic& atomic, const PackedSegment* local, std::uint64_t cookie, const PackedSegment* remote,
                    CompletionFlags flags);
  const char* wire() const;  // of its connection; null if there is none
  struct ReceiveCounts {     // EP-RQ; kUnknownCount for what the NIC cannot tell
    Count allocated;
    Count span;
  };
  ReceiveCounts recv_query() const;
  // Whether its receives notify only of messages that were sent so (EVM-31).
  bool receives_solicited() const;
  EpState state() const { return state_machine_.state(); }
  EpStateMachine& state_machine() { return state_machine_; }
  const EpStateMachine& state_machine() const { return state_machine_; }
  nic::QueuePair& queue_pair() const { return *queue_pair_; }
  // Whether all receives or requests have completed, which is to say that their events are queued. Without the engine.
  bool receives_idle() const;
  bool requests_idle() const;

  // With the engine held.
  EpParameters query() const;
  // The members of `to` that `fields` names, or nothing.
  Error modify(EpFields fields, const EpParameters& to, const EvdsOfCall& evds);
  // Goes on without the EVD, whose instance closes: what would be queued there is lost.
  void give_back(const Evd& evd);
  Error connect(const sockaddr* remote, nic::ConnQual qual, Microseconds timeout, Count private_data_size,
                const void* private_data, Qos qos, ConnectFlags flags);
  // To the qualifier that is the address's port, without a wish for quality or paths (D2-CSP-7).
  Error common_connect(const sockaddr* remote, Microseconds timeout, Count private_data_size, const void* private_data);
  Error dup_connect(const Ep& dup, Microseconds timeout, Count private_data_size, const void* private_data, Qos qos);
  Error disconnect(CloseFlags flags);
  Error reset();
  // Nothing: a peer is in the middle of writing into a buffer; ask again, with the engine released in between.
  std::optional<Error> free();
  bool cut() { return !queue_pair_ || queue_pair_->cut(); }
  Error set_watermark(Count soft, Count hard);
  // Whether requests may be posted. If only the peer's word that the connection stands is missing, looks for it, so not
  // to be asked with the engine held.
  bool takes_requests() { return state_machine_.open_to_requests() || takes_requests_after_all(); }
  // Of an RMR of the zone `pz`, which has checked all that is its own. Fills in the flags; `key` is 0 if it was
  // flushed.
  Error post_bind(nic::BindRequest request, CompletionFlags flags, const Pz& pz, std::uint32_t& key);
  void shut_down();

  // For service points and requests.
  bool ready_to_connect() const { return parts_.pz && parts_.connect; }
  // Notes who asks, for queries until the request is answered (EP-QUERY-7).
  void offer(const nic::ConnectionRequest& request, nic::ConnQual local_port);
  // How the connection that is being made was agreed upon, for queries until the endpoint is reset (D2-CONN-4).
  void note_comm(const Comm& comm) { comm_ = comm; }
  const Parts& parts() const { return parts_; }
  // With the engine held: what it was made to do, whatever came of it.
  std::uint64_t connects() const { return connects_.get(); }
  std::uint64_t disconnects() const { return disconnects_.get(); }

  // nic::QueuePairEvents
  void on_established(std::span<const std::byte> private_data) override;
  void on_connect_failed(nic::ConnectFailure why, std::span<const std::byte> private_data) override;
  void on_accept_failed() override;
  void on_closed(bool broken) override;
  void on_soft_watermark() override;

 private:
  // What both ways to connect have in common.
  struct Request {
    const char* call;
    nic::Address remote;
    nic::ConnQual qual;
    Microseconds timeout;
    std::span<const std::byte> private_data;
    Qos qos;
    std::string_view adapter;  // of nic::ServicePointName
  };
  Error connect(const Request& request);
  // `argument`: by which the call is given the attributes.
  Error check_parts(const char* call, Argument argument, const Parts& parts, const EpAttributes& attr) const;
  Error check_zone_of_srq(const char* call, Argument argument, const Parts& parts) const;
  void take_parts(const Parts& parts, const EpAttributes& attr);
  void set_attributes(const EpAttributes& attr);
  bool report(EventKind kind);
  struct FlagRules {
    unsigned allowed;
    std::uint32_t model;  // of the direction
  };
  Error check_post_flags(const char* call, CompletionFlags flags, const FlagRules& rules) const {
    const unsigned usual = rules.allowed & ~completion::kUnsignalled;
    return (flags & ~usual) == 0 ? kSuccess : check_unusual_flags(call, flags, rules);
  }
  Error check_unusual_flags(const char* call, CompletionFlags flags, FlagRules rules) const;
  template <typename AnySegment>
  bool is_plain(Count num_segments, const AnySegment* iov, CompletionFlags flags, std::uint32_t rights) const;
  template <typename AnySegment>
  bool is_plain_send(Count num_segments, const AnySegment* iov, CompletionFlags flags) const;
  template <typename AnySegment>
  bool is_plain_recv(Count num_segments, const AnySegment* iov, CompletionFlags flags, nic::ZoneId zone) const;
  Error post_plain(const char* call, nic::WorkKind kind, const Segment& local, std::uint64_t length,
                   std::uint64_t cookie, CompletionFlags flags, const nic::RemoteSegment& remote,
                   std::uint64_t regions_seen);
  template <typename AnySegment>
  Error post_any_recv(Count num_segments, const AnySegment* iov, std::uint64_t cookie, CompletionFlags flags);
  Error receives_full() const;
  Error too_long(Argument argument, const char* call, std::uint64_t length, const char* name, std::uint64_t limit,
                 std::uint64_t limit_of_ia) const;
  template <typename AnySegment>
  [[gnu::noinline]] Error post_new_send(Count num_segments, const AnySegment* iov, std::uint64_t cookie,
                                        CompletionFlags flags);
  template <typename AnySegment>
  Error post_any_send(Count num_segments, const AnySegment* iov, std::uint64_t cookie, CompletionFlags flags);
  template <nic::WorkKind kind>
  bool fits(std::uint64_t from, std::uint64_t to) const;
  template <nic::WorkKind kind, typename AnySegment>
  Error post_rdma(Count max_segments, Count num_segments, const AnySegment* iov, std::uint64_t cookie,
                  const AnySegment* remote, CompletionFlags flags);
  template <nic::WorkKind kind, typename AnySegment>
  [[gnu::noinline]] Error post_new_rdma(Count max_segments, Count num_segments, const AnySegment* iov,
                                        std::uint64_t cookie, const AnySegment* remote, CompletionFlags flags);
  template <nic::WorkKind kind, typename AnySegment>
  Error post_any_rdma(Count max_segments, Count num_segments, const AnySegment* iov, std::uint64_t cookie,
                      const AnySegment* remote, CompletionFlags flags);
  bool takes_requests_after_all();
  Error check_extended(const char* call, std::uint32_t needed, CompletionFlags flags);
  Error check_extended(const char* call, std::uint32_t needed, const PackedSegment* remote, CompletionFlags flags);
  // What a Send sends, whatever else it does.
  template <typename AnySegment>
  Error check_message(const char* call, Count num_segments, const AnySegment* iov, CheckedSegments& segments) const;
  Error locate_in_window(const char* call, const Segment& local, std::uint64_t& where) const;
  Error post_outcome(const char* call, nic::Status status) const;

  Srq* const srq_;
  const nic::RegionTable& regions_;  // the adapter's
  const bool local_length_counts_;   // by habit: of an RDMA whose remote segment is shorter
  std::unique_ptr<nic::QueuePair> queue_pair_;
  EpStateMachine state_machine_;

  // With the engine held.
  Parts parts_;
  EpAttributes attr_{};
  bool parts_taken_ = false;
  Comm comm_;
  std::vector<std::byte> private_data_;  // of the last ESTABLISHED (PD-6) or PEER_REJECTED (D2-CR-2)
  struct Ends {
    nic::Address local, remote;
    std::uint64_t local_port, remote_port;
  };
  Ends offered_{};  // of the pending request that names the endpoint
  base::Counter connects_;
  base::Counter disconnects_;

  // What posts need of the above.
  std::atomic<nic::ZoneId> zone_{nic::kNoZone};
  std::atomic<Count> max_recv_iov_{0};
  std::atomic<Count> max_request_iov_{0};
  std::atomic<Count> max_rdma_read_iov_{0};
  std::atomic<Count> max_rdma_write_iov_{0};
  std::atomic<std::uint64_t> max_message_size_{0};
  std::atomic<std::uint64_t> max_rdma_size_{0};
  std::atomic<std::uint32_t> recv_model_{0};
  std::atomic<std::uint32_t> request_model_{0};
};

}  // namespace anydat::dapl
