// SPDX-License-Identifier: BSD-3-Clause
#include "trial.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace anydat::test {
namespace {

constexpr std::size_t kInFlight = 8;
constexpr int kAnswers = 2;  // Sends of the server, when it is connected

// The bytes of every message and of the target's memory: they tell where they belong.
std::byte byte_at(std::size_t offset) {
  return static_cast<std::byte>(offset * 7 + (offset >> 8));
}

void fill(std::span<std::byte> bytes, std::size_t repeat_after) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(i % repeat_after);
}

bool filled(std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != byte_at(i)) return false;
  return true;
}

}  // namespace

Stage::Stage(const Wire& wire)
    : server(wire),
      client(wire),
      srq(server.ia, server.pz, kShared),
      shared_buffers(server.ia, server.pz, kShared * kMessageBytes),
      target(server.ia, server.pz, kMessageBytes),
      client_receives(client.ia, client.pz, kSlots * kMessageBytes),
      client_sources(client.ia, client.pz, kSlots * kMessageBytes),
      client_sinks(client.ia, client.pz, kSlots * kMessageBytes),
      server_sources(server.ia, server.pz, kMessageBytes) {
  fill(target.bytes(), kMessageBytes);
  fill(client_sources.bytes(), kMessageBytes);
  fill(server_sources.bytes(), kMessageBytes);
  for (std::size_t i = 0; i < kShared; ++i) post_shared(i);
}

void Stage::post_shared(std::size_t buffer) {
  DAT_LMR_TRIPLET triplet = shared_buffers.triplet(buffer * kMessageBytes, kMessageBytes);
  const DAT_DTO_COOKIE cookie = shared.post();
  buffer_of_[cookie.as_64] = buffer;
  require(dat_srq_post_recv(srq.get(), 1, &triplet, cookie), "dat_srq_post_recv");
}

std::size_t Stage::take_shared(std::uint64_t number) {
  const auto found = buffer_of_.find(number);
  if (found == buffer_of_.end()) throw std::runtime_error("a receive completed that was not posted");
  const std::size_t buffer = found->second;
  buffer_of_.erase(found);
  return buffer;
}

