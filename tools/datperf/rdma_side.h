// SPDX-License-Identifier: BSD-3-Clause
// One process's half of a run of RDMA Writes or Reads.
//
// Each side offers the other a region of slots. The operations of an endpoint in a phase take turns, each of
// `per_turn_` in a row; those of the n-th turn are between slot n modulo their number here and slot n modulo their
// number there. What they carry is a number that both sides can tell beforehand. A turn of several asks for the
// completion of its last one, and only what that one did is looked at, as programs do that move much. An end of a phase
// is a Send on each connection, which arrives behind all that was written before it and completes behind all that was
// posted before it.
#ifndef ANYDAT_TOOLS_DATPERF_RDMA_SIDE_H
#define ANYDAT_TOOLS_DATPERF_RDMA_SIDE_H

#include "datperf/side.h"

namespace datperf {

class RdmaSide : public Side {
 public:
  RdmaSide(const tools::Adapter& adapter, const Params& params, Role role);

  // Set-up, after all connections are up: tell each other where the slots are. Throw Error.
  void send_report(Report report) {
    sign(report);
    send_report_on(0, report);
  }
  void meet(const Report& offer);  // client
  void meet();                     // server

  // Before each phase. The first also before the other side can begin it: no slot holds what the phase is going to
  // bring.
  void clear_slots();
  void begin_phase();
  // One operation that is ready to be posted.
  struct Transfer {
    DAT_EP_HANDLE ep;
    DAT_LMR_TRIPLET here;
    DAT_RMR_TRIPLET there;
    DAT_DTO_COOKIE cookie;
    DAT_COMPLETION_FLAGS flags;
  };
  // To write the message `sequence` into the peer's slot, or read the slot, whose turn it is; at the beginning of a
  // turn after waiting for the slot here. Each is posted before the next one is prepared.
  template <bool kBlock>
  bool prepare(Lane& lane, std::uint32_t endpoint, std::uint64_t sequence, Transfer& transfer);
  template <bool kBlock>
  bool prepare(std::uint32_t endpoint, std::uint64_t sequence, Transfer& transfer) {
    return prepare<kBlock>(lanes_[endpoint], endpoint, sequence, transfer);
  }
  bool post(Transfer& transfer);
  template <bool kBlock>
  bool transfer(Lane& lane, std::uint32_t endpoint, std::uint64_t sequence) {
    Transfer next;
    return prepare<kBlock>(lane, endpoint, sequence, next) && post(next);
  }
  template <bool kBlock>
  bool transfer(std::uint32_t endpoint, std::uint64_t sequence) {
    return transfer<kBlock>(lanes_[endpoint], endpoint, sequence);
  }
  // By endpoint. Loops ask once: a post takes what leads to them out of the fastest cache.
  Lane* lanes() { return lanes_.data(); }
  // Looks once at the completions that are there.
  bool look();
  // Waits until all of an endpoint's transfers are complete.
  template <bool kBlock>
  bool settle(std::uint32_t endpoint);
  // Waits until the peer has written the message `sequence` into our slot whose turn it is. Looks at memory only, and
  // now and then whether the connection is still there.
  bool await_write(std::uint32_t endpoint, std::uint64_t sequence);
  // With notices: a Send of no bytes behind a Write, and the wait for that of the peer, in place of the looks at
  // memory.
  bool post_notice(std::uint32_t endpoint);
  template <bool kBlock>
  bool await_notice(std::uint32_t endpoint, std::uint64_t sequence);

  // The end of a phase. Who has made transfers says so on all connections, and has them complete then; the other side
  // waits for that. Throw Error.
  void finish_phase();
  void await_finish();
  // Whether the last messages of a phase of `count` Writes are all in their slots, and how many those are.
  bool all_written(std::uint64_t count) const;
  std::uint64_t looked_at(std::uint64_t count) const;
  std::uint64_t bad() const { return bad_; }  // Reads that brought something else than the slot holds at the peer

 private:
  struct Course {                   // of one endpoint in one phase
    std::uint64_t base = 0;         // requests posted before it
    std::uint64_t transferred = 0;  // our transfers
    std::uint64_t awaited = 0;      // writes of the peer that we have seen
    std::uint64_t last = 0;         // the number of the Send that ends the phase; 0: not posted
  };

  void send_report_on(std::uint32_t endpoint, const Report& report);
  std::size_t own_offset(std::uint32_t endpoint, std::uint64_t turn) const {
    return (std::size_t{endpoint} * slots_ + (turn & (slots_ - 1))) * sizing_.stride;
  }
  std::size_t offered_offset(std::uint32_t endpoint, std::uint64_t turn) const {
    return (std::size_t{endpoint} * offered_slots_ + (turn & (offered_slots_ - 1))) * sizing_.stride;
  }
  template <typename Arrived>
  bool spin_until(Arrived&& arrived);
  template <bool kBlock>
  bool reap();
  bool reaped(const DAT_EVENT& event);
  void check_reads(std::uint32_t endpoint, std::uint64_t from, std::uint64_t to);

