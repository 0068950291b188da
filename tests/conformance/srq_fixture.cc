// SPDX-License-Identifier: BSD-3-Clause
#include "srq_fixture.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

namespace anydat::test {
namespace {

std::byte pattern_byte(DAT_UINT64 seed, std::size_t position) {
  const std::uint64_t mixed = (seed + 1) * 0x9E3779B97F4A7C15u + position * 0xBF58476D1CE4E5B9u;
  return static_cast<std::byte>(mixed >> 56);
}

// Arguments: the server's qualifier, the number of small and of large messages, the length of these.
void play_stopped_sender(RoleContext& context) {
  const DAT_CONN_QUAL qualifier = std::stoull(context.arguments.at(0));
  const int small = std::stoi(context.arguments.at(1));
  const int large = std::stoi(context.arguments.at(2));
  const std::size_t large_bytes = std::stoull(context.arguments.at(3));
  Side side(context.wire);
  const Lmr memory(side.ia, side.pz, large_bytes);
  fill_pattern(memory.bytes().first(StoppedSender::kLarge), 0);
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_message_size = std::max<DAT_VLEN>(attr.max_message_size, large_bytes);
  const Ep ep(side, attr);
  require(dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  context.parent.hear();  // the server says when it is ready
  for (int i = 0; i < small + large; ++i) {
    DAT_LMR_TRIPLET segment = memory.triplet(0, i < small ? StoppedSender::kSmall : large_bytes);
    require(dat_ep_post_send(ep.get(), 1, &segment, cookie(static_cast<DAT_UINT64>(i)), DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_send");
  }
  ::raise(SIGSTOP);
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);  // the server ends it
}

const Role kStoppedSender("stopped_sender", play_stopped_sender);

}  // namespace

DAT_DTO_COOKIE cookie(DAT_UINT64 value) {
  DAT_DTO_COOKIE result{};
  result.as_64 = value;
  return result;
}

void fill_pattern(std::span<std::byte> memory, DAT_UINT64 seed) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i] = pattern_byte(seed, i);
  }
}

bool has_pattern(std::span<const std::byte> memory, DAT_UINT64 seed) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] != pattern_byte(seed, i)) {
      return false;
    }
  }
  return true;
}

std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << "available " << counts.available << ", outstanding " << counts.outstanding;
}

Counts counts(const Srq& srq) {
  const DAT_SRQ_PARAM param = srq.query();
  return {.available = param.available_dto_count, .outstanding = param.outstanding_dto_count};
}

std::ostream& operator<<(std::ostream& out, const Held& held) {
  return out << "buffers " << held.buffers << ", span " << held.span;
}

bool holds_none(const Held& held) {
  return held.buffers == 0 || held.buffers == DAT_VALUE_UNKNOWN;
}

bool watermarks_supported(const Ia& ia) {
  return (ia.provider().srq_watermarks_supported & 0x110) == 0x110;
}

Held held(const Ep& ep) {
  Held result{};
  require(dat_ep_recv_query(ep.get(), &result.buffers, &result.span), "dat_ep_recv_query");
  return result;
}

Buffers::Buffers(const Ia& ia, const Pz& pz, int count, std::size_t bytes)
    : count_(count), bytes_(bytes), lmr_(ia, pz, static_cast<std::size_t>(count) * bytes) {}

DAT_RETURN Buffers::try_post(const Srq& srq, int index) const {
  DAT_LMR_TRIPLET segment = triplet(index);
  return dat_srq_post_recv(srq.get(), 1, &segment, cookie(static_cast<DAT_UINT64>(index)));
}

void Buffers::post(const Srq& srq, int first, int count) const {
  for (int i = first; i < first + count; ++i) {
    require(try_post(srq, i), fmt::format("dat_srq_post_recv of buffer {}", i));
  }
}

void Buffers::post(const Ep& ep, int first, int count) const {
  for (int i = first; i < first + count; ++i) {
    DAT_LMR_TRIPLET segment = triplet(i);
    require(dat_ep_post_recv(ep.get(), 1, &segment, cookie(static_cast<DAT_UINT64>(i)), DAT_COMPLETION_DEFAULT_FLAG),
            fmt::format("dat_ep_post_recv of buffer {}", i));
  }
}

std::span<std::byte> Buffers::operator[](int index) const {
  return lmr_.bytes().subspan(static_cast<std::size_t>(index) * bytes_, bytes_);
}

DAT_LMR_TRIPLET Buffers::triplet(int index) const {
  return lmr_.triplet(static_cast<std::size_t>(index) * bytes_, bytes_);
}

