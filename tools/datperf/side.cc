// SPDX-License-Identifier: BSD-3-Clause
#include "datperf/side.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "common/error.h"

namespace datperf {
namespace {

constexpr std::uint32_t kConnectingMax = 64;  // at once, of one client

DAT_COUNT count_of(std::uint64_t value) {
  return static_cast<DAT_COUNT>(value);
}

}  // namespace

bool as_expected(const Params& params, const Tally& tally, std::uint64_t count) {
  const std::uint64_t clients = params.clients;
  const std::uint64_t sum =
      alike(params) ? count * carried(params.size, kAlike) : clients * expected_sum(params.size, count / clients);
  return tally.bad == 0 && tally.sum == sum;
}

std::string text_of(const Report& report) {
  std::string text;
  for (const char c : report.wire) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!plain) break;
    text += c;
  }
  return text;
}

Side::Side(const tools::Adapter& adapter, const Params& params, Role role)
    : adapter_(adapter),
      params_(params),
      sizing_(sizing_of(params, role)),
      alike_(alike(params)),
      shares_buffers_(sizing_.receive_slots < sizing_.receives) {
  if (params.at_once != 0) rows_ = std::make_unique<Rows>();
  const std::uint64_t endpoints = params.endpoints;
  const std::uint64_t receivers = params.srq ? 1 : endpoints;
  const std::uint64_t receives = sizing_.receives * receivers;
  const std::uint64_t sends = sizing_.send_slots * endpoints;
  const std::uint64_t requests = std::uint64_t{sizing_.requests} * endpoints;
  receive_memory_ = tools::Region(adapter, sizing_.receive_slots * receivers * sizing_.stride);
  send_memory_ = tools::Region(adapter, sends * sizing_.stride);
  report_memory_ = tools::Region(adapter, endpoints * sizeof(Report));
  for (std::uint64_t i = 0; alike_ && i < sends; ++i)
    stamp(send_memory_.data() + i * sizing_.stride, params.size, kAlike);
  if (params.clients > 1) before_ = footprint();
  // Room for everything that can be under way at once, so that no dispatcher overflows (EVM-57); each endpoint has a
  // connection's beginning and end.
  inbox_ = adapter.make_evd(count_of(receives + 2 * endpoints), DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
  outbox_ = adapter.make_evd(count_of(requests + endpoints), DAT_EVD_DTO_FLAG);

  if (params.srq) {
    srq_ = adapter.make_srq(count_of(receives));
    for (std::uint64_t i = 0; i < receives; ++i)
      if (!post_receive(DAT_HANDLE_NULL, i % sizing_.receive_slots)) fail();
  }
  lanes_.resize(endpoints);
  for (std::uint32_t i = 0; i < endpoints; ++i) make_endpoint(i);
}

void Side::make_endpoint(std::uint32_t index) {
  Lane& lane = lanes_[index];
  const DAT_COUNT requests = count_of(sizing_.requests);
  if (params_.srq) {
    lane.ep = adapter_.make_ep_with_srq(inbox_.get(), outbox_.get(), inbox_.get(), srq_.get(), requests);
    return;
  }
  lane.ep = adapter_.make_ep(inbox_.get(), outbox_.get(), inbox_.get(), count_of(sizing_.receives), requests);
  for (std::uint64_t i = 0; i < sizing_.receives; ++i)
    if (!post_receive(lane.ep.get(), std::uint64_t{index} * sizing_.receive_slots + i % sizing_.receive_slots)) fail();
}

void Side::connect_all(const tools::Peer& server, tools::Timeout timeout) {
  std::uint32_t connected = 0;
  for (std::uint32_t i = 0; i < params_.endpoints; ++i) {
    if (i - connected == kConnectingMax) {
      tools::await_connected(inbox_.get(), server, timeout, early_);
      ++connected;
    }
    tools::begin_connect(lanes_[i].ep.get(), server, timeout, encode(params_, i));
  }
  for (; connected < params_.endpoints; ++connected) tools::await_connected(inbox_.get(), server, timeout, early_);
}

void Side::accept(std::uint32_t index, DAT_CR_HANDLE cr) {
  tools::check(dat_cr_accept(cr, lanes_.at(index).ep.get(), 0, nullptr), "dat_cr_accept");
}

void Side::note_established() {
  DAT_EVENT event{};
  for (bool there = true;;) {
    if (!event_if_there(inbox_.get(), event, there)) fail();
    if (!there) return;
    count_established(event);
  }
}

void Side::await_accepted(tools::Timeout timeout) {
  while (established_ < params_.endpoints) {
    DAT_EVENT event{};
    if (!tools::wait_event(inbox_.get(), timeout, event))
      throw tools::Error("a connection of the run was not completed");
    count_established(event);
  }
}

void Side::count_established(const DAT_EVENT& event) {
  if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
    throw tools::Error("a connection of the run was not completed, or has ended");
  ++established_;
}

void Side::disconnect_all(tools::Timeout timeout) {
  for (auto& lane : lanes_)
    tools::check(dat_ep_disconnect(lane.ep.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  wait_disconnected(timeout);
}

void Side::wait_disconnected(tools::Timeout timeout) {
  for (std::size_t ended = 0; ended < lanes_.size();) {
    DAT_EVENT event{};
    if (!tools::wait_event(inbox_.get(), timeout, event))
      throw tools::Error(fmt::format("{} of {} connections did not end", lanes_.size() - ended, lanes_.size()));
    ended += event.event_number != DAT_DTO_COMPLETION_EVENT;  // flushed receives may come before
  }
}

void Side::sign(Report& report) const {
  const std::string name = wire();
  std::copy_n(name.data(), std::min(name.size(), sizeof report.wire), report.wire);
}

void Side::send_report(Report report) {
  sign(report);
  for (std::uint32_t i = 0; i < params_.endpoints; i += params_.endpoints / params_.clients) post_report(i, report);
}

void Side::post_report(std::uint32_t endpoint, const Report& report) {
  Lane& lane = lanes_[endpoint];
  if (lane.posted - lane.completed == sizing_.window && !wait_for_slot<true>(lane)) fail();
  const std::size_t offset = endpoint * sizeof(Report);
  std::memcpy(report_memory_.data() + offset, &report, sizeof report);
  if (!post_send(endpoint, report_memory_.at(offset, sizeof report))) fail();
}

void Side::tell() {
  Lane& lane = lanes_[0];
  if (lane.posted - lane.completed == sizing_.window && !wait_for_slot<true>(lane)) fail();
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = ++lane.posted;
  const DAT_RETURN status = dat_ep_post_send(lane.ep.get(), 0, nullptr, cookie, DAT_COMPLETION_DEFAULT_FLAG);
  if (status != DAT_SUCCESS) tools::fail(status, "dat_ep_post_send");
}

void Side::await_told() {
  DAT_EVENT event{};
  if (!(params_.block ? receive<true>(event) : receive<false>(event))) fail();
  if (!is_told(event) && !lost(event)) fail();
  if (!repost(event)) fail();
}

void Side::finish_phase() {
  if (params_.metric == Metric::lat || params_.bidirectional) tell();
}

void Side::await_finish() {
  if (params_.metric != Metric::lat && !params_.bidirectional) return;
  if (!finished_) await_told();
  finished_ = false;
}

Report Side::receive_report() {
  DAT_EVENT event{};
  if (!early_.empty()) {
    event = early_.back();
    early_.pop_back();
  } else if (!(params_.block ? receive<true>(event) : receive<false>(event))) {
    fail();
  }
  const auto& completion = event.event_data.dto_completion_event_data;
  Report report;
  if (completion.transfered_length == sizeof report)
    std::memcpy(&report, receive_memory_.data() + completion.user_cookie.as_64 * sizing_.stride, sizeof report);
  if (completion.transfered_length != sizeof report || report.magic != Report::kMagic)
    throw tools::Error("the other side sent something else where its report was due");
  if (!repost(event)) fail();
  return report;
}

std::string Side::wire() const {
  const char* name = nullptr;
  return anydat_ep_wire(lanes_[0].ep.get(), &name) == DAT_SUCCESS ? name : "";
}

std::uint64_t Side::heard() const {
  return tools::events_of(inbox_.get());
}

void Side::cut() const {
  for (const Lane& lane : lanes_) dat_ep_disconnect(lane.ep.get(), DAT_CLOSE_ABRUPT_FLAG);
}

bool Side::lost(const DAT_EVENT& event) {
  if (event.event_number != DAT_DTO_COMPLETION_EVENT) {
    failure_ = fmt::format("the connection ended with {}", tools::event_name(event.event_number));
  } else if (const auto& completion = event.event_data.dto_completion_event_data;
             completion.status != DAT_DTO_SUCCESS) {
    failure_ = fmt::format("an operation completed with {}", tools::completion_status_name(completion.status));
  } else {
    failure_ =
        fmt::format("a message of {} bytes arrived where {} were due", completion.transfered_length, params_.size);
  }
  return false;
}

bool Side::refused(const char* call, DAT_RETURN status) {
  failure_ = fmt::format("{} failed with {}", call, tools::describe(status));
  return false;
}

bool Side::corrupt() {
  failure_ = "messages came back changed";
  return false;
}

void Side::fail() const {
  throw tools::Error(failure_);
}

}  // namespace datperf
