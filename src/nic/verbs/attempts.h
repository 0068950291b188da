// SPDX-License-Identifier: BSD-3-Clause
// Attempts to connect apart from who makes them: the call of the kernel, and what is left of those that are given up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>

#include "nic/engine.h"
#include "nic/timer.h"
#include "nic/verbs/cm.h"
#include "nic/verbs/completions.h"
#include "nic/verbs/kernel_calls.h"
#include "nic/verbs/reaper.h"
#include "nic/verbs/resources.h"

namespace anydat::nic::verbs {

class SharedQueue;

// What belongs to an attempt to connect that is not waited for any more, and that the other side has not answered.
struct AbandonedAttempt {
  CmIdPtr id;
  QpPtr queue_pair;
  PdPtr pd;
  Cq* cq;  // null: none
  std::uint32_t cq_room;
  SharedQueue* shared;
  std::shared_ptr<KeptParts> keeps;  // of a shared queue that has gone before
  bool counted = false;              // among those that receive from it
  KernelCalls::Ref dial;             // a call that the identifier is still in, and must outlive; or null
  bool unwanted = false;             // goes when that is over
  os::Nanoseconds cut_at = 0;        // when that call is cut off; 0: it has been
  KernelCalls::Ref going;            // its identifier is being destroyed; or null
};

// The abandoned attempts of an adapter, each of which is kept until its answer comes, or, unwanted, until its call is
// over. The kernel destroys the identifier of an attempt that it has begun only when that is answered, for which it may
// wait for many seconds: that is a call in a thread of its own, after which the rest goes.
//
// A call that is cut off makes the kernel close the TCP connection at once, perhaps before the other side has accepted
// it; and soft-iWARP takes that for the end of the listener, whose socket the new one resembles until then (seen with
// Linux 6.1). So the call for a connection has a moment to come to its end, which takes no longer than a round trip
// where a host answers, unless another call waits for its thread.
//
// With the engine held.
class AbandonedAttempts final : public CmHandler {
 public:
  // How long the call for a connection may go on.
  static constexpr os::Nanoseconds kCallMax = os::kNsPerSecond;

  AbandonedAttempts(Engine& engine, CompletionQueues& queues, Reaper& reaper, KernelCalls& calls)
      : engine_(engine), queues_(queues), reaper_(reaper), calls_(calls), cut_timer_([this] {
          cut_off_calls(os::now_ns());
        }) {}

  // Calls rdma_connect() where it holds up nothing else, and before abandoned calls have had their moments if there is
  // no thread for it. `parameters` without private data; the handler of `id` hears of the end of the call. May throw
  // std::bad_alloc.
  KernelCalls::Ref dial(rdma_cm_id* id, rdma_conn_param parameters, std::span<const std::byte> private_data);

  // `gently`: its call has a moment.
  void keep(AbandonedAttempt attempt, bool gently = false);
  // Whether one of the calls has its moment.
  bool any_in_call() const;
  // Gives up everything of one that is no attempt any more, or none yet; the end of its queue pair is not waited for.
  void drop(AbandonedAttempt& attempt);
  void drop_all();
  // Those that have a queue pair on it, which need not have gone yet when this returns.
  void drop_on(const SharedQueue* shared);
  // The queue goes; the device's part of it, which `parts` are, goes behind their queue pairs.
  void leave_to(const SharedQueue* shared, const std::shared_ptr<KeptParts>& parts);

  // ---- CmHandler
  void on_cm_event(const CmEvent& event) override;
  void on_dialled(rdma_cm_id* id, int error) override;

 private:
  void cut_off_calls(os::Nanoseconds due);  // whose moments are over by then
  void drop_unanswered(AbandonedAttempt& attempt);
  void forget_dropped() {
    std::erase_if(attempts_, [](const AbandonedAttempt& attempt) { return !attempt.id && !attempt.going; });
  }

  Engine& engine_;
  CompletionQueues& queues_;
  Reaper& reaper_;
  KernelCalls& calls_;
  std::list<AbandonedAttempt> attempts_;
  Timer cut_timer_;
};

}  // namespace anydat::nic::verbs
