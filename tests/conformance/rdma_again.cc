// SPDX-License-Identifier: BSD-3-Clause
// RDMA between the same two regions again and again: a provider may look for a shorter way for it, and every rule still
// holds on that.
#include <algorithm>

#include "rdma_fixture.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

constexpr int kOften = 1100;

class RdmaAgain : public RdmaTest {
 protected:
  void write_often(const Pair& pair, const Lmr& from, const Lmr& to, Caller caller = Caller::here()) {
    for (DAT_UINT64 i = 0; i < kOften; ++i) {
      require(rdma_write(pair.client, from.triplet(0, 8), to.remote(0, 8), i), "dat_ep_post_rdma_write");
      expect_completion(pair.client_evds.request.get(), DAT_DTO_SUCCESS, caller);
    }
  }
  Pair pair_that_has_written_often() {
    Pair pair = make_connected_pair();
    write_often(pair, local, target);
    return pair;
  }
  // One Write that is refused by the target, on a connection that has been used often.
  void expect_refused(const DAT_RMR_TRIPLET& remote, Caller caller = Caller::here()) {
    const Pair pair = pair_that_has_written_often();
    const DAT_RETURN rc = rdma_write(pair.client, local.triplet(0, remote.segment_length), remote, 1);
    expect_remote_refusal(pair, Rdma::kWrite, rc, caller);
  }
};

// The same rules for Reads, which have a way of their own.
class ReadAgain : public RdmaTest {
 protected:
  void read_often(const Pair& pair, const Lmr& to, const Lmr& from, Caller caller = Caller::here()) {
    for (DAT_UINT64 i = 0; i < kOften; ++i) {
      require(rdma_read(pair.client, to.triplet(0, 8), from.remote(0, 8), i), "dat_ep_post_rdma_read");
      expect_completion(pair.client_evds.request.get(), DAT_DTO_SUCCESS, caller);
    }
  }
};

TEST_P(ReadAgain, EveryLengthArrivesWhole) {
  // RDR-1, DTO-15, DTO-17, DTO-40
  const Pair pair = make_connected_pair();
  read_often(pair, local, target);
  fill_pattern(target.bytes(), 1);
  for (const std::size_t length : {1u, 7u, 8u, 9u, 63u, 64u, 65u, 4097u, 60000u}) {
    SCOPED_TRACE(testing::Message() << length << " bytes");
    std::fill(local.bytes().begin(), local.bytes().end(), std::byte{0x77});
    const std::size_t from = length % 7, to = 100 + length % 5;
    ASSERT_THAT(rdma_read(pair.client, local.triplet(to, length + 3), target.remote(from, length), length), Succeeds());
    const auto dto = expect_completion(pair.client_evds.request.get());
    EXPECT_EQ(dto.transfered_length, length);
    EXPECT_EQ(dto.user_cookie.as_64, length);
    const auto read = local.bytes().subspan(to, length);
    EXPECT_TRUE(std::equal(read.begin(), read.end(), target.bytes().begin() + static_cast<std::ptrdiff_t>(from)));
    const auto behind = local.bytes().subspan(to + length);
    EXPECT_TRUE(std::all_of(behind.begin(), behind.end(), [](std::byte byte) { return byte == std::byte{0x77}; }));
    EXPECT_EQ(local.bytes()[to - 1], std::byte{0x77});
  }
}

