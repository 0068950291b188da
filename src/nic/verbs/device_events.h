// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "nic/loop.h"
#include "nic/verbs/resources.h"

namespace anydat::nic::verbs {

class Cq;
class SharedQueue;
class VerbsAdapter;

// What a device tells of without being asked: queue pairs and queues that have failed, ports, its own end. With the
// engine held.
class DeviceEvents final : public FdHandler {
 public:
  explicit DeviceEvents(VerbsAdapter& adapter) : adapter_(adapter) {}

  // ---- FdHandler
  void ready(std::uint32_t events) override;

 private:
  void handle(ibv_event_type type, void* context, int port);
  void completion_queue_failed(Cq& cq);
  void shared_queue_failed(SharedQueue& shared);
  template <typename Concerned>
  void lose_queue_pairs(Concerned concerned);

  VerbsAdapter& adapter_;
};

}  // namespace anydat::nic::verbs
