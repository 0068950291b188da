// SPDX-License-Identifier: BSD-3-Clause
#include "datperf/rdma_side.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "common/error.h"
#include "common/pause.h"

namespace datperf {
namespace {

constexpr int kLooksBetweenChecks = 1 << 16;  // at memory, before the connection is looked at

int remote_rights_for(Op op) {
  return op == Op::write ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : DAT_MEM_PRIV_REMOTE_READ_FLAG;
}

// Who waits for an answer to each Write has a single flag to look at, as programs have: its line is known to the
// processor that looks, and another one each time would not be.
std::uint64_t offered_slots(const Params& params, std::uint64_t slots) {
  return params.metric == Metric::lat && params.op == Op::write && params.slots == 0 ? 1 : slots;
}

std::uint64_t under_way(const Params& params, const Sizing& sizing, std::uint64_t most) {
  const std::uint32_t wanted = params.window != 0 ? params.window : std::max(sizing.window, transfers_of(params));
  return std::min<std::uint64_t>(wanted, most) * (params.notices ? 2 : 1);
}

}  // namespace

RdmaSide::RdmaSide(const tools::Adapter& adapter, const Params& params, Role role)
    : Side(adapter, params, role),
      slots_(rdma_slots(params)),
      offered_slots_(offered_slots(params, slots_)),
      per_turn_log2_(std::countr_zero(std::max<std::uint64_t>(transfers_of(params) / slots_, 1))),
      per_turn_(std::uint64_t{1} << per_turn_log2_),
      under_way_(under_way(params, sizing_, slots_ << per_turn_log2_)),
      signal_every_(std::max(per_turn_, std::min<std::uint64_t>({sizing_.signal_every, slots_, under_way_}))),
      own_memory_(adapter, slots_ * params.endpoints * sizing_.stride),
      offered_memory_(adapter, offered_slots_ * params.endpoints * sizing_.stride, remote_rights_for(params.op),
                      params.shareable ? tools::Region::Kind::shareable : tools::Region::Kind::heap),
      courses_(params.endpoints) {
  if (params.op != Op::read) return;
  for (std::uint64_t i = 0; i < offered_slots_ * params.endpoints; ++i)
    stamp_slot(offered_memory_.data() + i * sizing_.stride, params.size, i, i);
}

void RdmaSide::meet(const Report& offer) {
  peer_.rmr_context = static_cast<DAT_RMR_CONTEXT>(offer.rmr_context);
  peer_.target_address = offer.target_address;
  send_report({});
}

void RdmaSide::meet() {
  send_report({});
  const Report offer = receive_report();
  peer_.rmr_context = static_cast<DAT_RMR_CONTEXT>(offer.rmr_context);
  peer_.target_address = offer.target_address;
}

void RdmaSide::send_report_on(std::uint32_t endpoint, const Report& report) {
  Lane& lane = lanes_[endpoint];
  while (lane.posted - lane.completed == sizing_.requests)
    if (!reap<true>()) fail();
  Report full = report;
  full.rmr_context = offered_memory_.rmr_context();
  full.target_address = reinterpret_cast<std::uintptr_t>(offered_memory_.data());
  const std::size_t offset = endpoint * sizeof(Report);
  std::memcpy(report_memory_.data() + offset, &full, sizeof full);
  courses_[endpoint].last = ++lane.posted;
  DAT_LMR_TRIPLET message = report_memory_.at(offset, sizeof full);
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = std::uint64_t{endpoint} << kLaneShift | lane.posted;
  const DAT_RETURN status = dat_ep_post_send(lane.ep.get(), 1, &message, cookie, DAT_COMPLETION_DEFAULT_FLAG);
  if (status != DAT_SUCCESS) tools::fail(status, "dat_ep_post_send");
  // What was posted before is complete with it (DTO-40), so that the slots are free for the next phase.
  if (!settle<true>(endpoint)) fail();
}

void RdmaSide::begin_phase() {
  for (std::uint32_t i = 0; i < params_.endpoints; ++i) courses_[i] = {.base = lanes_[i].posted};
}

void RdmaSide::clear_slots() {
  if (params_.op != Op::write) return;
  for (std::uint64_t i = 0; i < offered_slots_ * params_.endpoints; ++i)
    clear_slot(offered_memory_.data() + i * sizing_.stride, params_.size);
}

// Spins until `arrived` says so; false if the connection has ended before.
template <typename Arrived>
bool RdmaSide::spin_until(Arrived&& arrived) {
  for (int looks = 1; !arrived(); ++looks) {
    tools::pause();
    if (looks % kLooksBetweenChecks != 0) continue;
    looks = 0;
    DAT_EVENT event;  // the only one that can come now is the connection's end
    if (dat_evd_dequeue(inbox_.get(), &event) == DAT_SUCCESS) return lost(event);
  }
  return true;
}

std::byte* RdmaSide::next_written(std::uint32_t endpoint, std::uint64_t& turn) {
  turn = courses_[endpoint].awaited++;
  return offered_memory_.data() + offered_offset(endpoint, turn);
}

bool RdmaSide::await_write(std::uint32_t endpoint, std::uint64_t sequence) {
  std::uint64_t turn = 0;
  std::byte* const slot = next_written(endpoint, turn);
  const std::byte wanted = tail_of(turn);
  if (params_.size == sizeof(std::uint64_t)) {  // one look sees it all
    const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(slot));
    std::uint64_t seen = 0;
    return spin_until([&] { return tail_of_word(seen = word.load(std::memory_order_acquire)) == wanted; }) &&
           (seen == word_of(sequence, turn) || corrupt());
  }
  const std::atomic_ref<std::byte> tail(slot[params_.size - 1]);
  return spin_until([&] { return tail.load(std::memory_order_acquire) == wanted; }) &&
         (slot_holds(slot, params_.size, sequence, turn) || corrupt());
}

