// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "dapl/attributes.h"
#include "dapl/ep_state.h"
#include "dapl/error.h"
#include "dapl/types.h"
#include "nic/adapter.h"

namespace anydat::dapl {

class CheckedSegments;
class Ep;
class Pz;

// The work that is posted to an endpoint: receives, and requests, which are Sends, RDMA and binds. Each post is checked
// against the endpoint's state, zone and attributes, and goes to the queue pair. State machine and queue pair are
// kept here, since every request looks at the one and ends at the other. Requests of the extension are checked in
// EpExtendedPosts.
//
// Thread safety: any thread may post; (engine) means with the engine held. Posts read what they need from atomics:
// attributes and zone change only in states in which nothing but receives can be posted.
class EpPosts {
 public:
  // `shared`: the endpoint takes its buffers from an SRQ.
  EpPosts(Ep& ep, bool shared);

  // AnySegment: Segment, or PackedSegment.
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
  // Sends, or receives, that are posted together, as if by one of the calls above after the other. Used as Srq::Row.
  class SendRow {
   public:
    explicit SendRow(EpPosts& posts) : posts_(posts) {}
    bool full() const { return count_ == nic::kRowMax; }
    bool add(const Segment& segment, std::uint64_t cookie, CompletionFlags flags);
    Error post(Count& posted);

   private:
    EpPosts& posts_;
    std::uint64_t regions_seen_ = 0;
    std::size_t count_ = 0;
    nic::SingleSend sends_[nic::kRowMax];
  };
  class RecvRow {
   public:
    explicit RecvRow(EpPosts& posts) : posts_(posts) {}
    bool full() const { return count_ == nic::kRowMax; }
    bool add(const Segment& segment, std::uint64_t cookie, CompletionFlags flags);
    Error post(Count& posted);

   private:
    EpPosts& posts_;
    nic::ZoneId zone_ = nic::kNoZone;
    std::uint64_t regions_seen_ = 0;
    std::size_t count_ = 0;
    nic::SingleRecv receives_[nic::kRowMax];
  };
  // (engine) Of an RMR of the zone `pz`, which has checked all that is its own. Fills in the flags; `key` is 0 if it
  // was flushed.
  Error post_bind(nic::BindRequest request, CompletionFlags flags, const Pz& pz, std::uint32_t& key);

  // Whether requests may be posted. If only the peer's word that the connection stands is missing, looks for it, so not
  // to be asked with the engine held.
  bool takes_requests() { return state_machine_.open_to_requests() || takes_requests_after_all(); }
  // Whether its receives notify only of messages that were sent so (EVM-31).
  bool receives_solicited() const;

  EpStateMachine& state_machine() { return state_machine_; }
  const EpStateMachine& state_machine() const { return state_machine_; }
  // Null until the endpoint has got it.
  nic::QueuePair* queue_pair() const { return queue_pair_.get(); }
  void set_queue_pair(std::unique_ptr<nic::QueuePair> queue_pair) { queue_pair_ = std::move(queue_pair); }
  void set_attributes(const EpAttributes& attr);          // (engine)
  void set_zone(nic::ZoneId zone) { zone_.store(zone); }  // (engine)

 private:
  friend class EpExtendedPosts;  // whose requests have most of their rules from here

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
  // What a Send sends, whatever else it does.
  template <typename AnySegment>
  Error check_message(const char* call, Count num_segments, const AnySegment* iov, CheckedSegments& segments) const;
  Error post_outcome(const char* call, nic::Status status) const;

  Ep& ep_;
  const nic::RegionTable& regions_;  // the adapter's
  std::unique_ptr<nic::QueuePair> queue_pair_;
  EpStateMachine state_machine_;
  const bool shared_;
  const bool local_length_counts_;  // by habit: of an RDMA whose remote segment is shorter
  std::atomic<std::uint8_t> recv_model_{0};
  std::atomic<std::uint8_t> request_model_{0};
  std::atomic<nic::ZoneId> zone_{nic::kNoZone};
  std::atomic<Count> max_recv_iov_{0};
  std::atomic<Count> max_request_iov_{0};
  std::atomic<Count> max_rdma_read_iov_{0};
  std::atomic<Count> max_rdma_write_iov_{0};
  std::atomic<std::uint64_t> max_message_size_{0};
  std::atomic<std::uint64_t> max_rdma_size_{0};
};

}  // namespace anydat::dapl
