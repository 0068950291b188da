// SPDX-License-Identifier: BSD-3-Clause
#include "datperf/requests.h"

#include <algorithm>

#include "common/error.h"

namespace datperf {
namespace {

constexpr tools::Timeout kWaitAtMost = std::chrono::hours(1);  // at once
constexpr DAT_COUNT kArrivedMax = 4096;                        // that no turn has looked at yet
constexpr std::size_t kWaitingMax = 1024;                      // each holds what its connection needs

}  // namespace

Requests::Requests(const tools::Adapter& adapter, DAT_CONN_QUAL qualifier, int control_fd)
    : evd_(adapter.make_evd(kArrivedMax, DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG)),
      listener_(adapter, evd_.get(), qualifier),
      stop_(evd_.get(), control_fd),
      others_wait_(control_fd < 0) {}

std::optional<Request> Requests::next() {
  if (!stopping_ && !waiting_.empty()) {
    const Request first = waiting_.front();
    waiting_.pop_front();
    return first;
  }
  while (!stopping_)
    if (const auto event = arrived(kWaitAtMost))
      if (const auto request = understood(*event)) return request;
  return std::nullopt;
}

std::optional<Request> Requests::next_of(std::uint64_t run, Clock::time_point until) {
  if (const auto waiting = waiting_of(run)) return waiting;
  // Also all that has come by then and has not been looked at, but no flood that goes on.
  for (DAT_COUNT looked_at = 0; !stopping_ && looked_at < kArrivedMax; ++looked_at) {
    const auto event = arrived(std::chrono::duration_cast<tools::Timeout>(until - Clock::now()));
    if (!event) break;
    const auto request = understood(*event);
    if (request && request->params.run == run) return request;
    if (request) let_wait(*request);
  }
  return std::nullopt;
}

bool Requests::some_wait() const {
  return !waiting_.empty() || tools::events_of(evd_.get()) > seen_;
}

std::optional<Request> Requests::waiting_of(std::uint64_t run) {
  const auto found = std::ranges::find(waiting_, run, [](const Request& request) { return request.params.run; });
  if (found == waiting_.end()) return std::nullopt;
  const Request request = *found;
  waiting_.erase(found);
  return request;
}

std::optional<DAT_EVENT> Requests::arrived(tools::Timeout timeout) {
  DAT_EVENT event{};
  if (!tools::wait_event(evd_.get(), timeout, event)) return std::nullopt;
  return event;
}

// The request of a datperf client. What is none is rejected.
std::optional<Request> Requests::understood(const DAT_EVENT& event) {
  if (event.event_number == DAT_SOFTWARE_EVENT) {
    stopping_ = true;
    return std::nullopt;
  }
  const DAT_CR_HANDLE cr = event.event_data.cr_arrival_event_data.cr_handle;
  ++seen_;
  try {
    if (const auto params = decode(tools::request_data(cr))) return Request{cr, *params};
  } catch (const tools::Error&) {
    // It cannot even be asked for its data.
  }
  reject(cr);
  return std::nullopt;
}

void Requests::let_wait(const Request& request) {
  if (!others_wait_ || waiting_.size() == kWaitingMax) return reject(request.cr);
  waiting_.push_back(request);
}

}  // namespace datperf
