// SPDX-License-Identifier: BSD-3-Clause
// One process's half of a run: its endpoints, buffers and event dispatchers, and the few operations that the measuring
// loops are made of.
//
// The loops must not allocate, throw or take a detour, so the operations return false when the run cannot go on, after
// writing down why; the caller outside the loop turns that into an Error (see failure()).
//
// Two event dispatchers: the inbox gets receives and connection events, so that a side that waits for a message also
// learns of the connection's end; the outbox gets completions of Sends. Sends are posted with SUPPRESS save every
// signal_every-th, whose completion frees the slots of all before it (DTO-40).
#ifndef ANYDAT_TOOLS_DATPERF_SIDE_H
#define ANYDAT_TOOLS_DATPERF_SIDE_H

#include <anydat/anydat.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/connection.h"
#include "datperf/footprint.h"
#include "datperf/message.h"
#include "datperf/params.h"

namespace datperf {

// Whether that is what a phase of `count` messages, of all clients, brings to one side.
bool as_expected(const Params& params, const Tally& tally, std::uint64_t count);
// The wire that a report of the peer's names: nothing but letters, digits and dashes.
std::string text_of(const Report& report);

class Side {
 public:
  Side(const tools::Adapter& adapter, const Params& params, Role role);

  // Connection set-up, in the order of the endpoint's index. Each throws Error.
  void connect_all(const tools::Peer& server, tools::Timeout timeout);
  void accept(std::uint32_t index, DAT_CR_HANDLE cr);
  void await_accepted(tools::Timeout timeout);  // all endpoints
  // While not all have been asked for: throws Error if one that was accepted has ended, too.
  void note_established();
  // Ends all connections in order, or, on the server, waits for the client to have done so.
  void disconnect_all(tools::Timeout timeout);
  void wait_disconnected(tools::Timeout timeout);

  // The next message that arrived, in whatever way the run waits.
  template <bool kBlock>
  bool receive(DAT_EVENT& event);
  // Reads the message of `event` into the tally.
  bool read(const DAT_EVENT& event, Tally& tally, std::uint64_t& sequence);
  // Whether that is the other side's tell().
  static bool is_told(const DAT_EVENT& event) {
    return event.event_data.dto_completion_event_data.transfered_length == 0;
  }
  void note_finish() { finished_ = true; }
  // Gives the buffer of `event` back to where it came from.
  bool repost(const DAT_EVENT& event);
  // Posts the message `sequence` on one endpoint, after waiting for a free slot.
  template <bool kBlock>
  bool send(std::uint32_t endpoint, std::uint64_t sequence);
  // How many one call posts: what the user has said, but never more than can be waited for.
  std::uint32_t at_once() const { return std::min(params_.at_once, std::max(sizing_.window / 2, 1u)); }
  // The same of several, with consecutive numbers, by calls for many. `count` is at most at_once().
  bool send_row(std::uint32_t endpoint, std::uint64_t sequence, std::uint32_t count);
  // The next messages that have arrived, at least one and at most `most`; they stay until the next call.
  bool receive_row(std::uint64_t most, std::span<const DAT_EVENT>& events);
  bool repost_row(std::span<const DAT_EVENT> events);
  bool has_slot(std::uint32_t endpoint) const {
    return lanes_[endpoint].posted - lanes_[endpoint].completed < sizing_.window;
  }
  // The next message if there is one.
  bool receive_if_there(DAT_EVENT& event, bool& there);

  // Looks once at the completions that are there.
  bool look();

  // What a run of another operation needs at these points, and one of Sends does not.
  void meet(const Report&) {}
  void clear_slots() {}
  void begin_phase() {}
  // A Send of no bytes on the first endpoint, which takes no place in a buffer: that the server is ready for a phase,
  // or that the client has read all that a phase brought it. A report in their place might come into the buffer of the
  // last message, or the first message into that of the report. Throw Error.
  void tell();
  void await_told();
  // The client's end of a phase in which it receives, too: the server waits for it before it reports.
  void finish_phase();
  void await_finish();

