// SPDX-License-Identifier: BSD-3-Clause
#include "srq_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "payload.h"

namespace anydat::test {
namespace {

DAT_EP_ATTR attr_for(DAT_VLEN longest) {
  DAT_EP_ATTR attr = default_srq_ep_attr();
  attr.max_message_size = std::max(attr.max_message_size, longest);
  return attr;
}

}  // namespace

ServerEnd::ServerEnd(const Side& side, const Srq& srq, std::uint64_t seed_of_sender, DAT_VLEN longest)
    : seed(seed_of_sender),
      connect(side.ia, DAT_EVD_CONNECTION_FLAG, 8),
      request(side.ia, DAT_EVD_DTO_FLAG, 256),
      ep(side.ia, side.pz, EpEvds{.recv = side.recv.get(), .request = request.get(), .connect = connect.get()}, srq,
         attr_for(longest)) {}

SrqServer::SrqServer(const Wire& wire, int buffers, std::size_t bytes)
    : buffers_(buffers),
      bytes_(bytes),
      side_(wire),
      memory_(side_.ia, side_.pz, static_cast<std::size_t>(buffers) * bytes),
      outgoing_(side_.ia, side_.pz, bytes),
      srq_(side_.ia, side_.pz, buffers) {
  for (int i = 0; i < buffers; ++i) {
    post(static_cast<std::uint64_t>(i));
  }
}

void SrqServer::post(std::uint64_t buffer) {
  DAT_LMR_TRIPLET segment = memory_.triplet(buffer * bytes_, bytes_);
  DAT_DTO_COOKIE cookie{};
  cookie.as_64 = buffer;
  require(dat_srq_post_recv(srq_.get(), 1, &segment, cookie), "dat_srq_post_recv");
}

DAT_CR_HANDLE SrqServer::request(Caller caller) {
  const DAT_EVENT event = expect_event(side_.requests.get(), DAT_CONNECTION_REQUEST_EVENT, caller);
  return event.event_data.cr_arrival_event_data.cr_handle;
}

ServerEnd& SrqServer::accept(DAT_CR_HANDLE request, std::uint64_t seed) {
  ServerEnd& end = ends_.emplace_back(side_, srq_, seed, bytes_);
  require(dat_cr_accept(request, end.ep.get(), 0, nullptr), "dat_cr_accept");
  return end;
}

ServerEnd& SrqServer::welcome(std::uint64_t seed, Caller caller) {
  ServerEnd& end = accept(request(caller), seed);
  expect_event(end.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED, caller);
  return end;
}

void SrqServer::drop(ServerEnd& end) {
  ends_.remove_if([&](const ServerEnd& entry) { return &entry == &end; });
}

std::optional<SrqServer::Outcome> SrqServer::reap(std::chrono::milliseconds timeout) {
  const auto event = wait_event(side_.recv.get(), timeout);
  if (!event) {
    return std::nullopt;
  }
  if (event->event_number != DAT_DTO_COMPLETION_EVENT) {
    throw std::runtime_error("the receive EVD holds " + event_name(event->event_number));
  }
  const auto& dto = event->event_data.dto_completion_event_data;
  const std::uint64_t buffer = dto.user_cookie.as_64;
  const auto end =
      std::find_if(ends_.begin(), ends_.end(), [&](const ServerEnd& entry) { return entry.ep.get() == dto.ep_handle; });
  const Outcome outcome{.end = end == ends_.end() ? nullptr : &*end, .success = dto.status == DAT_DTO_SUCCESS};
  if (outcome.success && outcome.end != nullptr) {
    const auto message = memory_.bytes().subspan(buffer * bytes_, dto.transfered_length);
    EXPECT_TRUE(is_message(message, end->seed, end->received))
        << "connection " << end->seed << ", message " << end->received << ", " << dto.transfered_length << " bytes";
    ++end->received;
  }
  if (posts_again_) {
    post(buffer);
  } else {
    reaped_.push_back(buffer);
  }
  return outcome;
}

bool SrqServer::receive(ServerEnd& end, std::uint64_t total) {
  while (end.received < total) {
    const auto outcome = reap();
    if (!outcome || !outcome->success) {
      return false;
    }
  }
  return true;
}

int SrqServer::reap_the_rest() {
  int failed = 0;
  while (const auto outcome = reap(std::chrono::milliseconds(0))) {
    failed += outcome->success ? 0 : 1;
  }
  return failed;
}

bool SrqServer::message_has_begun(const ServerEnd& end) {
  return eventually([&] {
    DAT_COUNT buffers = 0;
    DAT_COUNT span = 0;
    require(dat_ep_recv_query(end.ep.get(), &buffers, &span), "dat_ep_recv_query");
    // A quick one may be whole before anybody looks: then it has its buffer until it is reaped.
    return buffers > 0 || srq_.available() < srq_.outstanding();
  });
}

void SrqServer::send(ServerEnd& end, int count, std::size_t bytes) {
  // All of them at once from the same memory would need one content, so each has its own place.
  if (static_cast<std::size_t>(count) * bytes > outgoing_.bytes().size()) {
    throw std::runtime_error("more to send than there is memory for");
  }
  for (int i = 0; i < count; ++i) {
    const std::size_t offset = static_cast<std::size_t>(i) * bytes;
    fill_message(outgoing_.bytes().subspan(offset, bytes), end.seed, static_cast<std::uint64_t>(i));
    DAT_LMR_TRIPLET segment = outgoing_.triplet(offset, bytes);
    DAT_DTO_COOKIE cookie{};
    cookie.as_64 = static_cast<DAT_UINT64>(i);
    require(dat_ep_post_send(end.ep.get(), 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  }
}

void SrqServer::post_reaped() {
  posts_again_ = true;
  for (const std::uint64_t buffer : reaped_) {
    post(buffer);
  }
  reaped_.clear();
}

void SrqServer::expect_all_buffers(Caller caller) {
  DAT_SRQ_PARAM param{};
  // A buffer that an endpoint gave back with a completion may still be on its way to us.
  const bool balanced = eventually([&] {
    reap_the_rest();
    param = srq_.query();
    return param.available_dto_count == buffers_ && param.outstanding_dto_count == buffers_;
  });
  if (!balanced) {
    ADD_FAILURE_AT(caller.file, caller.line)
        << fmt::format("of {} buffers {} are available and {} outstanding", buffers_, param.available_dto_count,
                       param.outstanding_dto_count);
  }
}

}  // namespace anydat::test
