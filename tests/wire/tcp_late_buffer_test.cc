// SPDX-License-Identifier: BSD-3-Clause
// A message over TCP that has waited for its buffer for just as long as nothing behind it is looked at: the buffer is
// posted at that moment, and found by the look before its endpoint is called.
#include <gtest/gtest.h>

#include <chrono>

#include "support/counter.h"
#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using BufferClock = std::chrono::steady_clock;

// From a message's arrival to the look behind it (BufferWait's kPatience).
constexpr std::chrono::microseconds kPatienceOfTcp{1000};
constexpr std::size_t kConfirmedBytes = 16'000;  // whose delivery the sender waits for

class TcpLateBuffer : public testing::Test {
 protected:
  // The peer's next message finds its buffer in that way, in most of the rounds; in the others it is called, or was
  // already taken in.
  void receive_late(Connection& connection, Side& server, Side& client) {
    const Lmr source(client.ia, client.pz, kConfirmedBytes);
    const Lmr sink(server.ia, server.pz, kConfirmedBytes);
    DAT_LMR_TRIPLET segment = source.triplet();
    const std::uint64_t waits = counter(connection.server.get(), "buffer_waits");
    require(dat_ep_post_send(connection.client.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_send");
    ASSERT_TRUE(eventually([&] {
      look(server);
      return counter(connection.server.get(), "buffer_waits") > waits;
    }));
    const auto due = BufferClock::now() + kPatienceOfTcp;
    // Who polls has the library's own thread stay away, and this pause is the last.
    while (BufferClock::now() < due - std::chrono::microseconds(100)) look(server);
    while (BufferClock::now() < due + std::chrono::microseconds(20)) {
    }
    segment = sink.triplet();
    require(dat_ep_post_recv(connection.server.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_recv");
    expect_completion(server.recv.get(), DAT_DTO_SUCCESS);
  }

 private:
  // Not so often that the clock is not looked at each time.
  static void look(Side& server) {
    EXPECT_FALSE(poll_event(server.recv.get()));
    const auto next = BufferClock::now() + std::chrono::microseconds(20);
    while (BufferClock::now() < next) {
    }
  }
};

void cut(Connection& connection) {
  for (const Ep* ep : {&connection.server, &connection.client}) dat_ep_disconnect(ep->get(), DAT_CLOSE_ABRUPT_FLAG);
}

TEST_F(TcpLateBuffer, ItsSenderIsTold) {
  Side server(tcp_wire());
  Side client(tcp_wire());
  Connection connection = connect_pair(server, client);
  for (int i = 0; i < 20; ++i) {
    receive_late(connection, server, client);
    ASSERT_TRUE(wait_event(client.request.get())) << "the message has been delivered, and its sender waits";
  }
  cut(connection);
}

// SRQ-ARR-4: the limit is for messages that have none.
TEST_F(TcpLateBuffer, ItsConnectionIsNotTimedOut) {
  Wire impatient = tcp_wire();
  impatient.env["DAT_RNR_TIMEOUT_MS"] = "100";
  Side server(impatient);
  Side client(tcp_wire());
  Connection connection = connect_pair(server, client);
  for (int i = 0; i < 5; ++i) {
    receive_late(connection, server, client);
    const auto end = wait_event(server.connect.get(), std::chrono::milliseconds(250));
    ASSERT_FALSE(end) << event_name(end->event_number);
    drain(client.request.get());
  }
  cut(connection);
}

}  // namespace
}  // namespace anydat::test