  // Between phases: one Report on the first endpoint of each client. Throw Error.
  void send_report(Report report);
  Report receive_report();

  const Params& params() const { return params_; }
  // With several clients: what memory there was when nothing but the buffers of messages had been made.
  const Footprint& before() const { return before_; }
  // What carries the connections; empty if the adapter does not tell.
  std::string wire() const;
  const Sizing& sizing() const { return sizing_; }
  // Receives and events of connections so far. Any thread may ask.
  std::uint64_t heard() const;
  // Ends all connections at once: who waits for something on them learns of it. Any thread may call it.
  void cut() const;
  // Notes that an answer was not what had been sent; returns false like the operations.
  bool corrupt();
  [[noreturn]] void fail() const;

 protected:
  struct Lane {  // one connection
    tools::Ep ep;
    std::uint64_t posted = 0;     // requests so far
    std::uint64_t completed = 0;  // of them known to be complete
  };

  static bool is_message(const DAT_EVENT& event) {
    return event.event_number == DAT_DTO_COMPLETION_EVENT &&
           event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS;
  }

  static constexpr int kLaneShift = 48;  // a request's cookie: lane in the high bits, number of the request below

  template <bool kBlock>
  bool next_event(DAT_EVD_HANDLE evd, DAT_EVENT& event);
  // Where the next Send of an endpoint is, counted from the start of send_memory_.
  std::size_t next_slot(std::uint32_t endpoint) const {
    const std::size_t slot = lanes_[endpoint].posted & (sizing_.send_slots - 1);
    return (std::size_t{endpoint} * sizing_.send_slots + slot) * sizing_.stride;
  }
  // The same for one that is there: nothing is said if none is.
  bool event_if_there(DAT_EVD_HANDLE evd, DAT_EVENT& event, bool& there);
  bool completed(const DAT_EVENT& event);
  void count_established(const DAT_EVENT& event);
  void sign(Report& report) const;  // with the name of the wire
  bool lost(const DAT_EVENT& event);
  bool refused(const char* call, DAT_RETURN status);

  const tools::Adapter& adapter_;
  const Params params_;
  const Sizing sizing_;
  tools::Region receive_memory_;  // buffers sizing_.stride apart: all of the SRQ, or lane by lane
  tools::Region send_memory_;     // slots the same way, lane by lane
  tools::Region report_memory_;   // one report for each endpoint
  Footprint before_;
  tools::Evd inbox_;
  tools::Evd outbox_;
  tools::Srq srq_;
  std::vector<Lane> lanes_;

 private:
  void post_report(std::uint32_t endpoint, const Report& report);
  template <bool kBlock>
  bool wait_for_slot(Lane& lane, std::uint32_t count = 1);
  DAT_COMPLETION_FLAGS number(std::uint32_t endpoint, DAT_DTO_COOKIE& cookie);
  bool post_send(std::uint32_t endpoint, DAT_LMR_TRIPLET message);
  void make_endpoint(std::uint32_t index);
  bool post_receive(DAT_EP_HANDLE ep, std::uint64_t buffer);

  const bool alike_;
  const bool shares_buffers_;      // several receives are for the same one
  bool finished_ = false;          // the client has said so already
  std::uint32_t established_ = 0;  // endpoints, on the server
  std::vector<DAT_EVENT> early_;   // the first report, if it came while other connections were still coming up
  std::string failure_;

