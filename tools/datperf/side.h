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
  void await_accepted(tools::Timeout timeout);  // all that accept() has been called for
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
  bool wait_for_slot(Lane& lane);
  bool post_send(std::uint32_t endpoint, DAT_LMR_TRIPLET message);
  void make_endpoint(std::uint32_t index);
  bool post_receive(DAT_EP_HANDLE ep, std::uint64_t buffer);

  const bool alike_;
  bool finished_ = false;         // the client has said so already
  std::vector<DAT_EVENT> early_;  // the first report, if it came while other connections were still coming up
  std::string failure_;
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
  const auto& completion = event.event_data.dto_completion_event_data;
  if (event.event_number == DAT_DTO_COMPLETION_EVENT && completion.status == DAT_DTO_SUCCESS) [[likely]]
    return true;
  return lost(event);
}

inline bool Side::read(const DAT_EVENT& event, Tally& tally, std::uint64_t& sequence) {
  const auto& completion = event.event_data.dto_completion_event_data;
  if (completion.transfered_length != params_.size) [[unlikely]]
    return lost(event);
  const std::byte* message = receive_memory_.data() + completion.user_cookie.as_64 * sizing_.stride;
  sequence = alike_ ? tally.read_alike(message, params_.size) : tally.read(message, params_.size);
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
bool Side::wait_for_slot(Lane& lane) {
  while (lane.posted - lane.completed == sizing_.window) {
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
  const auto& completion = event.event_data.dto_completion_event_data;
  return !there || (event.event_number == DAT_DTO_COMPLETION_EVENT && completion.status == DAT_DTO_SUCCESS) ||
         lost(event);
}

inline bool Side::post_send(std::uint32_t endpoint, DAT_LMR_TRIPLET message) {
  Lane& lane = lanes_[endpoint];
  const std::uint64_t number = ++lane.posted;
  const bool signalled = (number & (sizing_.signal_every - 1)) == 0;
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = std::uint64_t{endpoint} << kLaneShift | number;
  const DAT_RETURN status = dat_ep_post_send(lane.ep.get(), 1, &message, cookie,
                                             signalled ? DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG);
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

}  // namespace datperf

#endif