TEST_P(ReadAgain, LongOnesArriveWholeToo) {
  // RDR-1, DTO-17
  constexpr std::size_t kLong = 512 << 10;
  const Lmr source(server.ia, server.pz, 2 * kLong), sink(client.ia, client.pz, 2 * kLong);
  const Pair pair = make_connected_pair();
  read_often(pair, sink, source);
  fill_pattern(source.bytes(), 1);
  for (const std::size_t length : {kLong - 1, kLong, kLong + 1, 2 * kLong - 13}) {
    SCOPED_TRACE(testing::Message() << length << " bytes");
    std::fill(sink.bytes().begin(), sink.bytes().end(), std::byte{0x77});
    ASSERT_THAT(rdma_read(pair.client, sink.triplet(5, length), source.remote(3, length), length), Succeeds());
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, length);
    const auto read = sink.bytes().subspan(5, length), sent = source.bytes().subspan(3, length);
    EXPECT_TRUE(std::equal(read.begin(), read.end(), sent.begin()));
    EXPECT_EQ(sink.bytes()[4], std::byte{0x77});
    EXPECT_EQ(sink.bytes()[5 + length], std::byte{0x77});
  }
}

TEST_P(ReadAgain, TheSinkIsStillChecked) {
  // RDR-13, DTO-2, DTO-9, DTO-10, DTO-11, LMR-FREE-3
  const Pair pair = make_connected_pair();
  Lmr sink(client.ia, client.pz, 64);
  read_often(pair, sink, target);
  const Pz other(client.ia);
  const Lmr foreign(client.ia, other, sink.bytes());
  const Lmr unwritable(client.ia, client.pz, sink.bytes(), DAT_MEM_PRIV_LOCAL_READ_FLAG);
  EXPECT_THAT(rdma_read(pair.client, foreign.triplet(0, 8), target.remote(0, 8), 1), HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_THAT(rdma_read(pair.client, unwritable.triplet(0, 8), target.remote(0, 8), 1),
              HasType(DAT_PRIVILEGES_VIOLATION));
  EXPECT_THAT(rdma_read(pair.client, sink.triplet(0, 8), target.remote(0, 9), 1), HasType(DAT_LENGTH_ERROR));
  DAT_LMR_TRIPLET beyond = sink.triplet(56, 8);
  beyond.segment_length = 9;  // all of it counts, not only what is filled
  EXPECT_THAT(rdma_read(pair.client, beyond, target.remote(0, 8), 1), HasType(DAT_INVALID_PARAMETER));
  const DAT_LMR_TRIPLET gone = sink.triplet(0, 8);
  ASSERT_THAT(sink.free(), Succeeds());
  EXPECT_THAT(rdma_read(pair.client, gone, target.remote(0, 8), 1), HasType(DAT_PRIVILEGES_VIOLATION));
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
  expect_working(pair);
}

TEST_P(ReadAgain, TheSourceIsStillChecked) {
  // RDR-6, RDR-7, PROT-5, PROT-6, LMR-FREE-6
  const Pz other(server.ia);
  const Lmr foreign(server.ia, other, 64);
  const Lmr unreadable(server.ia, server.pz, 64, DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
  DAT_RMR_TRIPLET beyond = target.remote(kSize - 8, 8);
  beyond.segment_length = 9;
  DAT_RMR_TRIPLET before = target.remote(0, 8);
  before.target_address -= 1;
  for (const DAT_RMR_TRIPLET& remote : {foreign.remote(0, 8), unreadable.remote(0, 8), beyond, before}) {
    const Pair pair = make_connected_pair();
    read_often(pair, local, target);
    expect_remote_refusal(pair, Rdma::kRead, rdma_read(pair.client, local.triplet(0, 64), remote, 1));
  }
  const Pair pair = make_connected_pair();
  Lmr granted(server.ia, server.pz, 64);
  read_often(pair, local, granted);
  const DAT_RMR_TRIPLET gone = granted.remote(0, 8);
  ASSERT_THAT(granted.free(), Succeeds());
  expect_remote_refusal(pair, Rdma::kRead, rdma_read(pair.client, local.triplet(0, 8), gone, 1));
}

TEST_P(RdmaAgain, EveryLengthArrivesWhole) {
  // RDW-1, RDW-2, RDW-3, DTO-17
  const Pair pair = pair_that_has_written_often();
  fill_pattern(local.bytes(), 1);
  std::vector<std::size_t> lengths{31, 32, 33, 63, 64, 65, 127, 128, 200, 255, 256, 257, 1023, 1024, 1025, 4097, 60000};
  for (std::size_t length = 1; length <= 24; ++length) {
    lengths.push_back(length);
  }
  for (const std::size_t length : lengths) {
    SCOPED_TRACE(testing::Message() << length << " bytes");
    std::fill(target.bytes().begin(), target.bytes().end(), std::byte{0x77});
    const std::size_t from = length % 7, to = 100 + length % 5;
    ASSERT_THAT(rdma_write(pair.client, local.triplet(from, length), target.remote(to, length + 3), length),
                Succeeds());
    const auto dto = expect_completion(pair.client_evds.request.get());
    EXPECT_EQ(dto.transfered_length, length);
    EXPECT_EQ(dto.user_cookie.as_64, length);
    pass_message(pair);
    const auto written = target.bytes().subspan(to, length);
    EXPECT_TRUE(std::equal(written.begin(), written.end(), local.bytes().begin() + static_cast<std::ptrdiff_t>(from)));
    EXPECT_EQ(
        std::count(target.bytes().begin(), target.bytes().begin() + static_cast<std::ptrdiff_t>(to), std::byte{0x77}),
        static_cast<std::ptrdiff_t>(to));
    const auto behind = target.bytes().subspan(to + length);
    EXPECT_TRUE(std::all_of(behind.begin(), behind.end(), [](std::byte byte) { return byte == std::byte{0x77}; }));
  }
}

TEST_P(RdmaAgain, ArgumentsAreStillChecked) {
  // RDW-2, RDW-4, RDW-10, DTO-2, DTO-5, DTO-9, DTO-10, DTO-11, DTO-35
  const Pair pair = pair_that_has_written_often();
  const Pz other(client.ia);
  const auto same_memory = local.bytes().first(64);
  const Lmr foreign(client.ia, other, same_memory);
  const Lmr unreadable(client.ia, client.pz, same_memory, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  for (const DAT_LMR_TRIPLET& outside : {local.triplet(kSize - 1, 2), local.triplet(kSize, 1)}) {
    EXPECT_THAT(rdma_write(pair.client, outside, target.remote(0, 8), 1), HasType(DAT_INVALID_PARAMETER));
  }
  DAT_LMR_TRIPLET before = local.triplet(0, 8);
  before.virtual_address -= 1;
  EXPECT_THAT(rdma_write(pair.client, before, target.remote(0, 8), 1), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rdma_write(pair.client, foreign.triplet(), target.remote(0, 64), 1), HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_THAT(rdma_write(pair.client, unreadable.triplet(), target.remote(0, 64), 1),
              HasType(DAT_PRIVILEGES_VIOLATION));
  EXPECT_THAT(rdma_write(pair.client, local.triplet(0, 9), target.remote(0, 8), 1), HasType(DAT_LENGTH_ERROR));
  EXPECT_THAT(
      rdma_write(pair.client, local.triplet(0, 8), target.remote(0, 8), 1, static_cast<DAT_COMPLETION_FLAGS>(64)),
      HasType(DAT_INVALID_PARAMETER));
  DAT_LMR_TRIPLET segment = local.triplet(0, 8);
  const DAT_RMR_TRIPLET remote = target.remote(0, 8);
  for (const DAT_COUNT count : {-1, 1000}) {
    EXPECT_THAT(
        dat_ep_post_rdma_write(pair.client.get(), count, &segment, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG),
        HasType(DAT_INVALID_PARAMETER));
  }
  EXPECT_THAT(dat_ep_post_rdma_write(pair.client.get(), 1, nullptr, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_ep_post_rdma_write(pair.client.get(), 1, &segment, cookie(1), nullptr, DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_INVALID_PARAMETER));
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
  expect_working(pair);
}

TEST_P(RdmaAgain, ASourceThatHasBeenFreedIsRefused) {
  // LMR-FREE-3, DTO-11, DTO-2
  const Pair pair = make_connected_pair();
  Lmr source(client.ia, client.pz, 64);
  write_often(pair, source, target);
  const DAT_LMR_TRIPLET gone = source.triplet(0, 8);
  ASSERT_THAT(source.free(), Succeeds());
  EXPECT_THAT(rdma_write(pair.client, gone, target.remote(0, 8), 1), HasType(DAT_PRIVILEGES_VIOLATION));
  write_often(pair, local, target);
  EXPECT_THAT(rdma_write(pair.client, gone, target.remote(0, 8), 1), HasType(DAT_PRIVILEGES_VIOLATION));
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
}

TEST_P(RdmaAgain, TheContextZeroIsNoTarget) {
  // RDW-6: also where what has been used often has just been looked at anew, because a region has gone.
  const Pair pair = pair_that_has_written_often();
  {
    const Lmr other(client.ia, client.pz, 64);
  }
  DAT_RMR_TRIPLET nowhere = target.remote(0, 8);
  nowhere.rmr_context = 0;
  expect_remote_refusal(pair, Rdma::kWrite, rdma_write(pair.client, local.triplet(0, 8), nowhere, 1));
}

TEST_P(RdmaAgain, TheTargetIsStillChecked) {
  // RDW-6, RDW-8, PROT-5, PROT-6, PROT-8, LMR-FREE-6, LMR-FREE-8
  std::fill(local.bytes().begin(), local.bytes().end(), std::byte{0x99});
  std::vector<std::byte> memory(300, std::byte{0x42});
  const auto range = std::span(memory).subspan(100, 100);
  const Pz other(server.ia);
  const auto untouched = [&] {
    return std::all_of(memory.begin(), memory.end(), [](std::byte byte) { return byte == std::byte{0x42}; });
  };
  {
    const Lmr foreign(server.ia, other, range);
    const Lmr unwritable(server.ia, server.pz, range, DAT_MEM_PRIV_REMOTE_READ_FLAG);
    expect_refused(foreign.remote(0, 8));
    expect_refused(unwritable.remote(0, 8));
  }
  for (const auto& [offset, length] : {std::pair<std::ptrdiff_t, std::size_t>{-1, 2}, {93, 8}, {100, 1}, {0, 101}}) {
    SCOPED_TRACE(testing::Message() << length << " bytes at " << offset);
    const Pair pair = make_connected_pair();
    const Lmr granted(server.ia, server.pz, range);
    write_often(pair, local, granted);
    pass_message(pair);
    std::fill(memory.begin(), memory.end(), std::byte{0x42});
    const DAT_RMR_TRIPLET outside = remote_triplet(granted.rmr_context(), range.data() + offset, length);
    expect_remote_refusal(pair, Rdma::kWrite, rdma_write(pair.client, local.triplet(0, length), outside, 1));
    EXPECT_TRUE(untouched());
  }
  const Pair pair = make_connected_pair();
  Lmr granted(server.ia, server.pz, range);
  write_often(pair, local, granted);
  pass_message(pair);
  const DAT_RMR_TRIPLET gone = granted.remote(0, 8);
  ASSERT_THAT(granted.free(), Succeeds());
  std::fill(memory.begin(), memory.end(), std::byte{0x42});
  expect_remote_refusal(pair, Rdma::kWrite, rdma_write(pair.client, local.triplet(0, 8), gone, 1));
  EXPECT_TRUE(untouched());
}

TEST_P(RdmaAgain, ItStaysBehindWhatWasPostedBefore) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // DTO-40, DTO-43: a Send that waits for a buffer.
  const Pair pair = pair_that_has_written_often();
  pass_message(pair);
  const Lmr large(client.ia, client.pz, kLarge);
  fill_pattern(local.bytes().first(8), 1);
  fill_pattern(target.bytes().first(8), 2);
  post_large_send(pair.client, large, 1);
  ASSERT_THAT(rdma_write(pair.client, local.triplet(0, 8), target.remote(0, 8), 2), Succeeds());
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
  const Lmr sink(server.ia, server.pz, kLarge);
  DAT_LMR_TRIPLET to = sink.triplet();
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  for (const DAT_UINT64 number : {1u, 2u}) {
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, number);
  }
  expect_completion(pair.server_evds.recv.get());
  pass_message(pair);
  EXPECT_TRUE(has_pattern(target.bytes().first(8), 1));
}

TEST_P(RdmaAgain, SuppressedOnesCompleteSilently) {
  // DTO-30, DTO-40
  const Pair pair = pair_that_has_written_often();
  for (DAT_UINT64 i = 0; i < 20; ++i) {
    ASSERT_THAT(rdma_write(pair.client, local.triplet(0, 8), target.remote(0, 8), i, DAT_COMPLETION_SUPPRESS_FLAG),
                Succeeds());
  }
  ASSERT_THAT(rdma_write(pair.client, local.triplet(0, 8), target.remote(0, 8), 20), Succeeds());
  EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, 20u);
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
}

TEST_P(RdmaAgain, OtherRegionsAreNotMistakenForTheUsualOnes) {
  // RDW-1: in turn, and on and on.
  const Pair pair = pair_that_has_written_often();
  const Lmr second_local(client.ia, client.pz, kSize);
  const Lmr second_target(server.ia, server.pz, kSize);
  const Lmr* const sources[] = {&local, &second_local};
  const Lmr* const targets[] = {&target, &second_target};
  for (std::size_t i = 0; i < 40; ++i) {
    SCOPED_TRACE(i);
    const std::size_t run = 1 + i % 4;
    const Lmr& from = *sources[i / run % 2];
    const Lmr& to = *targets[i / 2 % 2];
    fill_pattern(from.bytes().subspan(8 * i, 8), i);
    ASSERT_THAT(rdma_write(pair.client, from.triplet(8 * i, 8), to.remote(16 * i, 8), i), Succeeds());
    expect_completion(pair.client_evds.request.get());
    pass_message(pair);
    EXPECT_TRUE(has_pattern(to.bytes().subspan(16 * i, 8), i));
  }
}

TEST_P(RdmaAgain, TheNextConnectionOfTheEndpointStartsAnew) {
  // EP-RESET-1, RDW-9: what one connection was allowed, the next one may not be.
  const Pair pair = make_connected_pair();
  write_often(pair, local, target);
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_terminal_event(pair.client_evds.connect.get(), pair.client.get());
  expect_terminal_event(pair.server_evds.connect.get(), pair.server.get());
  ASSERT_THAT(rdma_write(pair.client, local.triplet(0, 8), target.remote(0, 8), 1), Succeeds());
  expect_completion(pair.client_evds.request.get(), DAT_DTO_ERR_FLUSHED);
  ASSERT_THAT(dat_ep_reset(pair.client.get()), Succeeds());
  EXPECT_THAT(rdma_write(pair.client, local.triplet(0, 8), target.remote(0, 8), 1), HasType(DAT_INVALID_STATE));
  const Pz other(server.ia);
  const OwnEvds evds(server);
  const Ep stranger(server.ia, other, evds, default_ep_attr());
  connect_pair(server, stranger.get(), pair.client.get());
  fill_pattern(local.bytes().first(8), 1);
  fill_pattern(target.bytes().first(8), 2);
  const DAT_RETURN rc = rdma_write(pair.client, local.triplet(0, 8), target.remote(0, 8), 1);
  if (rc == DAT_SUCCESS) {
    expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT);
    expect_terminal_event(pair.client_evds.connect.get(), pair.client.get());
  }
  expect_terminal_event(evds.connect.get(), stranger.get());
  EXPECT_TRUE(has_pattern(target.bytes().first(8), 2));
}

ANYDAT_OVER_ALL_WIRES(RdmaAgain);
ANYDAT_OVER_ALL_WIRES(ReadAgain);

}  // namespace
}  // namespace anydat::test