  // Of the calls for many, as many as one of them handles: what it is told, and what it tells.
  struct Rows {
    std::array<ANYDAT_EP_POST, kAtOnceMax> posts;
    std::array<ANYDAT_SRQ_POST, kAtOnceMax> srq_posts;
    std::array<DAT_LMR_TRIPLET, kAtOnceMax> segments;
    std::array<DAT_EVENT, kAtOnceMax> events;
  };
  std::unique_ptr<Rows> rows_;
};

// The operations below are in the header so that a measuring loop is one function.

template <bool kBlock>
inline bool Side::next_event(DAT_EVD_HANDLE evd, DAT_EVENT& event) {
  for (;;) {
    DAT_RETURN status = DAT_SUCCESS;
    if constexpr (kBlock) {
      DAT_COUNT more = 0;
      status = dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
      if (status == DAT_SUCCESS) return true;
      if (DAT_GET_TYPE(status) != DAT_INTERRUPTED_CALL) return refused("dat_evd_wait", status);
    } else {
      status = dat_evd_dequeue(evd, &event);
      if (status == DAT_SUCCESS) return true;
      if (DAT_GET_TYPE(status) != DAT_QUEUE_EMPTY) return refused("dat_evd_dequeue", status);
    }
  }
}

template <bool kBlock>
inline bool Side::receive(DAT_EVENT& event) {
  if (!next_event<kBlock>(inbox_.get(), event)) return false;
  if (is_message(event)) [[likely]]
    return true;
  return lost(event);
}

inline bool Side::read(const DAT_EVENT& event, Tally& tally, std::uint64_t& sequence) {
  const auto& completion = event.event_data.dto_completion_event_data;
  if (completion.transfered_length != params_.size) [[unlikely]]
    return lost(event);
  const std::byte* message = receive_memory_.data() + completion.user_cookie.as_64 * sizing_.stride;
  sequence = alike_ || shares_buffers_ ? tally.read_alike(message, params_.size) : tally.read(message, params_.size);
  return true;
}

inline bool Side::post_receive(DAT_EP_HANDLE ep, std::uint64_t buffer) {
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = buffer;
  DAT_LMR_TRIPLET sink = receive_memory_.at(buffer * sizing_.stride, sizing_.stride);
  const DAT_RETURN status = params_.srq ? dat_srq_post_recv(srq_.get(), 1, &sink, cookie)
                                        : dat_ep_post_recv(ep, 1, &sink, cookie, DAT_COMPLETION_DEFAULT_FLAG);
  return status == DAT_SUCCESS || refused("posting a receive", status);
}

inline bool Side::repost(const DAT_EVENT& event) {
  const auto& completion = event.event_data.dto_completion_event_data;
  return post_receive(completion.ep_handle, completion.user_cookie.as_64);
}

template <bool kBlock>
bool Side::wait_for_slot(Lane& lane, std::uint32_t count) {
  while (lane.posted - lane.completed > sizing_.window - count) {
    DAT_EVENT event;
    if (!next_event<kBlock>(outbox_.get(), event) || !completed(event)) return false;
  }
  return true;
}

inline bool Side::completed(const DAT_EVENT& event) {
  const auto& completion = event.event_data.dto_completion_event_data;
  if (completion.status != DAT_DTO_SUCCESS) [[unlikely]]
    return lost(event);
  const std::uint64_t cookie = completion.user_cookie.as_64;
  lanes_[cookie >> kLaneShift].completed = cookie & ((std::uint64_t{1} << kLaneShift) - 1);
  return true;
}

inline bool Side::look() {
  DAT_EVENT event;
  for (bool there = true;;) {
    if (!event_if_there(outbox_.get(), event, there)) return false;
    if (!there) return true;
    if (!completed(event)) return false;
  }
}

inline bool Side::event_if_there(DAT_EVD_HANDLE evd, DAT_EVENT& event, bool& there) {
  const DAT_RETURN status = dat_evd_dequeue(evd, &event);
  there = status == DAT_SUCCESS;
  return there || DAT_GET_TYPE(status) == DAT_QUEUE_EMPTY || refused("dat_evd_dequeue", status);
}

inline bool Side::receive_if_there(DAT_EVENT& event, bool& there) {
  if (!event_if_there(inbox_.get(), event, there)) return false;
  return !there || is_message(event) || lost(event);
}

// Counts the next request of an endpoint: its cookie, and whether it asks for its completion.
inline DAT_COMPLETION_FLAGS Side::number(std::uint32_t endpoint, DAT_DTO_COOKIE& cookie) {
  const std::uint64_t number = ++lanes_[endpoint].posted;
  cookie.as_64 = std::uint64_t{endpoint} << kLaneShift | number;
  return (number & (sizing_.signal_every - 1)) == 0 ? DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG;
}

inline bool Side::post_send(std::uint32_t endpoint, DAT_LMR_TRIPLET message) {
  DAT_DTO_COOKIE cookie;
  const DAT_COMPLETION_FLAGS flags = number(endpoint, cookie);
  const DAT_RETURN status = dat_ep_post_send(lanes_[endpoint].ep.get(), 1, &message, cookie, flags);
  return status == DAT_SUCCESS || refused("dat_ep_post_send", status);
}

template <bool kBlock>
inline bool Side::send(std::uint32_t endpoint, std::uint64_t sequence) {
  Lane& lane = lanes_[endpoint];
  if (lane.posted - lane.completed == sizing_.window && !wait_for_slot<kBlock>(lane)) return false;
  const std::size_t offset = next_slot(endpoint);
  if (!alike_) stamp(send_memory_.data() + offset, params_.size, sequence);
  return post_send(endpoint, send_memory_.at(offset, params_.size));
}

inline bool Side::send_row(std::uint32_t endpoint, std::uint64_t sequence, std::uint32_t count) {
  Lane& lane = lanes_[endpoint];
  if (!wait_for_slot<false>(lane, count)) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t offset = next_slot(endpoint);
    if (!alike_) stamp(send_memory_.data() + offset, params_.size, sequence + i);
    rows_->segments[i] = send_memory_.at(offset, params_.size);
    ANYDAT_EP_POST& post = rows_->posts[i];
    post.num_segments = 1;
    post.local_iov = &rows_->segments[i];
    post.completion_flags = number(endpoint, post.user_cookie);
  }
  DAT_COUNT posted = 0;
  const DAT_RETURN status =
      anydat_ep_post_sends(lane.ep.get(), static_cast<DAT_COUNT>(count), rows_->posts.data(), &posted);
  return status == DAT_SUCCESS || refused("anydat_ep_post_sends", status);
}

