// SPDX-License-Identifier: BSD-3-Clause
#include "srq_traffic.h"
#include "support/properties.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>

namespace anydat::test {
namespace {

// Runs `work` and returns the message of the exception that ended it, if one did: it must not leave a thread.
template <typename Work>
std::string trouble_in(Work work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace

SrqTraffic::SrqTraffic(Side& server, Side& client, const Srq& srq, const Shape& shape)
    : srq_(srq),
      shape_(shape),
      recv_(server.ia, DAT_EVD_DTO_FLAG, 4 * shape.buffers + 64),
      request_(client.ia, DAT_EVD_DTO_FLAG, 2 * static_cast<DAT_COUNT>(kWindow) * shape.connections + 64),
      buffers_(server.ia, server.pz, shape.buffers, shape.max_bytes),
      source_(client.ia, client.pz, static_cast<std::size_t>(shape.connections) * kWindow * shape.max_bytes),
      posted_(static_cast<std::size_t>(shape.buffers), true),
      expected_(static_cast<std::size_t>(shape.connections)),
      sent_(static_cast<std::size_t>(shape.connections)),
      completed_(static_cast<std::size_t>(shape.connections)),
      messages_wait_(anydat::test::messages_wait(server.ia)),
      unclaimed_(shape.buffers) {
  for (int i = 0; i < shape.connections; ++i) {
    const EpEvds at_server{.recv = recv_.get(), .request = server.request.get(), .connect = server.connect.get()};
    const EpEvds at_client{.recv = client.recv.get(), .request = request_.get(), .connect = client.connect.get()};
    connections_.push_back({.server = Ep(server.ia, server.pz, at_server, srq, default_srq_ep_attr()),
                            .client = Ep(client.ia, client.pz, at_client, default_ep_attr())});
    connect_pair(server, connections_.back().server.get(), connections_.back().client.get());
    by_server_ep_[connections_.back().server.get()] = static_cast<std::uint32_t>(i);
  }
  buffers_.post(srq, 0, shape.buffers);
}

void SrqTraffic::run(int per_connection, const std::function<void()>& beside) {
  std::atomic<bool> done = false;
  std::string beside_trouble;
  std::string send_trouble;
  std::string receive_trouble;
  std::thread besides([&] {
    beside_trouble = trouble_in([&] {
      // At least once, however short the traffic is.
      for (bool last = false; beside && !last;) {
        last = done;
        beside();
      }
    });
  });
  std::thread sender([&] { send_trouble = trouble_in([&] { send_all(per_connection); }); });
  receive_trouble = trouble_in([&] {
    for (int i = 0; i < per_connection * shape_.connections; ++i) {
      receive_one();
    }
  });
  sender.join();
  done = true;
  besides.join();
  EXPECT_EQ(send_trouble, "");
  EXPECT_EQ(beside_trouble, "");
  if (!receive_trouble.empty()) {
    throw std::runtime_error(receive_trouble);
  }
  EXPECT_FALSE(poll_event(recv_.get())) << "more completions than messages";
  EXPECT_EQ(counts(srq_), (Counts{.available = shape_.buffers, .outstanding = shape_.buffers}));
}

std::size_t SrqTraffic::length_of(std::uint32_t connection, std::uint32_t number) const {
  std::minstd_rand random(shape_.seed * 7919 + connection * 104729 + number * 31 + 1);
  random.discard(2);
  return sizeof(Header) + random() % (shape_.max_bytes - sizeof(Header) + 1);
}

bool SrqTraffic::may_send(std::uint32_t connection) {
  if (sent_[connection] - completed_[connection] >= kWindow) {
    return false;
  }
  if (messages_wait_) {
    return true;
  }
  if (unclaimed_ <= 0) {
    return false;
  }
  --unclaimed_;
  return true;
}

void SrqTraffic::send_all(int per_connection) {
  std::vector<std::uint32_t> goal;
  for (const std::uint32_t sent : sent_) {
    goal.push_back(sent + static_cast<std::uint32_t>(per_connection));
  }
  while (completed_ != goal) {
    for (std::uint32_t i = 0; i < sent_.size(); ++i) {
      while (sent_[i] != goal[i] && may_send(i)) {
        send_one(i, sent_[i]);
        ++sent_[i];
      }
    }
    if (sent_ == completed_) {
      if (!eventually([&] { return unclaimed_ > 0; })) {
        throw std::runtime_error("no buffer comes back");
      }
      continue;
    }
    // The cookie of a Send is its connection.
    const auto dto = expect_completion(request_.get());
    ++completed_.at(dto.user_cookie.as_64);
  }
}

void SrqTraffic::send_one(std::uint32_t connection, std::uint32_t number) {
  const std::size_t length = length_of(connection, number);
  const std::size_t offset = (std::size_t{connection} * kWindow + number % kWindow) * shape_.max_bytes;
  const std::span<std::byte> message = source_.bytes().subspan(offset, length);
  const Header header{.connection = connection, .number = number, .length = length};
  std::memcpy(message.data(), &header, sizeof(header));
  fill_pattern(message.subspan(sizeof(header)), std::uint64_t{connection} << 32 | number);
  DAT_LMR_TRIPLET segment = source_.triplet(offset, length);
  require(dat_ep_post_send(connections_[connection].client.get(), 1, &segment, cookie(connection),
                           DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_send");
}

void SrqTraffic::receive_one() {
  const auto dto = expect_completion(recv_.get());
  const DAT_UINT64 buffer = dto.user_cookie.as_64;
  if (buffer >= posted_.size() || !posted_[buffer]) {
    throw std::runtime_error("a completion carries the cookie of no posted buffer");
  }
  posted_[buffer] = false;
  check(dto);
  buffers_.post(srq_, static_cast<int>(buffer), 1);
  posted_[buffer] = true;
  ++unclaimed_;
}

void SrqTraffic::check(const DAT_DTO_COMPLETION_EVENT_DATA& dto) {
  const std::uint32_t connection = by_server_ep_.at(dto.ep_handle);
  const std::uint32_t number = expected_[connection]++;
  const std::span<std::byte> memory = buffers_[static_cast<int>(dto.user_cookie.as_64)];
  Header header{};
  std::memcpy(&header, memory.data(), sizeof(header));
  EXPECT_EQ(header.connection, connection) << "a message came on the endpoint of another connection";
  EXPECT_EQ(header.number, number) << "messages of connection " << connection << " out of order";
  EXPECT_EQ(dto.transfered_length, length_of(connection, number));
  EXPECT_EQ(header.length, dto.transfered_length);
  const auto rest = memory.subspan(sizeof(header), length_of(connection, number) - sizeof(header));
  EXPECT_TRUE(has_pattern(rest, std::uint64_t{connection} << 32 | number)) << "bytes changed on the way";
}

}  // namespace anydat::test