void expect_low_watermark(const Side& side, const Srq& srq, Caller caller) {
  const auto data = expect_event(side.ia.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, caller)
                        .event_data.asynch_error_event_data;
  if (data.dat_handle != srq.get() || static_cast<int>(data.reason) != DAT_SRQ_LOW_WATERMARK_EVENT) {
    ADD_FAILURE_AT(caller.file, caller.line)
        << "not the low-watermark event of this SRQ: handle " << data.dat_handle << ", reason " << data.reason;
  }
}

void expect_soft_watermark(const Side& side, const Ep& ep, Caller caller) {
  const auto data =
      expect_event(side.ia.async_evd(), DAT_ASYNC_ERROR_EP_BROKEN, caller).event_data.asynch_error_event_data;
  if (data.dat_handle != ep.get() || static_cast<int>(data.reason) != DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT) {
    ADD_FAILURE_AT(caller.file, caller.line)
        << "not the soft-watermark event of this EP: handle " << data.dat_handle << ", reason " << data.reason;
  }
}

namespace {

// Lets in who asks for a connection.
void accept_stopped_sender(Side& server, const Ep& ep) {
  const DAT_EVENT request = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
}

}  // namespace

StoppedSender::StoppedSender(Side& server, const Ep& ep, const Wire& wire, int small, int large,
                             std::size_t large_bytes) {
  if (wire.stopped_sender_by_hand) {
    begin_by_hand(server, ep, small, large, large_bytes);
  } else {
    begin_process(server, ep, wire, small, large, large_bytes);
  }
}

void StoppedSender::begin_process(Side& server, const Ep& ep, const Wire& wire, int small, int large,
                                  std::size_t large_bytes) {
  process_.emplace("stopped_sender", wire,
                   std::vector{std::to_string(server.listen()), std::to_string(small), std::to_string(large),
                               std::to_string(large_bytes)});
  accept_stopped_sender(server, ep);
  expect_event(ep.query().connect_evd_handle, DAT_CONNECTION_EVENT_ESTABLISHED);
  process_->channel().say("go");
  process_->wait_until_stopped();
}

void StoppedSender::begin_by_hand(Side& server, const Ep& ep, int small, int large, std::size_t large_bytes) {
  by_hand_.emplace(server.listen(), [&] { accept_stopped_sender(server, ep); });
  expect_event(ep.query().connect_evd_handle, DAT_CONNECTION_EVENT_ESTABLISHED);
  std::vector<std::byte> message(kLarge);
  fill_pattern(message, 0);
  for (int i = 0; i < small; ++i) by_hand_->send(std::span(message).first(kSmall));
  for (int i = 0; i < large; ++i) by_hand_->begin(message, large_bytes);
  by_hand_->stand_by();
}

void StoppedSender::resume() {
  if (process_) process_->resume();
  if (by_hand_) by_hand_->go_on();
}

void StoppedSender::kill() {
  if (process_) process_->kill();
  if (by_hand_) by_hand_->leave();
}

bool eventually_held(const Ep& ep, DAT_COUNT expected) {
  return eventually([&] { return held(ep).buffers == expected; });
}

void SrqTest::send(const Ep& ep, DAT_UINT64 number, std::size_t length, DAT_COMPLETION_FLAGS flags) {
  const std::size_t offset = number % kBuffers * kBytes;
  fill_pattern(source.bytes().subspan(offset, length), number);
  DAT_LMR_TRIPLET segment = source.triplet(offset, length);
  require(dat_ep_post_send(ep.get(), 1, &segment, cookie(number), flags), "dat_ep_post_send");
}

void SrqTest::send_and_wait(const Ep& ep, DAT_UINT64 number, std::size_t length) {
  send(ep, number, length);
  EXPECT_EQ(expect_completion(ep.query().request_evd_handle).user_cookie.as_64, number);
}

DAT_DTO_COMPLETION_EVENT_DATA SrqTest::pass_message(const Connection& connection, DAT_UINT64 number,
                                                    std::size_t length) {
  send_and_wait(connection.client, number, length);
  return expect_completion(connection.server.query().recv_evd_handle);
}

void SrqTest::expect_completed(const Srq& srq, const Ep& ep, DAT_COUNT available, Caller caller) {
  // In this order: once the buffers are known to be taken, an endpoint that holds none has completed them.
  const bool done = eventually([&] { return srq.available() == available && holds_none(held(ep)); });
  if (!done) {
    ADD_FAILURE_AT(caller.file, caller.line)
        << "expected available " << available << " and nothing held; it is " << counts(srq) << ", " << held(ep);
  }
}

void SrqHoldingTest::SetUp() {
  if (GetParam().held_for_stopped_sender < 6) {
    GTEST_SKIP() << "over wire " << GetParam() << " a stopped sender leaves at most "
                 << GetParam().held_for_stopped_sender << " buffers at an endpoint; this test needs 6";
  }
}

}  // namespace anydat::test
