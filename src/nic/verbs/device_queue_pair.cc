// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/device_queue_pair.h"

#include <algorithm>
#include <new>
#include <utility>

#include "nic/verbs/adapter.h"
#include "nic/verbs/queue_pair.h"

namespace anydat::nic::verbs {

namespace {

// After how long without an answer the device repeats itself, seven times: 4.096 us times two to this power, 0.27 s.
// What connection management proposes is eight times as long, and so would be the silence after a peer's death.
constexpr std::uint8_t kAnswerTimeout = 16;

void to_error(ibv_qp& queue_pair) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(&queue_pair, &attributes, IBV_QP_STATE);
}

}  // namespace

DeviceQueuePair::DeviceQueuePair(VerbsQueuePair& queue_pair, VerbsAdapter& adapter)
    : queue_pair_(queue_pair), adapter_(adapter), tag_(adapter.completions().queue_pairs().add(queue_pair)) {}

DeviceQueuePair::~DeviceQueuePair() {
  adapter_.completions().queue_pairs().remove(tag_);
}

DeviceQueuePair::Made DeviceQueuePair::make(rdma_cm_id* id) try {
  Device& device = adapter_.device();
  if (adapter_.gone()) return Made::connection_over;
  SharedQueue* const shared = queue_pair_.receives().shared();
  const QueuePairLimits& limits = queue_pair_.limits();
  if (shared && !shared->usable()) return Made::no_memory;
  pd_ = device.zone(queue_pair_.zone());
  // A Read with more segments than the device scatters to is several of its requests.
  const std::uint32_t parts = limits.send_segments > device.read_segments() ? std::max(limits.send_segments, 1u) : 1;
  const std::uint32_t sends =
      std::max(std::min(limits.send_depth * parts, static_cast<std::uint32_t>(device.attributes().max_qp_wr)), 1u);
  cq_room_ = sends + (shared ? 0 : limits.recv_depth);
  cq_ = pd_ ? adapter_.completions().queues().reserve(cq_room_) : nullptr;
  if (!cq_) return Made::no_memory;
  // Small messages go with their request where the device takes them so.
  for (const std::uint32_t inline_max : {128u, 64u, 0u}) {
    ibv_qp_init_attr attributes{};
    attributes.qp_context = &queue_pair_;
    attributes.qp_type = IBV_QPT_RC;
    attributes.send_cq = cq_->get();
    attributes.recv_cq = shared ? shared->completions().get() : cq_->get();
    attributes.srq = shared ? shared->device_queue() : nullptr;
    attributes.cap.max_send_wr = sends;
    attributes.cap.max_send_sge = std::max(limits.send_segments, 1u);
    attributes.cap.max_recv_wr = shared ? 0 : std::max(limits.recv_depth, 1u);
    attributes.cap.max_recv_sge = shared ? 0 : std::max(limits.recv_segments, 1u);
    attributes.cap.max_inline_data = inline_max;
    QpPtr made(ibv_create_qp(pd_.get(), &attributes));
    if (!made) continue;
    QueuePairTable& queue_pairs = adapter_.completions().queue_pairs();
    // Who had the number before has just gone, and perhaps not all that it gave back has been seen.
    if (queue_pairs.numbered(made->qp_num)) adapter_.completions().drain();
    queue_pairs.note_number(made->qp_num, queue_pair_);
    if (shared) shared->attach();
    qp_ = std::move(made);
    queue_pair_.sends().attach(qp_.get(), tag_, std::min(attributes.cap.max_inline_data, inline_max));
    break;
  }
  const Made result = !qp_ ? Made::no_memory : !change_state(id, IBV_QPS_INIT) ? Made::connection_over : Made::ready;
  if (result != Made::ready) {
    discard();
    return result;
  }
  queue_pair_.receives().attach(qp_.get(), tag_, limits.recv_depth);
  return result;
} catch (const std::bad_alloc&) {
  discard();  // with what has been reserved for it
  return Made::no_memory;
}