void RdmaSide::check_reads(std::uint32_t endpoint, std::uint64_t from, std::uint64_t to) {
  const Course& course = courses_[endpoint];
  // Without the Sends between the phases.
  const std::uint64_t first = std::max(from, course.base) - course.base;
  const std::uint64_t end = std::max((to == course.last ? to - 1 : to), course.base) - course.base;
  if (first >= end) return;  // none but such a Send
  for (std::uint64_t turn = first / per_turn_; turn * per_turn_ < end; ++turn) {
    const std::uint64_t there = std::uint64_t{endpoint} * offered_slots_ + (turn & (offered_slots_ - 1));
    bad_ += !slot_holds(own_memory_.data() + own_offset(endpoint, turn), params_.size, there, there);
  }
}

void RdmaSide::finish_phase() {
  for (std::uint32_t i = 0; i < params_.endpoints; ++i) send_report_on(i, {});
}

void RdmaSide::await_finish() {
  for (std::uint32_t i = 0; i < params_.endpoints; ++i) receive_report();
}

std::uint64_t RdmaSide::looked_at(std::uint64_t count) const {
  if (params_.op == Op::read) return 0;
  if (params_.metric == Metric::lat) return count;
  const std::uint64_t turns = (count + per_turn_ - 1) / per_turn_;
  return std::min(turns, offered_slots_ * params_.endpoints);
}

bool RdmaSide::all_written(std::uint64_t count) const {
  const std::uint64_t endpoints = params_.endpoints;
  for (std::uint64_t endpoint = 0; endpoint < std::min(endpoints, count); ++endpoint) {
    const std::uint64_t messages = (count - endpoint + endpoints - 1) / endpoints;
    const std::uint64_t turns = (messages + per_turn_ - 1) / per_turn_;
    // From the last one back to the one that was overwritten by it.
    for (std::uint64_t turn = turns - std::min(turns, offered_slots_); turn < turns; ++turn) {
      const std::size_t offset = offered_offset(static_cast<std::uint32_t>(endpoint), turn);
      const std::uint64_t sequence = turn * per_turn_ * endpoints + endpoint;
      if (!slot_holds(offered_memory_.data() + offset, params_.size, sequence, turn)) return false;
    }
  }
  return true;
}

}  // namespace datperf
