// SPDX-License-Identifier: BSD-3-Clause
// Endpoints of the public API whose messages go through a simulated network.
#pragma once

#include <dat/udat.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "wire/sim/network.h"
#include "support/dat_fixture.h"

namespace anydat::test {

nic::soft::sim::Network::End end_of(const Ep& ep);
inline nic::soft::SoftQueuePair& queue_pair_of(const Ep& ep) {
  return *end_of(ep).queue_pair;
}

const Wire& local_wire();

// A server with one shared receive queue and any number of clients.
class SimTest : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1024;  // of a receive buffer, and at most of a message

  explicit SimTest(const Wire& wire_of_server = local_wire()) : server(wire_of_server) {}

  // What the test is about is decided by chance from here on, and by where messages are cut.
  void begin(std::uint64_t seed, std::size_t payload_max = 8);
  // Receives are posted to `srq`, or to endpoints, from one heap of memory.
  void make_buffers(int count);
  void post_to_srq(const Srq& srq, int buffer);
  void post_to_ep(const Ep& ep, int buffer);
  std::span<const std::byte> buffer(DAT_DTO_COOKIE cookie) const;

  Connection connect(const Srq& srq);
  Connection connect_plain();
  // Sends message `number` of that client: its length and its bytes follow from both.
  void send(const Connection& connection, int client, int number, std::size_t length);
  static std::byte byte_of(int client, int number, std::size_t index);
  bool holds(DAT_DTO_COOKIE buffer, int client, int number, std::size_t length) const;

  struct RecvInfo {
    DAT_COUNT allocated;
    DAT_COUNT span;
    friend bool operator==(const RecvInfo&, const RecvInfo&) = default;
  };
  static RecvInfo recv_query(const Ep& ep);

  // Ends that are not in order are expected by the test itself; this ends the others.
  void disconnect(const Connection& connection);

  std::unique_ptr<nic::soft::sim::Network> network;
  Side server;
  Side client{local_wire()};
  std::unique_ptr<Lmr> memory;
  Lmr outgoing{client.ia, client.pz, kBytes};
};

}  // namespace anydat::test