bool DeviceQueuePair::change_state(rdma_cm_id* id, ibv_qp_state state, const std::optional<Reads>& settled) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  int mask = 0;
  if (rdma_init_qp_attr(id, &attributes, &mask) != 0) return false;
  attributes.qp_state = state;
  if (state == IBV_QPS_INIT) {
    attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    mask |= IBV_QP_ACCESS_FLAGS;
  }
  if (state == IBV_QPS_RTR) {
    attributes.min_rnr_timer = adapter_.rnr_retries().timer;
    if (settled) attributes.max_dest_rd_atomic = settled->in;
  }
  if (state == IBV_QPS_RTS) {
    if (settled) attributes.max_rd_atomic = settled->out;
    attributes.timeout = std::min(attributes.timeout, kAnswerTimeout);
  }
  return ibv_modify_qp(qp_.get(), &attributes, mask) == 0;
}

bool DeviceQueuePair::connect(rdma_cm_id* id, const std::optional<Reads>& settled) {
  return change_state(id, IBV_QPS_RTR, settled) && change_state(id, IBV_QPS_RTS, settled);
}

void DeviceQueuePair::fail() {
  if (qp_) to_error(*qp_);
}

bool DeviceQueuePair::quiet() const {
  return !qp_ || (!queue_pair_.receives().any_at_device() && !queue_pair_.sends().any_at_device());
}

bool DeviceQueuePair::completes_to(const Cq* cq) const {
  if (!qp_) return false;
  const SharedQueue* const shared = queue_pair_.receives().shared();
  return cq == cq_ || (shared && cq == &shared->completions());
}

bool DeviceQueuePair::receives_from(const SharedQueue& shared) const {
  return qp_ && queue_pair_.receives().shared() == &shared;
}

void DeviceQueuePair::remove() {
  // Receives may be posted by any thread meanwhile.
  queue_pair_.receives().close();
  Reaper::Job job;
  removed_number_ = qp_->qp_num;
  queue_pair_.sends().detach();
  job.queue_pair = std::move(qp_);
  job.done = [this] {  // small enough to need no memory
    removed();
    queue_pair_.connection().report_end();
  };
  adapter_.reaper().give(std::move(job));
}

void DeviceQueuePair::removed() {
  // What it had taken from a shared queue comes back with the last completions.
  adapter_.completions().drain();
  adapter_.completions().queue_pairs().forget_number(std::exchange(removed_number_, 0), queue_pair_);
  if (SharedQueue* const shared = queue_pair_.receives().shared()) shared->detach();
  release();
}

void DeviceQueuePair::release() {
  queue_pair_.receives().detach();
  if (cq_) adapter_.completions().queues().release(std::exchange(cq_, nullptr), cq_room_);
  pd_.reset();
}

// Its end need not be waited for: it touches no memory, and what it gives back when it goes belongs to nothing.
void DeviceQueuePair::discard() {
  AbandonedAttempt parts = take_apart();
  adapter_.abandoned().drop(parts);
}

AbandonedAttempt DeviceQueuePair::take_apart() {
  AbandonedAttempt parts{};
  parts.pd = std::move(pd_);
  parts.cq = std::exchange(cq_, nullptr);
  parts.cq_room = cq_room_;
  parts.shared = queue_pair_.receives().shared();
  queue_pair_.receives().close();
  queue_pair_.sends().detach();
  parts.queue_pair = std::move(qp_);
  if (parts.queue_pair) {
    parts.counted = queue_pair_.receives().shared() != nullptr;
    // In this state it does not connect any more, so that nothing is written to the memory of its receives.
    to_error(*parts.queue_pair);
    parts.queue_pair->qp_context = nullptr;
    adapter_.completions().queue_pairs().forget_number(parts.queue_pair->qp_num, queue_pair_);
  }
  queue_pair_.receives().detach();
  adapter_.completions().queue_pairs().remove(tag_);
  tag_ = adapter_.completions().queue_pairs().add(queue_pair_);
  return parts;
}

}  // namespace anydat::nic::verbs