inline bool Side::receive_row(std::uint64_t most, std::span<const DAT_EVENT>& events) {
  const auto room = static_cast<DAT_COUNT>(std::min<std::uint64_t>(most, params_.at_once));
  DAT_COUNT count = 0;
  DAT_RETURN status = DAT_SUCCESS;
  do {
    status = anydat_evd_dequeue_many(inbox_.get(), room, rows_->events.data(), &count);
    if (status != DAT_SUCCESS && DAT_GET_TYPE(status) != DAT_QUEUE_EMPTY)
      return refused("anydat_evd_dequeue_many", status);
  } while (status != DAT_SUCCESS);
  events = std::span(rows_->events).first(static_cast<std::size_t>(count));
  for (const DAT_EVENT& event : events)
    if (!is_message(event)) return lost(event);
  return true;
}

inline bool Side::repost_row(std::span<const DAT_EVENT> events) {
  for (std::size_t done = 0; done < events.size();) {
    const DAT_EP_HANDLE ep = events[done].event_data.dto_completion_event_data.ep_handle;
    DAT_COUNT count = 0, posted = 0;
    for (; done < events.size(); ++done, ++count) {
      const auto& completion = events[done].event_data.dto_completion_event_data;
      if (!params_.srq && completion.ep_handle != ep) break;
      const auto at = static_cast<std::size_t>(count);
      DAT_LMR_TRIPLET& sink = rows_->segments[at];
      sink = receive_memory_.at(completion.user_cookie.as_64 * sizing_.stride, sizing_.stride);
      rows_->srq_posts[at] = {1, &sink, completion.user_cookie};
      rows_->posts[at] = {1, &sink, completion.user_cookie, DAT_COMPLETION_DEFAULT_FLAG};
    }
    const DAT_RETURN status = params_.srq ? anydat_srq_post_recvs(srq_.get(), count, rows_->srq_posts.data(), &posted)
                                          : anydat_ep_post_recvs(ep, count, rows_->posts.data(), &posted);
    if (status != DAT_SUCCESS) return refused("posting receives", status);
  }
  return true;
}

}  // namespace datperf

#endif
