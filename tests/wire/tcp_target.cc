// SPDX-License-Identifier: BSD-3-Clause
#include "wire/tcp_target.h"

#include <algorithm>
#include <array>

namespace anydat::test {
namespace {

constexpr std::byte kPattern{0x5a};

DAT_EP_ATTR attributes() {
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.max_rdma_read_in = TcpTarget::kReadsIn;
  return attr;
}

}  // namespace

const Wire& tcp_wire() {
  static const Wire wire{.name = "tcp", .ia_name = "soft-lo", .env = {{"DAT_WIRE", "tcp"}}};
  return wire;
}

TcpTarget::TcpTarget()
    : side_(tcp_wire()),
      other_side_(tcp_wire()),
      other_zone_(side_.ia),
      all_(side_.ia, side_.pz, kMemoryBytes),
      readable_(side_.ia, side_.pz, kMemoryBytes,
                static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG)),
      writable_(side_.ia, side_.pz, kMemoryBytes,
                static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)),
      elsewhere_(side_.ia, other_zone_, kMemoryBytes),
      buffers_(side_.ia, side_.pz, kBuffers * kBufferBytes),
      srq_(side_.ia, side_.pz, kBuffers),
      friends_(connect_pair(side_, srq_, other_side_)),
      friends_memory_(other_side_.ia, other_side_.pz, kBufferBytes) {
  for (const Lmr* lmr : {&all_, &readable_, &writable_, &elsewhere_}) std::ranges::fill(lmr->bytes(), kPattern);
  for (DAT_UINT64 i = 0; i < kBuffers; ++i) {
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = i;
    post(cookie);
  }
}

TcpTarget::~TcpTarget() {
  // What is still connected is cut, so that everything can be freed.
  for (const Ep* ep : {&friends_.server, &friends_.client}) dat_ep_disconnect(ep->get(), DAT_CLOSE_ABRUPT_FLAG);
}

void TcpTarget::post(DAT_DTO_COOKIE buffer) {
  DAT_LMR_TRIPLET segment = buffers_.triplet(buffer.as_64 * kBufferBytes, kBufferBytes);
  require(dat_srq_post_recv(srq_.get(), 1, &segment, buffer), "dat_srq_post_recv");
}

Ep TcpTarget::accept() {
  const DAT_EVENT request = expect_event(side_.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  Ep ep(side_, srq_, attributes());
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
  return ep;
}

void TcpTarget::expect_established(const Ep& ep) {
  const DAT_EVENT event = expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(event.event_data.connect_event_data.ep_handle, ep.get());
}

DAT_EVENT_NUMBER TcpTarget::expect_end(const Ep& ep, Caller caller) {
  const std::optional<DAT_EVENT> event = wait_event(side_.connect.get(), 3 * patience());
  if (!event) {
    ADD_FAILURE_AT(caller.file, caller.line) << "the connection has not ended";
    return {};
  }
  EXPECT_EQ(event->event_data.connect_event_data.ep_handle, ep.get());
  EXPECT_TRUE(event->event_number == DAT_CONNECTION_EVENT_BROKEN ||
              event->event_number == DAT_CONNECTION_EVENT_DISCONNECTED)
      << event_name(event->event_number);
  EXPECT_EQ(ep.state(), DAT_EP_STATE_DISCONNECTED);
  EXPECT_FALSE(poll_event(side_.connect.get()));
  return event->event_number;
}

DAT_VLEN TcpTarget::expect_message(const Ep& ep, Caller caller) {
  const DAT_DTO_COMPLETION_EVENT_DATA dto = expect_completion(side_.recv.get(), DAT_DTO_SUCCESS, caller);
  EXPECT_EQ(dto.ep_handle, ep.get());
  post(dto.user_cookie);
  return dto.transfered_length;
}

void TcpTarget::expect_unharmed(Caller caller) {
  // What the peer's messages took before its end comes back flushed or failed.
  while (const std::optional<DAT_EVENT> event = poll_event(side_.recv.get())) {
    post(event->event_data.dto_completion_event_data.user_cookie);
  }
  DAT_LMR_TRIPLET segment = friends_memory_.triplet();
  require(dat_ep_post_send(friends_.client.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  expect_completion(other_side_.request.get(), DAT_DTO_SUCCESS, caller);
  EXPECT_EQ(expect_message(friends_.server, caller), kBufferBytes);
  EXPECT_EQ(srq_.available(), kBuffers) << caller.file << ":" << caller.line;
  EXPECT_EQ(srq_.outstanding(), kBuffers) << caller.file << ":" << caller.line;
  EXPECT_EQ(friends_.server.state(), DAT_EP_STATE_CONNECTED);
}

bool TcpTarget::memory_is_untouched() const {
  return std::ranges::all_of(std::array{&all_, &readable_, &writable_, &elsewhere_}, [](const Lmr* lmr) {
    return std::ranges::all_of(lmr->bytes(), [](std::byte byte) { return byte == kPattern; });
  });
}

}  // namespace anydat::test