  std::byte* next_written(std::uint32_t endpoint, std::uint64_t& turn);
  const std::uint64_t slots_;          // of each endpoint in own_memory_; a power of two
  const std::uint64_t offered_slots_;  // and in offered_memory_
  const int per_turn_log2_;
  const std::uint64_t per_turn_;      // operations
  const std::uint64_t under_way_;     // at most, on each endpoint
  const std::uint64_t signal_every_;  // one of so many asks for its completion: at the end of a turn
  tools::Region own_memory_;          // what our transfers take from or bring to
  tools::Region offered_memory_;      // what the peer's transfers bring to or take from
  DAT_RMR_TRIPLET peer_{};            // the peer's offered memory
  std::vector<Course> courses_;
  std::uint64_t bad_ = 0;
};

template <bool kBlock>
bool RdmaSide::reap() {
  DAT_EVENT event;
  return next_event<kBlock>(outbox_.get(), event) && reaped(event);
}

inline bool RdmaSide::look() {
  DAT_EVENT event;
  for (bool there = true;;) {
    if (!event_if_there(outbox_.get(), event, there)) return false;
    if (!there) return true;
    if (!reaped(event)) return false;
  }
}

inline bool RdmaSide::reaped(const DAT_EVENT& event) {
  const auto& completion = event.event_data.dto_completion_event_data;
  if (completion.status != DAT_DTO_SUCCESS) [[unlikely]]
    return lost(event);
  const std::uint64_t cookie = completion.user_cookie.as_64;
  const auto endpoint = static_cast<std::uint32_t>(cookie >> kLaneShift);
  const std::uint64_t number = cookie & ((std::uint64_t{1} << kLaneShift) - 1);
  Lane& lane = lanes_[endpoint];
  if (params_.op == Op::read) check_reads(endpoint, lane.completed, number);
  lane.completed = number;
  return true;
}

template <bool kBlock>
bool RdmaSide::settle(std::uint32_t endpoint) {
  const Lane& lane = lanes_[endpoint];
  while (lane.completed != lane.posted)
    if (!reap<kBlock>()) return false;
  return true;
}

template <bool kBlock>
inline bool RdmaSide::prepare(Lane& lane, std::uint32_t endpoint, std::uint64_t sequence, Transfer& transfer) {
  while (lane.posted - lane.completed >= under_way_)
    if (!reap<kBlock>()) return false;
  const std::uint64_t index = courses_[endpoint].transferred++;
  const std::uint64_t turn = index >> per_turn_log2_;
  const std::size_t offset = own_offset(endpoint, turn);
  const std::uint64_t number = ++lane.posted;
  const bool signalled = ((index + 1) & (signal_every_ - 1)) == 0;
  transfer.ep = lane.ep.get();
  transfer.here = own_memory_.at(offset, params_.size);
  transfer.there = peer_;
  transfer.there.target_address += offered_offset(endpoint, turn);
  transfer.there.segment_length = params_.size;
  transfer.cookie.as_64 = std::uint64_t{endpoint} << kLaneShift | number;
  transfer.flags = signalled ? DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG;
  if ((index & (per_turn_ - 1)) != 0) return true;
  if (params_.op == Op::write) {
    stamp_slot(own_memory_.data() + offset, params_.size, sequence, turn);
  } else {
    clear_slot(own_memory_.data() + offset, params_.size);
  }
  return true;
}

inline bool RdmaSide::post_notice(std::uint32_t endpoint) {
  Lane& lane = lanes_[endpoint];
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = std::uint64_t{endpoint} << kLaneShift | ++lane.posted;
  const DAT_RETURN status = dat_ep_post_send(lane.ep.get(), 0, nullptr, cookie, DAT_COMPLETION_SUPPRESS_FLAG);
  return status == DAT_SUCCESS || refused("dat_ep_post_send", status);
}

template <bool kBlock>
bool RdmaSide::await_notice(std::uint32_t endpoint, std::uint64_t sequence) {
  DAT_EVENT event;
  if (!receive<kBlock>(event)) return false;
  if (event.event_data.dto_completion_event_data.transfered_length != 0) return lost(event);
  std::uint64_t turn = 0;
  const std::byte* const slot = next_written(endpoint, turn);
  return (slot_holds(slot, params_.size, sequence, turn) || corrupt()) && repost(event);
}

inline bool RdmaSide::post(Transfer& transfer) {
  if (params_.op == Op::write) {
    const DAT_RETURN status =
        dat_ep_post_rdma_write(transfer.ep, 1, &transfer.here, transfer.cookie, &transfer.there, transfer.flags);
    return status == DAT_SUCCESS || refused("dat_ep_post_rdma_write", status);
  }
  const DAT_RETURN status =
      dat_ep_post_rdma_read(transfer.ep, 1, &transfer.here, transfer.cookie, &transfer.there, transfer.flags);
  return status == DAT_SUCCESS || refused("dat_ep_post_rdma_read", status);
}

}  // namespace datperf

#endif
