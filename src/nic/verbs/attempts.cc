// SPDX-License-Identifier: BSD-3-Clause
#include "nic/verbs/attempts.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "nic/verbs/shared_queue.h"
#include "os/cancel.h"

namespace anydat::nic::verbs {

KernelCalls::Ref AbandonedAttempts::dial(rdma_cm_id* id, rdma_conn_param parameters,
                                         std::span<const std::byte> private_data) {
  if (calls_.crowded()) cut_off_calls(os::kForever);
  const auto run = [id, parameters, data = std::vector(private_data.begin(), private_data.end())]() mutable {
    parameters.private_data = data.data();
    parameters.private_data_len = static_cast<std::uint8_t>(std::min<std::size_t>(data.size(), 255));
    const os::CancelOn point(true);
    return rdma_connect(id, &parameters) == 0 ? 0 : errno;
  };
  return calls_.start(run, [id](int error) { static_cast<CmHandler*>(id->context)->on_dialled(id, error); });
}

void AbandonedAttempts::keep(AbandonedAttempt attempt, bool gently) {
  if (attempt.id) attempt.id->context = static_cast<CmHandler*>(this);
  if (attempt.dial && gently && !calls_.crowded() && calls_.has_begun(*attempt.dial)) {
    attempt.cut_at = os::now_ns() + kCallMax;
    if (!cut_timer_.pending()) engine_.set_timer(cut_timer_, attempt.cut_at);
  } else if (attempt.dial) {
    calls_.cancel(*attempt.dial);
  }
  try {
    attempts_.push_back(std::move(attempt));
  } catch (const std::bad_alloc&) {
    // However long that takes.
    if (const KernelCalls::Ref dial = std::exchange(attempt.dial, nullptr)) {
      calls_.cancel(*dial);
      calls_.await(*dial);
    }
    drop(attempt);
  }
}

// They are in the order of their times.
void AbandonedAttempts::cut_off_calls(os::Nanoseconds due) {
  for (AbandonedAttempt& attempt : attempts_) {
    if (!attempt.dial || attempt.cut_at == 0) continue;
    if (attempt.cut_at > due) return engine_.set_timer(cut_timer_, attempt.cut_at);
    calls_.cancel(*attempt.dial);
    attempt.cut_at = 0;
  }
}

bool AbandonedAttempts::any_in_call() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const AbandonedAttempt& attempt) { return attempt.dial && attempt.cut_at != 0; });
}

void AbandonedAttempts::drop(AbandonedAttempt& attempt) {
  if (attempt.dial) {
    attempt.unwanted = true;
  } else {
    attempt.id.reset();
  }
  Reaper::Job job;
  job.queue_pair = std::move(attempt.queue_pair);
  job.pd = std::move(attempt.pd);
  Cq* const cq = std::exchange(attempt.cq, nullptr);
  SharedQueue* const shared = std::exchange(attempt.counted, false) ? attempt.shared : nullptr;
  attempt.shared = nullptr;  // nothing of it is on that any more
  const std::uint32_t room = attempt.cq_room;
  if (!job.queue_pair && !cq && !shared) return attempt.keeps.reset();
  // What is kept goes with this, behind the queue pair.
  const auto done = [this, cq, shared, room, keeps = std::move(attempt.keeps)] {
    if (cq) queues_.release(cq, room);
    if (shared) shared->detach();
  };
  try {
    job.done = done;
  } catch (const std::bad_alloc&) {
    job = {};
    return done();
  }
  reaper_.give(std::move(job));
}

// One that the kernel may have begun, and in no call. Without memory for a call of its own it goes here, however long
// that takes.
void AbandonedAttempts::drop_unanswered(AbandonedAttempt& attempt) {
  try {
    const auto id = std::make_shared<CmIdPtr>(std::move(attempt.id));
    const auto destroy = [id] {
      id->reset();
      return 0;
    };
    attempt.going = calls_.start(destroy, [this, &attempt, id](int) {
      id->reset();  // if the call has come to nothing
      attempt.going.reset();
      drop(attempt);
      forget_dropped();
    });
  } catch (const std::bad_alloc&) {
    drop(attempt);
  }
}

void AbandonedAttempts::drop_all() {
  cut_off_calls(os::kForever);
  for (AbandonedAttempt& attempt : attempts_) {
    if (attempt.going) continue;
    if (attempt.dial) {
      drop(attempt);
    } else {
      drop_unanswered(attempt);
    }
  }
  engine_.cancel_timer(cut_timer_);
  forget_dropped();
}

void AbandonedAttempts::drop_on(const SharedQueue* shared) {
  for (AbandonedAttempt& attempt : attempts_) {
    if (attempt.shared != shared || attempt.going) continue;
    if (attempt.dial) {
      drop(attempt);
    } else {
      drop_unanswered(attempt);
    }
  }
  forget_dropped();
}

void AbandonedAttempts::leave_to(const SharedQueue* shared, const std::shared_ptr<KeptParts>& parts) {
  for (AbandonedAttempt& attempt : attempts_) {
    if (attempt.shared != shared) continue;
    attempt.shared = nullptr;
    attempt.counted = false;
    attempt.keeps = parts;
  }
}

// Whatever it is, it is the answer, or stands for it.
void AbandonedAttempts::on_cm_event(const CmEvent& event) {
  for (AbandonedAttempt& attempt : attempts_) {
    if (attempt.id.get() == event.id) drop(attempt);
  }
  forget_dropped();
}

void AbandonedAttempts::on_dialled(rdma_cm_id* id, int error) {
  for (AbandonedAttempt& attempt : attempts_) {
    if (attempt.id.get() != id) continue;
    attempt.dial.reset();
    if (error == EINTR || (error == 0 && attempt.unwanted)) {
      drop_unanswered(attempt);
    } else if (error != 0) {
      drop(attempt);
    }
  }
  forget_dropped();
}

}  // namespace anydat::nic::verbs
