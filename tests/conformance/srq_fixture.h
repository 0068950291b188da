// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the shared receive queue have in common: a server that owns SRQs and a client that sends to them.
#pragma once

#include <dat/udat.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <vector>

#include "half_sender.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {

DAT_DTO_COOKIE cookie(DAT_UINT64 value);

// Fills memory with bytes that depend on `seed` and position, and recognises them again.
void fill_pattern(std::span<std::byte> memory, DAT_UINT64 seed);
bool has_pattern(std::span<const std::byte> memory, DAT_UINT64 seed);

// The two counts of one query.
struct Counts {
  DAT_COUNT available;
  DAT_COUNT outstanding;
  bool operator==(const Counts&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counts& counts);
Counts counts(const Srq& srq);

// What dat_ep_recv_query says.
struct Held {
  DAT_COUNT buffers;
  DAT_COUNT span;
  bool operator==(const Held&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Held& held);
Held held(const Ep& ep);
// No buffers, as far as the adapter can tell: one that cannot says so (EP-RQ-13).
bool holds_none(const Held& held);
// Whether endpoints have high watermarks: not over an adapter that cannot tell what they hold (ATTR-1).
bool watermarks_supported(const Ia& ia);

// Receive buffers of equal size in one LMR; buffer i is posted with cookie i.
class Buffers {
 public:
  Buffers(const Ia& ia, const Pz& pz, int count, std::size_t bytes);

  DAT_RETURN try_post(const Srq& srq, int index) const;
  void post(const Srq& srq, int first, int count) const;  // throws if one is refused
  void post(const Ep& ep, int first, int count) const;    // to a plain endpoint
  std::span<std::byte> operator[](int index) const;
  DAT_LMR_TRIPLET triplet(int index) const;
  int count() const { return count_; }
  const Lmr& lmr() const { return lmr_; }

 private:
  int count_;
  std::size_t bytes_;
  Lmr lmr_;
};

// The next event of the async EVD must be the low-watermark event of `srq`, or the soft-watermark event of `ep`.
void expect_low_watermark(const Side& side, const Srq& srq, Caller caller = Caller::here());
void expect_soft_watermark(const Side& side, const Ep& ep, Caller caller = Caller::here());

// A client that posts messages and then stops, so that those too large to travel at once stay incomplete: the endpoint
// that takes buffers for them holds the buffers until the client goes on or dies. It is a process of its own, or, where
// a receiver could help itself to the messages of a process that stands still, a sender that is played by hand.
//
// The constructor connects it to `ep` (an endpoint of `server`) and returns when every message has been posted and the
// client stands still. Messages up to kSmall bytes arrive whole; of those of kLarge bytes the beginning at most.
class StoppedSender {
 public:
  static constexpr std::size_t kSmall = 32;
  static constexpr std::size_t kLarge = 64 * 1024;

  StoppedSender(Side& server, const Ep& ep, const Wire& wire, int small, int large, std::size_t large_bytes = kLarge);

  void resume();  // the rest of the data follows
  void kill();    // the connection breaks

 private:
  void begin_process(Side& server, const Ep& ep, const Wire& wire, int small, int large, std::size_t large_bytes);
  void begin_by_hand(Side& server, const Ep& ep, int small, int large, std::size_t large_bytes);

  std::optional<PeerProcess> process_;
  std::optional<HalfSender> by_hand_;
};

// True once `expected` buffers are held by the endpoint.
bool eventually_held(const Ep& ep, DAT_COUNT expected);

class SrqTest : public testing::TestWithParam<Wire> {
 protected:
  static constexpr int kBuffers = 64;
  static constexpr std::size_t kBytes = 256;

  // Posts a Send of `length` bytes with the pattern `number` and the cookie `number`.
  void send(const Ep& ep, DAT_UINT64 number, std::size_t length = 32,
            DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG);
  // The same, and waits for its completion at the client.
  void send_and_wait(const Ep& ep, DAT_UINT64 number, std::size_t length = 32);

  // Sends on `connection` and reaps the receive: one buffer of the SRQ has then been used.
  DAT_DTO_COMPLETION_EVENT_DATA pass_message(const Connection& connection, DAT_UINT64 number = 1,
                                             std::size_t length = 32);

  // Waits until the server endpoint has taken buffers down to `available` and completed all it took. The completions
  // are then on the recv EVD, unreaped, or about to be: an endpoint no longer holds a buffer when its event can be
  // reaped.
  void expect_completed(const Srq& srq, const Ep& ep, DAT_COUNT available, Caller caller = Caller::here());

  Side server{GetParam()};
  Side client{GetParam()};
  Buffers buffers{server.ia, server.pz, kBuffers, kBytes};
  Lmr source{client.ia, client.pz, kBuffers* kBytes};
};

// Buffers large enough for StoppedSender's large messages.
class SrqHoldingTest : public SrqTest {
 protected:
  void SetUp() override;

  static constexpr int kLargeBuffers = 12;
  Buffers large{server.ia, server.pz, kLargeBuffers, StoppedSender::kLarge};
};

}  // namespace anydat::test

#define ANYDAT_OVER_ALL_WIRES(suite) INSTANTIATE_TEST_SUITE_P(Wires, suite, testing::ValuesIn(all_wires()), wire_name)
#define ANYDAT_OVER_ONE_WIRE(suite) INSTANTIATE_TEST_SUITE_P(Wires, suite, testing::ValuesIn(one_wire()), wire_name)
