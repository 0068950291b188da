// SPDX-License-Identifier: BSD-3-Clause
// What connection management and the device tell of, and what that ends.
#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "nic/verbs/adapter.h"
#include "nic/verbs/queue_pair.h"
#include "nic/verbs/shared_queue.h"

namespace anydat::nic::verbs {

void VerbsAdapter::cm_events() {
  rdma_cm_event* event = nullptr;
  while (get_event(cm_channel_.get(), &event) == 0) {
    const rdma_conn_param& parameters = event->param.conn;
    CmEvent copy;
    copy.type = event->event;
    copy.status = event->status;
    copy.id = event->id;
    copy.responder_resources = parameters.responder_resources;
    copy.initiator_depth = parameters.initiator_depth;
    copy.length = parameters.private_data ? std::min<std::size_t>(parameters.private_data_len, copy.bytes.size()) : 0;
    if (copy.length > 0) std::memcpy(copy.bytes.data(), parameters.private_data, copy.length);
    rdma_cm_id* const to = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->listen_id : event->id;
    auto* const handler = static_cast<CmHandler*>(to->context);
    // Acknowledged first, since an identifier with events that are not cannot be destroyed.
    rdma_ack_cm_event(event);
    if (handler) handler->on_cm_event(copy);
  }
}

void VerbsAdapter::device_events() {
  ibv_async_event event{};
  while (ibv_get_async_event(device_->context(), &event) == 0) {
    // What it is about lives until the event is acknowledged; whoever destroys it waits for that.
    void* context = nullptr;
    int port = 0;
    switch (event.event_type) {
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
      case IBV_EVENT_COMM_EST:
        context = event.element.qp->qp_context;  // null if it belongs to nobody any more
        break;
      case IBV_EVENT_CQ_ERR:
        context = event.element.cq->cq_context;
        break;
      case IBV_EVENT_SRQ_ERR:
      case IBV_EVENT_SRQ_LIMIT_REACHED:
        context = event.element.srq->srq_context;
        break;
      case IBV_EVENT_PORT_ERR:
      case IBV_EVENT_PORT_ACTIVE:
        port = event.element.port_num;
        break;
      default:
        break;
    }
    ibv_ack_async_event(&event);
    device_event(event.event_type, context, port);
  }
}

void VerbsAdapter::device_event(ibv_event_type type, void* context, int port) {
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
      if (context) static_cast<VerbsQueuePair*>(context)->connection().device_event(type);
      break;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      // Completions that are there already may tell the same.
      if (!context) break;
      completions_.drain();
      static_cast<SharedQueue*>(context)->pool().device_undercut();
      break;
    case IBV_EVENT_CQ_ERR:
      if (context) completion_queue_failed(*static_cast<Cq*>(context));
      break;
    case IBV_EVENT_SRQ_ERR:
      if (context) shared_queue_failed(*static_cast<SharedQueue*>(context));
      break;
    case IBV_EVENT_PORT_ERR:
      // A port that comes back in time has cost nothing. What cannot be sent meanwhile fails by itself, and ends its
      // connection.
      base::log(base::LogLevel::warn, "{}: port {} is down", info_.name, port);
      break;
    case IBV_EVENT_PORT_ACTIVE:
      base::log(base::LogLevel::info, "{}: port {} is up", info_.name, port);
      break;
    case IBV_EVENT_DEVICE_FATAL:
      device_gone();
      break;
    default:
      break;
  }
}

// Ends the connections of all queue pairs for which `concerned` is true. What the device has given back counts first.
template <typename Concerned>
void VerbsAdapter::lose_queue_pairs(Concerned concerned) {
  completions_.drain();
  completions_.queue_pairs().for_each([&](VerbsQueuePair& queue_pair) {
    if (concerned(queue_pair)) queue_pair.connection().lost_by_device();
  });
}

void VerbsAdapter::completion_queue_failed(Cq& cq) {
  base::log(base::LogLevel::error,
            "{}: a completion queue of the device has failed; the connections that it serves break", info_.name);
  cq.fail();
  SharedQueue* const shared = cq.shared();
  lose_queue_pairs([&](const VerbsQueuePair& queue_pair) { return queue_pair.device().completes_to(&cq); });
  if (shared) return shared->failed();
  if (events_) events_->on_fault();
}

void VerbsAdapter::shared_queue_failed(SharedQueue& shared) {
  base::log(base::LogLevel::error,
            "{}: a shared receive queue of the device has failed; the connections that use it break", info_.name);
  lose_queue_pairs([&](const VerbsQueuePair& queue_pair) { return queue_pair.device().receives_from(shared); });
  shared.failed();
}

void VerbsAdapter::device_gone() {
  if (gone_) return;
  base::log(base::LogLevel::error, "{}: the device has gone; its connections break", info_.name);
  end_everything();
  if (events_) events_->on_failure();
}

// What the kernel did for the descriptors it does no more, but for what the mappings of queues keep alive.
void VerbsAdapter::descriptors_lost() {
  base::Descriptors::note_loss();  // in the table of this library, which opened them
  cm_channel_.note_loss();
  device_->descriptors_lost();
  completions_.queues().descriptors_lost();
  if (!gone_) end_everything();
}

void VerbsAdapter::end_everything() {
  gone_ = true;
  // Identifiers go with the device, for which the kernel waits.
  completions_.queue_pairs().for_each([](VerbsQueuePair& queue_pair) { queue_pair.connection().device_gone(); });
  abandoned_.drop_all();
}

}  // namespace anydat::nic::verbs
