// SPDX-License-Identifier: BSD-3-Clause
#include "evd_fixture.h"

#include <stdexcept>

namespace anydat::test {

DAT_EVENT software_event(std::uintptr_t value) {
  DAT_EVENT event{};
  event.event_number = DAT_SOFTWARE_EVENT;
  event.event_data.software_event_data.pointer = reinterpret_cast<DAT_PVOID>(value);
  return event;
}

DAT_RETURN try_post(DAT_EVD_HANDLE evd, std::uintptr_t value) {
  const DAT_EVENT event = software_event(value);
  return dat_evd_post_se(evd, &event);
}

void post(DAT_EVD_HANDLE evd, std::uintptr_t value) {
  require(try_post(evd, value), "dat_evd_post_se");
}

void post_range(DAT_EVD_HANDLE evd, std::uintptr_t first, int count) {
  for (std::uintptr_t i = 0; i < static_cast<std::uintptr_t>(count); ++i) {
    post(evd, first + i);
  }
}

std::uintptr_t value_of(const DAT_EVENT& event) {
  EXPECT_EQ(event.event_number, DAT_SOFTWARE_EVENT);
  return reinterpret_cast<std::uintptr_t>(event.event_data.software_event_data.pointer);
}

std::uintptr_t take(DAT_EVD_HANDLE evd) {
  const auto event = poll_event(evd);
  if (!event) throw std::runtime_error("no event is queued");
  return value_of(*event);
}

std::vector<std::uintptr_t> take_all(DAT_EVD_HANDLE evd) {
  std::vector<std::uintptr_t> values;
  while (const auto event = poll_event(evd)) {
    values.push_back(value_of(*event));
  }
  return values;
}

DAT_EVD_PARAM query_evd(DAT_EVD_HANDLE evd) {
  DAT_EVD_PARAM param{};
  require(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param), "dat_evd_query");
  return param;
}

DAT_COUNT queued(DAT_EVD_HANDLE evd) {
  const EvdResult result = wait_evd(evd, 0, query_evd(evd).evd_qlen);
  if (!is_type(result.rc, DAT_TIMEOUT_EXPIRED)) throw std::runtime_error("queued(): " + describe(result.rc));
  return result.more;
}

DAT_CNO_PARAM query_cno(DAT_CNO_HANDLE cno) {
  DAT_CNO_PARAM param{};
  require(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param), "dat_cno_query");
  return param;
}

DAT_OS_WAIT_PROXY_AGENT no_agent() {
  return {nullptr, nullptr};
}

DAT_EVD_FLAGS flags(unsigned bits) {
  return static_cast<DAT_EVD_FLAGS>(bits);
}

Cno::Cno(const Ia& ia, DAT_OS_WAIT_PROXY_AGENT agent) {
  require(dat_cno_create(ia.get(), agent, out()), "dat_cno_create");
}

CnoResult wait_cno(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout) {
  CnoResult result{};
  result.rc = dat_cno_wait(cno, timeout, &result.evd);
  return result;
}

bool take_trigger(DAT_CNO_HANDLE cno) {
  const CnoResult result = wait_cno(cno, 0);
  if (result.rc != DAT_SUCCESS && !is_type(result.rc, DAT_QUEUE_EMPTY)) {
    throw std::runtime_error("dat_cno_wait: " + describe(result.rc));
  }
  return result.rc == DAT_SUCCESS;
}

EvdResult wait_evd(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold) {
  EvdResult result{};
  result.rc = dat_evd_wait(evd, timeout, threshold, &result.event, &result.more);
  return result;
}

BlockedWait::BlockedWait(DAT_EVD_HANDLE evd, DAT_COUNT threshold, DAT_TIMEOUT timeout, Caller caller)
    : BlockedCall([=] { return wait_evd(evd, timeout, threshold); }, caller) {
  // A blocked waiter owns the EVD. Resizing to the size it has is the one call that shows this and, if the thread
  // sleeps for another reason, changes nothing (EVD-RESIZE-9, EVD-RESIZE-10).
  const DAT_COUNT length = query_evd(evd).evd_qlen;
  bool blocks = false;
  eventually([&] {
    blocks = is_type(dat_evd_resize(evd, length), DAT_INVALID_STATE);
    return blocks || returned_within(std::chrono::milliseconds(0));
  });
  if (!blocks) throw_not_blocked(caller);
}

std::unique_ptr<BlockedWait> blocked_for(DAT_EVD_HANDLE evd, DAT_COUNT threshold, std::chrono::milliseconds& time,
                                         Caller caller) {
  for (;; time *= 2) {
    try {
      const auto timeout = static_cast<DAT_TIMEOUT>(std::chrono::microseconds(time).count());
      return std::make_unique<BlockedWait>(evd, threshold, timeout, caller);
    } catch (const NotBlocked&) {
      if (time > patience()) throw;
    }
  }
}

BlockedCnoWait::BlockedCnoWait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, Caller caller)
    : BlockedCall([=] { return wait_cno(cno, timeout); }, caller) {}

void CountingAgent::called(DAT_PVOID self, DAT_EVD_HANDLE evd) {
  auto* agent = static_cast<CountingAgent*>(self);
  agent->last_evd_ = evd;
  ++agent->calls_;
}

bool CountingAgent::eventually_called(int times) const {
  return eventually([&] { return calls_ >= times; }) && calls_ == times;
}

void AsyncSource::fire() const {
  require(dat_srq_set_lw(srq_.get(), 1), "dat_srq_set_lw");
}

DAT_RETURN open_ia(const Wire& wire, DAT_COUNT length, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia) {
  const ScopedEnv env(wire.env);
  std::string name = wire.ia_name;
  return dat_ia_open(name.data(), length, async_evd, ia);
}

DAT_CONN_QUAL dead_qualifier(const Ia& ia) {
  const Evd evd(ia, DAT_EVD_CR_FLAG, 1);
  return Psp(ia, evd).qualifier();
}

void connect(DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier) {
  require(dat_ep_connect(ep, loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
}

namespace {

DAT_DTO_COOKIE cookie_of(int index) {
  DAT_DTO_COOKIE cookie{};
  cookie.as_64 = static_cast<DAT_UINT64>(index);
  return cookie;
}

}  // namespace

void MessageTest::post_recv(const Ep& ep, int index, DAT_COMPLETION_FLAGS completion_flags) {
  DAT_LMR_TRIPLET segment = sink.triplet(static_cast<std::size_t>(index) * kBytes, kBytes);
  require(dat_ep_post_recv(ep.get(), 1, &segment, cookie_of(index), completion_flags), "dat_ep_post_recv");
}

void MessageTest::send(const Ep& ep, int index, DAT_COMPLETION_FLAGS completion_flags, std::size_t bytes) {
  DAT_LMR_TRIPLET segment = source.triplet(static_cast<std::size_t>(index) * kBytes, bytes);
  require(dat_ep_post_send(ep.get(), 1, &segment, cookie_of(index), completion_flags), "dat_ep_post_send");
}

}  // namespace anydat::test
