// SPDX-License-Identifier: BSD-3-Clause
#include "wire/sim_fixture.h"

#include <ostream>

#include "dapl/ep.h"
#include "dapl/ia.h"
#include "dapl/object.h"
#include "nic/soft/adapter.h"

namespace anydat::test {

nic::soft::sim::Network::End end_of(const Ep& ep) {
  dapl::Object* const object = dapl::HandleTable::find(ep.get())->object.load();
  auto& its = static_cast<dapl::Ep&>(*object);
  return {&static_cast<nic::soft::SoftAdapter&>(its.ia().nic()),
          &static_cast<nic::soft::SoftQueuePair&>(its.queue_pair())};
}

// Connections are made as ever, and then their streams are exchanged.
const Wire& local_wire() {
  static const Wire wire{.name = "sim", .ia_name = "soft-lo", .env = {{"DAT_WIRE", "shm"}}};
  return wire;
}

void SimTest::begin(std::uint64_t seed, std::size_t payload_max) {
  network = std::make_unique<nic::soft::sim::Network>(seed, payload_max);
}

void SimTest::make_buffers(int count) {
  memory = std::make_unique<Lmr>(server.ia, server.pz, static_cast<std::size_t>(count) * kBytes);
}

void SimTest::post_to_srq(const Srq& srq, int buffer) {
  DAT_LMR_TRIPLET segment = memory->triplet(static_cast<std::size_t>(buffer) * kBytes, kBytes);
  DAT_DTO_COOKIE cookie{};
  cookie.as_64 = static_cast<DAT_UINT64>(buffer);
  require(dat_srq_post_recv(srq.get(), 1, &segment, cookie), "dat_srq_post_recv");
}

void SimTest::post_to_ep(const Ep& ep, int buffer) {
  DAT_LMR_TRIPLET segment = memory->triplet(static_cast<std::size_t>(buffer) * kBytes, kBytes);
  DAT_DTO_COOKIE cookie{};
  cookie.as_64 = static_cast<DAT_UINT64>(buffer);
  require(dat_ep_post_recv(ep.get(), 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
}

std::span<const std::byte> SimTest::buffer(DAT_DTO_COOKIE cookie) const {
  return memory->bytes().subspan(cookie.as_64 * kBytes, kBytes);
}

Connection SimTest::connect(const Srq& srq) {
  Connection pair = connect_pair(server, srq, client);
  network->join(end_of(pair.server), end_of(pair.client));
  return pair;
}

Connection SimTest::connect_plain() {
  Connection pair = connect_pair(server, client);
  network->join(end_of(pair.server), end_of(pair.client));
  return pair;
}

std::byte SimTest::byte_of(int from, int number, std::size_t index) {
  return static_cast<std::byte>(static_cast<std::size_t>(from) * 89 + static_cast<std::size_t>(number) * 31 +
                                index * 7);
}

// The simulated network takes a copy at once, so one piece of memory serves all.
void SimTest::send(const Connection& connection, int from, int number, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) outgoing.bytes()[i] = byte_of(from, number, i);
  DAT_LMR_TRIPLET segment = outgoing.triplet(0, length);
  require(dat_ep_post_send(connection.client.get(), 1, &segment, {}, DAT_COMPLETION_SUPPRESS_FLAG), "dat_ep_post_send");
}

bool SimTest::holds(DAT_DTO_COOKIE cookie, int from, int number, std::size_t length) const {
  const std::span<const std::byte> bytes = buffer(cookie);
  for (std::size_t i = 0; i < length; ++i) {
    if (bytes[i] != byte_of(from, number, i)) return false;
  }
  return true;
}

SimTest::RecvInfo SimTest::recv_query(const Ep& ep) {
  RecvInfo info{-1, -1};
  require(dat_ep_recv_query(ep.get(), &info.allocated, &info.span), "dat_ep_recv_query");
  return info;
}

void SimTest::disconnect(const Connection& connection) {
  require(dat_ep_disconnect(connection.client.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  network->run();
  for (Side* side : {&client, &server}) {
    EXPECT_TRUE(wait_event(side->connect.get()));
  }
}

}  // namespace anydat::test
