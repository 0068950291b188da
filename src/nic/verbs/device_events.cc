// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/device_events.h"

#include "env/log.h"
#include "nic/budget.h"
#include "nic/verbs/adapter.h"
#include "nic/verbs/queue_pair.h"
#include "nic/verbs/shared_queue.h"

namespace anydat::nic::verbs {

void DeviceEvents::ready(std::uint32_t) {
  ibv_async_event event{};
  for (int i = 0; i < budget::kDeviceEventsPerTurn; ++i) {
    if (ibv_get_async_event(adapter_.device().context(), &event) != 0) return;
    // What it is about lives until the event is acknowledged; a call that destroys it waits for that.
    void* context = nullptr;
    int port = 0;
    switch (event.event_type) {
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
      case IBV_EVENT_COMM_EST:
        context = event.element.qp->qp_context;  // null if it is about to go
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
    handle(event.event_type, context, port);
  }
}

void DeviceEvents::handle(ibv_event_type type, void* context, int port) {
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
      adapter_.completions().drain();
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
      env::log(env::LogLevel::warn, "{}: port {} is down", adapter_.info().name, port);
      break;
    case IBV_EVENT_PORT_ACTIVE:
      env::log(env::LogLevel::info, "{}: port {} is up", adapter_.info().name, port);
      break;
    case IBV_EVENT_DEVICE_FATAL:
      adapter_.device_gone();
      break;
    default:
      break;
  }
}

// Ends the connections of all queue pairs for which `concerned` is true. What the device has given back counts first.
template <typename Concerned>
void DeviceEvents::lose_queue_pairs(Concerned concerned) {
  adapter_.completions().drain();
  adapter_.completions().queue_pairs().for_each([&](VerbsQueuePair& queue_pair) {
    if (concerned(queue_pair)) queue_pair.connection().lost_by_device();
  });
}

void DeviceEvents::completion_queue_failed(Cq& cq) {
  env::log(env::LogLevel::error,
           "{}: a completion queue of the device has failed; the connections that it serves break",
           adapter_.info().name);
  cq.fail();
  SharedQueue* const shared = cq.shared();
  lose_queue_pairs([&](const VerbsQueuePair& queue_pair) { return queue_pair.device().completes_to(&cq); });
  if (shared) return shared->failed();
  adapter_.report_fault();
}

void DeviceEvents::shared_queue_failed(SharedQueue& shared) {
  env::log(env::LogLevel::error,
           "{}: a shared receive queue of the device has failed; the connections that use it break",
           adapter_.info().name);
  lose_queue_pairs([&](const VerbsQueuePair& queue_pair) { return queue_pair.device().receives_from(shared); });
  shared.failed();
}

}  // namespace anydat::nic::verbs