Trial::Trial(Stage& stage, DAT_CONN_QUAL through, const Traffic& traffic, DAT_TIMEOUT connect_timeout)
    : stage_(stage), traffic_(traffic), random_(traffic.seed), client_ep_(stage.client) {
  for (std::size_t i = 0; i < 4; ++i) {
    DAT_LMR_TRIPLET triplet = stage.client_receives.triplet(i * Stage::kMessageBytes, Stage::kMessageBytes);
    require(dat_ep_post_recv(client_ep_.get(), 1, &triplet, client_receives_.post(), DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_recv");
  }
  std::array<std::byte, 24> greeting{};
  require(dat_ep_connect(client_ep_.get(), loopback(), through, connect_timeout, greeting.size(), greeting.data(),
                         DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
}

bool Trial::over() const {
  return client_end_.over() &&
         std::ranges::all_of(guests_, [](const auto& guest) { return guest.second.end.over(); }) &&
         client_receives_.open() + client_requests_.open() + server_requests_.open() == 0 &&
         stage_.srq.available() == Stage::kShared;
}

bool Trial::step() {
  bool any = false;
  const auto look = [&](const Evd& evd, auto&& handle) {
    while (const auto event = poll_event(evd.get())) {
      any = true;
      handle(*event);
    }
  };
  look(stage_.client.connect, [&](const DAT_EVENT& event) { client_event(event); });
  look(stage_.server.requests,
       [&](const DAT_EVENT& event) { accept(event.event_data.cr_arrival_event_data.cr_handle); });
  look(stage_.server.connect, [&](const DAT_EVENT& event) { server_event(event); });
  look(stage_.server.recv,
       [&](const DAT_EVENT& event) { received_by_server(event.event_data.dto_completion_event_data); });
  look(stage_.server.request,
       [&](const DAT_EVENT& event) { server_requests_.complete(event.event_data.dto_completion_event_data); });
  look(stage_.client.recv, [&](const DAT_EVENT& event) {
    const auto& completion = event.event_data.dto_completion_event_data;
    client_receives_.complete(completion);
    received_by_client_ += completion.status == DAT_DTO_SUCCESS;
  });
  look(stage_.client.request, [&](const DAT_EVENT& event) {
    const auto& completion = event.event_data.dto_completion_event_data;
    client_requests_.complete(completion);
    failed_ += completion.status != DAT_DTO_SUCCESS;
    const auto read = std::find_if(reads_.begin(), reads_.end(),
                                   [&](const Read& one) { return one.number == completion.user_cookie.as_64; });
    if (read == reads_.end()) return;
    if (completion.status == DAT_DTO_SUCCESS) {
      EXPECT_TRUE(filled(stage_.client_sinks.bytes().subspan(read->slot * Stage::kMessageBytes, read->bytes)))
          << "a Read of " << read->bytes << " bytes brought something else";
    }
    reads_.erase(read);
  });
  post_more();
  return any;
}

void Trial::client_event(const DAT_EVENT& event) {
  client_end_.tell(event.event_number);
}

void Trial::server_event(const DAT_EVENT& event) {
  const DAT_EP_HANDLE ep = event.event_data.connect_event_data.ep_handle;
  guests_.at(ep).end.tell(event.event_number);
  if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED) answer(ep);
}

void Trial::accept(DAT_CR_HANDLE cr) {
  Ep ep(stage_.server, stage_.srq);
  const DAT_EP_HANDLE handle = ep.get();
  guests_[handle].ep = std::move(ep);
  std::array<std::byte, 24> greeting{};
  require(dat_cr_accept(cr, handle, greeting.size(), greeting.data()), "dat_cr_accept");
}

void Trial::answer(DAT_EP_HANDLE ep) {
  for (int i = 0; i < kAnswers; ++i) {
    DAT_LMR_TRIPLET triplet = stage_.server_sources.triplet(0, 700);
    const DAT_DTO_COOKIE cookie = server_requests_.post();
    if (dat_ep_post_send(ep, 1, &triplet, cookie, DAT_COMPLETION_DEFAULT_FLAG) != DAT_SUCCESS)
      server_requests_.take_back(cookie);
  }
}

void Trial::received_by_server(const DAT_DTO_COMPLETION_EVENT_DATA& completion) {
  stage_.shared.complete(completion);
  const std::size_t buffer = stage_.take_shared(completion.user_cookie.as_64);
  if (completion.status == DAT_DTO_SUCCESS) {
    ASSERT_FALSE(sent_bytes_.empty()) << "a message that nobody sent";
    EXPECT_EQ(completion.transfered_length, sent_bytes_.front());
    EXPECT_TRUE(
        filled(stage_.shared_buffers.bytes().subspan(buffer * Stage::kMessageBytes, completion.transfered_length)));
    sent_bytes_.pop_front();
  }
  stage_.post_shared(buffer);
}

void Trial::post_more() {
  if (!client_end_.established() || client_end_.over() || leaving_) return;
  while (posted_ < traffic_.operations && client_requests_.open() < kInFlight)
    if (!post_one()) return;
  // Both sides must have had their messages, so that nothing is lost by the end.
  const bool finished = posted_ == traffic_.operations && client_requests_.open() == 0 && sent_bytes_.empty() &&
                        received_by_client_ == kAnswers;
  if (!finished) return;
  leaving_ = true;
  const DAT_RETURN rc = dat_ep_disconnect(client_ep_.get(), DAT_CLOSE_GRACEFUL_FLAG);
  EXPECT_TRUE(rc == DAT_SUCCESS || is_type(rc, DAT_INVALID_STATE)) << describe(rc);
}

bool Trial::post_one() {
  const std::size_t bytes = 1 + random_() % traffic_.bytes_max;
  const std::size_t slot = static_cast<std::size_t>(posted_) % Stage::kSlots;
  const int kind = posted_ % 3;
  const DAT_DTO_COOKIE cookie = client_requests_.post();
  DAT_LMR_TRIPLET source = stage_.client_sources.triplet(slot * Stage::kMessageBytes, bytes);
  DAT_LMR_TRIPLET sink = stage_.client_sinks.triplet(slot * Stage::kMessageBytes, bytes);
  DAT_RMR_TRIPLET remote = stage_.target.remote(0, bytes);
  DAT_RETURN rc = DAT_SUCCESS;
  if (kind == 0) {
    rc = dat_ep_post_send(client_ep_.get(), 1, &source, cookie, DAT_COMPLETION_DEFAULT_FLAG);
    if (rc == DAT_SUCCESS) sent_bytes_.push_back(bytes);
  } else if (kind == 1) {
    // It writes what is there already, so that Reads find the same at all times.
    rc = dat_ep_post_rdma_write(client_ep_.get(), 1, &source, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG);
  } else {
    std::ranges::fill(stage_.client_sinks.bytes().subspan(slot * Stage::kMessageBytes, bytes), std::byte{0});
    rc = dat_ep_post_rdma_read(client_ep_.get(), 1, &sink, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG);
    if (rc == DAT_SUCCESS) reads_.push_back({cookie.as_64, slot, bytes});
  }
  if (rc == DAT_SUCCESS) {
    ++posted_;
    return true;
  }
  EXPECT_TRUE(is_type(rc, DAT_INVALID_STATE)) << "of a connection that is over, and nothing else: " << describe(rc);
  client_requests_.take_back(cookie);
  return false;
}

std::string Trial::state() const {
  std::string stories;
  for (const auto& [handle, guest] : guests_) stories += fmt::format(" [{}]", guest.end.story());
  return fmt::format(
      "the client was told [{}], the server of {} requests:{}; open: {} receives and {} requests of the client, {} "
      "requests of the server; {} of {} shared receives are there; {} of {} operations posted, {} answers received",
      client_end_.story(), guests_.size(), stories, client_receives_.open(), client_requests_.open(),
      server_requests_.open(), stage_.srq.available(), +Stage::kShared, posted_, traffic_.operations,
      received_by_client_);
}

}  // namespace anydat::test
