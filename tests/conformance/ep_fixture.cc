// SPDX-License-Identifier: BSD-3-Clause
#include "ep_fixture.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

namespace anydat::test {

OwnEvds::OwnEvds(const Side& side, DAT_COUNT qlen) : OwnEvds(side.ia, qlen) {}

OwnEvds::OwnEvds(const Ia& ia, DAT_COUNT qlen)
    : recv(ia, DAT_EVD_DTO_FLAG, qlen),
      request(ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG), qlen),
      connect(ia, DAT_EVD_CONNECTION_FLAG, qlen) {}

DAT_RETURN try_connect(DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout) {
  return dat_ep_connect(ep, loopback(), qualifier, timeout, 0, nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

DAT_CR_HANDLE expired_request(Side& server, DAT_EP_HANDLE ep, DAT_EVD_HANDLE connect_evd) {
  // The time may be up before the request has arrived; then it gets more.
  for (auto timeout = std::chrono::milliseconds(30); timeout < patience(); timeout *= 2) {
    require(try_connect(ep, server.listen(), static_cast<DAT_TIMEOUT>(timeout.count() * 1000)), "dat_ep_connect");
    expect_connection_event(connect_evd, DAT_CONNECTION_EVENT_TIMED_OUT, ep);
    if (const auto event = poll_event(server.requests.get())) {
      return event->event_data.cr_arrival_event_data.cr_handle;
    }
    require(dat_ep_reset(ep), "dat_ep_reset");
  }
  throw std::runtime_error("no request arrives before its time is up");
}

DAT_CR_ARRIVAL_EVENT_DATA expect_request(DAT_EVD_HANDLE evd, Caller caller) {
  return expect_event(evd, DAT_CONNECTION_REQUEST_EVENT, caller).event_data.cr_arrival_event_data;
}

DAT_CONNECTION_EVENT_DATA expect_connection_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EP_HANDLE ep,
                                                  Caller caller) {
  const DAT_CONNECTION_EVENT_DATA data = expect_event(evd, number, caller).event_data.connect_event_data;
  if (data.ep_handle != ep) {
    ADD_FAILURE_AT(caller.file, caller.line) << event_name(number) << " is about another endpoint";
  }
  return data;
}

DAT_EVENT_NUMBER expect_terminal_event(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, Caller caller) {
  const auto event = wait_event(evd);
  if (!event) {
    throw std::runtime_error(fmt::format("{}:{}: the connection does not end", caller.file, caller.line));
  }
  const DAT_EVENT_NUMBER number = event->event_number;
  if (number != DAT_CONNECTION_EVENT_DISCONNECTED && number != DAT_CONNECTION_EVENT_BROKEN) {
    ADD_FAILURE_AT(caller.file, caller.line) << "expected DISCONNECTED or BROKEN, got " << event_name(number);
  } else if (event->event_data.connect_event_data.ep_handle != ep) {
    ADD_FAILURE_AT(caller.file, caller.line) << event_name(number) << " is about another endpoint";
  }
  return number;
}

DAT_CR_PARAM query_request(DAT_CR_HANDLE request) {
  DAT_CR_PARAM param{};
  require(dat_cr_query(request, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
  return param;
}

std::vector<std::byte> bytes_of(const char* text) {
  return bytes_of(text, static_cast<DAT_COUNT>(std::strlen(text)));
}

std::vector<std::byte> bytes_of(const void* data, DAT_COUNT size) {
  const auto* const first = static_cast<const std::byte*>(data);
  return {first, first + size};
}

DAT_CONN_QUAL unused_qualifier(Side& side) {
  return AnyPsp(side.ia, side.requests.get()).qualifier();
}

AnyPsp::AnyPsp(const Ia& ia, DAT_EVD_HANDLE requests, DAT_PSP_FLAGS flags) {
  require(dat_psp_create_any(ia.get(), &qualifier_, requests, flags, out()), "dat_psp_create_any");
}

Rsp::Rsp(Side& side, DAT_EP_HANDLE ep) : Rsp(side, ep, side.requests.get()) {}

Rsp::Rsp(Side& side, DAT_EP_HANDLE ep, DAT_EVD_HANDLE requests) : qualifier_(unused_qualifier(side)) {
  require(dat_rsp_create(side.ia.get(), qualifier_, ep, requests, out()), "dat_rsp_create");
}

namespace {

DAT_CNO_HANDLE create_cno(const Ia& ia) {
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  require(dat_cno_create(ia.get(), DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), "dat_cno_create");
  return cno;
}

}  // namespace

RequestQueue::RequestQueue(const Ia& ia, DAT_COUNT qlen)
    : cno_(create_cno(ia)), evd_(ia, DAT_EVD_CR_FLAG, qlen, cno_.get()) {}

void RequestQueue::await_arrival() const {
  const auto timeout = std::chrono::duration_cast<std::chrono::microseconds>(patience()).count();
  DAT_EVD_HANDLE triggered = DAT_HANDLE_NULL;
  require(dat_cno_wait(cno_.get(), static_cast<DAT_TIMEOUT>(timeout), &triggered), "dat_cno_wait");
}

DAT_RETURN EpTest::try_recv(const Ep& ep, const Buffers& buffers, int index, std::size_t length) {
  DAT_LMR_TRIPLET segment = buffers.triplet(index);
  segment.segment_length = length;
  return dat_ep_post_recv(ep.get(), 1, &segment, cookie(static_cast<DAT_UINT64>(index)), DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN EpTest::try_send(const Ep& ep, const Buffers& buffers, int index, std::size_t length,
                            DAT_COMPLETION_FLAGS flags) {
  DAT_LMR_TRIPLET segment = buffers.triplet(index);
  segment.segment_length = length;
  return dat_ep_post_send(ep.get(), 1, &segment, cookie(static_cast<DAT_UINT64>(index)), flags);
}

void EpTest::post_recv(const Ep& ep, const Buffers& buffers, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    require(try_recv(ep, buffers, i), fmt::format("dat_ep_post_recv of buffer {}", i));
  }
}

void EpTest::post_send(const Ep& ep, const Buffers& buffers, int first, int count, std::size_t length,
                       DAT_COMPLETION_FLAGS flags) {
  for (int i = first; i < first + count; ++i) {
    fill_pattern(buffers[i].first(length), static_cast<DAT_UINT64>(i));
    require(try_send(ep, buffers, i, length, flags), fmt::format("dat_ep_post_send of buffer {}", i));
  }
}

void EpTest::post_large_send(const Ep& ep, const Lmr& large, DAT_UINT64 number, std::size_t length) {
  DAT_LMR_TRIPLET segment = large.triplet(0, length);
  require(dat_ep_post_send(ep.get(), 1, &segment, cookie(number), DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
}

EpTest::Pair EpTest::make_pair(const DAT_EP_ATTR& server_attr, const DAT_EP_ATTR& client_attr) {
  Pair pair{.server_evds = OwnEvds(server), .client_evds = OwnEvds(client), .server = Ep(), .client = Ep()};
  pair.server = Ep(server.ia, server.pz, pair.server_evds, server_attr);
  pair.client = Ep(client.ia, client.pz, pair.client_evds, client_attr);
  return pair;
}

EpTest::Pair EpTest::make_connected_pair(const DAT_EP_ATTR& server_attr, const DAT_EP_ATTR& client_attr) {
  Pair pair = make_pair(server_attr, client_attr);
  connect_pair(server, pair.server.get(), pair.client.get());
  return pair;
}

void EpTest::expect_working(const Pair& pair, Caller caller) {
  post_recv(pair.server, server_buffers, kBuffers - 1);
  post_send(pair.client, client_buffers, kBuffers - 1);
  const auto sent = expect_completion(pair.client_evds.request.get(), DAT_DTO_SUCCESS, caller);
  const auto received = expect_completion(pair.server_evds.recv.get(), DAT_DTO_SUCCESS, caller);
  EXPECT_EQ(sent.user_cookie.as_64, static_cast<DAT_UINT64>(kBuffers - 1));
  EXPECT_EQ(received.user_cookie.as_64, static_cast<DAT_UINT64>(kBuffers - 1));
  EXPECT_TRUE(has_pattern(server_buffers[kBuffers - 1].first(32), kBuffers - 1)) << caller.file << ":" << caller.line;
}

}  // namespace anydat::test
