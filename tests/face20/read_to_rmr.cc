// SPDX-License-Identifier: BSD-3-Clause
// RDMA Reads whose sink is a window of the reader (dat_ep_post_rdma_read_to_rmr), over each wire.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "face20/fixture.h"

namespace anydat::test {
namespace {

constexpr std::size_t kBytes = 64 << 10;

class Dat2ReadToRmr : public Dat2 {
 protected:
  void SetUp() override {
    connection.emplace(connect_pair(server, client));
    require(dat_rmr_create(client.pz.get(), &rmr), "dat_rmr_create");
    for (std::size_t i = 0; i < kBytes; ++i) source.bytes()[i] = static_cast<std::byte>(i * 11 + 3);
    const DAT_RETURN rc = read(bind(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 0, 64), 64);
    if (DAT_GET_TYPE(rc) == DAT_MODEL_NOT_SUPPORTED) GTEST_SKIP() << "the adapter has none";
    require(rc, "dat_ep_post_rdma_read_to_rmr");
    (void)expect_completion(client.request.get());
  }
  void TearDown() override {
    EXPECT_THAT(dat_rmr_free(rmr), Succeeds());
    connection.reset();
  }
  // The client's window onto a part of its own memory, as it names it.
  DAT_RMR_TRIPLET bind(DAT_MEM_PRIV_FLAGS rights, std::size_t offset, std::size_t length,
                       DAT_VA_TYPE type = DAT_VA_TYPE_VA) {
    const DAT_LMR_TRIPLET part = sink.triplet(offset, length);
    DAT_RMR_TRIPLET window{};
    require(dat_rmr_bind(rmr, sink.get(), &part, rights, type, connection->client.get(), {},
                         DAT_COMPLETION_DEFAULT_FLAG, &window.rmr_context),
            "dat_rmr_bind");
    (void)expect_event(client.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
    window.virtual_address = type == DAT_VA_TYPE_ZB ? 0 : part.virtual_address;
    window.segment_length = part.segment_length;
    return window;
  }
  DAT_RETURN read(const DAT_RMR_TRIPLET& into, std::size_t bytes,
                  DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG) const {
    const DAT_RMR_TRIPLET from = source.remote(0, bytes);
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = 99;
    return dat_ep_post_rdma_read_to_rmr(connection->client.get(), &into, cookie, &from, flags);
  }

  std::optional<Connection> connection;
  DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
  Lmr source{server.ia, server.pz, kBytes};
  Lmr sink{client.ia, client.pz, kBytes};
};
INSTANTIATE_TEST_SUITE_P(Wires, Dat2ReadToRmr, testing::ValuesIn(all_wires()), wire_name);

// D2-READRMR-1, D2-READRMR-3, D2-READRMR-4, D2-EVT-6: short and long; bytes beyond the remote length stay.
TEST_P(Dat2ReadToRmr, TheBytesAreInTheWindow) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{5000}, std::size_t{40000}}) {
    for (const DAT_VA_TYPE type : {DAT_VA_TYPE_VA, DAT_VA_TYPE_ZB}) {
      if (type == DAT_VA_TYPE_ZB && client.ia.attributes().zb_supported != DAT_TRUE) continue;
      std::memset(sink.bytes().data(), 0, kBytes);
      const DAT_RMR_TRIPLET window = bind(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 128, bytes + 16, type);
      ASSERT_THAT(read(window, bytes), Succeeds());
      const DAT_DTO_COMPLETION_EVENT_DATA dto = expect_completion(client.request.get());
      EXPECT_EQ(dto.operation, DAT_DTO_RDMA_READ);
      EXPECT_EQ(dto.transfered_length, bytes);
      EXPECT_EQ(dto.user_cookie.as_64, 99u);
      EXPECT_EQ(dto.rmr_context, 0u);
      EXPECT_EQ(std::memcmp(sink.bytes().data() + 128, source.bytes().data(), bytes), 0);
      for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(sink.bytes()[128 + bytes + i], std::byte{0});
    }
  }
}

// D2-READRMR-2, D2-READRMR-3: what is refused, and nothing is posted.
TEST_P(Dat2ReadToRmr, TheWindowMustAllowIt) {
  const DAT_EP_HANDLE ep = connection->client.get();
  DAT_RMR_TRIPLET window = bind(DAT_MEM_PRIV_REMOTE_READ_FLAG, 0, 64);
  EXPECT_THAT(read(window, 64), HasType(DAT_PRIVILEGES_VIOLATION)) << "it lends no right to write";
  const DAT_RMR_TRIPLET old = window;
  window = bind(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 0, 64);
  EXPECT_THAT(read(old, 64), HasType(DAT_PRIVILEGES_VIOLATION)) << "it has been bound anew";
  EXPECT_THAT(read(sink.remote(0, 64), 64), HasType(DAT_PRIVILEGES_VIOLATION)) << "a region is no window";
  EXPECT_THAT(read(window, 65), HasType(DAT_LENGTH_ERROR));
  DAT_RMR_TRIPLET outside = window;
  ++outside.virtual_address;
  const DAT_RETURN rc = read(outside, 8);
  EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(rc, HasSubtype(DAT_INVALID_ARG2));
  const DAT_RMR_TRIPLET from = source.remote(0, 8);
  EXPECT_THAT(dat_ep_post_rdma_read_to_rmr(ep, nullptr, {}, &from, DAT_COMPLETION_DEFAULT_FLAG),
              HasSubtype(DAT_INVALID_ARG2));
  EXPECT_THAT(dat_ep_post_rdma_read_to_rmr(ep, &window, {}, nullptr, DAT_COMPLETION_DEFAULT_FLAG),
              HasSubtype(DAT_INVALID_ARG4));
  EXPECT_THAT(read(window, 8, static_cast<DAT_COMPLETION_FLAGS>(0x4000)), HasType(DAT_INVALID_PARAMETER));
  const Pz other(client.ia);
  const Ep elsewhere(client.ia, other, evds_of(client), default_ep_attr());
  const Ep partner(server);
  connect_pair(server, partner.get(), elsewhere.get());
  EXPECT_THAT(dat_ep_post_rdma_read_to_rmr(elsewhere.get(), &window, {}, &from, DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_PROTECTION_VIOLATION));
  EXPECT_FALSE(poll_event(client.request.get()));
}

// D2-READRMR-5: the window has gone when the Read comes to its turn.
TEST_P(Dat2ReadToRmr, AWindowThatHasGoneTakesNothing) {
  const DAT_RMR_TRIPLET window = bind(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 0, kBytes);
  std::memset(sink.bytes().data(), 0, kBytes);
  ASSERT_THAT(read(window, kBytes), Succeeds());
  ASSERT_THAT(dat_rmr_free(std::exchange(rmr, DAT_HANDLE_NULL)), Succeeds());
  const std::vector<std::byte> after(sink.bytes().begin(), sink.bytes().end());
  const DAT_EVENT event = expect_event(client.request.get(), DAT_DTO_COMPLETION_EVENT);
  const DAT_DTO_COMPLETION_STATUS status = event.event_data.dto_completion_event_data.status;
  EXPECT_TRUE(status == DAT_DTO_SUCCESS || status == DAT_DTO_ERR_LOCAL_PROTECTION) << status;
  EXPECT_TRUE(std::equal(after.begin(), after.end(), sink.bytes().begin())) << "bytes came after the window's end";
  require(dat_rmr_create(client.pz.get(), &rmr), "dat_rmr_create");
}

// D2-READRMR-5: bound anew by another endpoint while the Read is under way. Once that is told, what the window showed
// before is no longer written to.
TEST_P(Dat2ReadToRmr, AWindowThatIsBoundAnewTakesNothing) {
  const Connection other = connect_pair(server, client);
  for (int i = 0; i < 50; ++i) {
    const DAT_RMR_TRIPLET window = bind(DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 0, kBytes);
    std::memset(sink.bytes().data(), 0, kBytes);
    ASSERT_THAT(read(window, kBytes), Succeeds());
    const DAT_LMR_TRIPLET part = sink.triplet(0, 8);
    DAT_RMR_CONTEXT key = 0;
    ASSERT_THAT(dat_rmr_bind(rmr, sink.get(), &part, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, other.client.get(),
                             {}, DAT_COMPLETION_DEFAULT_FLAG, &key),
                Succeeds());
    bool read_told = false;
    DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS;
    std::vector<std::byte> after;
    for (int told = 0; told < 2; ++told) {
      const DAT_EVENT event = wait_event(client.request.get()).value();
      if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
        read_told = true;
        status = event.event_data.dto_completion_event_data.status;
      } else if (!read_told) {
        after.assign(sink.bytes().begin(), sink.bytes().end());
      }
    }
    EXPECT_TRUE(after.empty() || std::equal(after.begin(), after.end(), sink.bytes().begin())) << "at " << i;
    if (status == DAT_DTO_SUCCESS) continue;
    EXPECT_EQ(status, DAT_DTO_ERR_LOCAL_PROTECTION);
    connection.reset();
    while (poll_event(client.connect.get()) || poll_event(server.connect.get())) continue;
    connection.emplace(connect_pair(server, client));
  }
}

// D2-READRMR-5: the same while another thread is posting the Read, which may be copying by itself.
TEST_P(Dat2ReadToRmr, AWindowThatIsBoundAnewWaitsForPostsThatReadIntoIt) {
  constexpr std::size_t kLong = 1 << 20;
  const Lmr from(server.ia, server.pz, kLong);
  Lmr into(client.ia, client.pz, kLong);
  DAT_RMR_HANDLE made = DAT_HANDLE_NULL;
  require(dat_rmr_create(client.pz.get(), &made), "dat_rmr_create");
  const Owner<dat_rmr_free> moved(made);
  const Evd binds(client.ia, static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG));
  const Ep binder(client.ia, client.pz, {client.recv.get(), binds.get(), client.connect.get()}, default_ep_attr());
  const Ep partner(server);
  connect_pair(server, partner.get(), binder.get());
  const auto bind_to = [&](std::size_t bytes) {
    const DAT_LMR_TRIPLET part = into.triplet(0, bytes);
    DAT_RMR_TRIPLET window = into.remote(0, bytes);
    require(dat_rmr_bind(moved.get(), into.get(), &part, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA, binder.get(),
                         {}, DAT_COMPLETION_DEFAULT_FLAG, &window.rmr_context),
            "dat_rmr_bind");
    (void)expect_event(binds.get(), DAT_RMR_BIND_COMPLETION_EVENT);
    return window;
  };
  constexpr std::byte kMine{0x5d};
  for (int i = 0; i < 60; ++i) {
    const DAT_RMR_TRIPLET window = bind_to(kLong);
    const DAT_RMR_TRIPLET there = from.remote(0, kLong);
    std::atomic<bool> posting = false, posted = false;
    DAT_RETURN rc = DAT_SUCCESS;
    std::thread reader([&] {
      posting = true;
      rc = dat_ep_post_rdma_read_to_rmr(connection->client.get(), &window, {}, &there, DAT_COMPLETION_DEFAULT_FLAG);
      posted = true;
    });
    while (!posting) continue;
    // More and more of it is under way.
    const auto begin = std::chrono::steady_clock::now();
    while (!posted && std::chrono::steady_clock::now() - begin < std::chrono::microseconds(2 * i)) continue;
    bind_to(8);
    std::fill(into.bytes().begin(), into.bytes().end(), kMine);
    reader.join();
    DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS;
    if (rc == DAT_SUCCESS) {
      status = expect_event(client.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data.status;
    } else {
      EXPECT_THAT(rc, HasType(DAT_PRIVILEGES_VIOLATION));
    }
    EXPECT_TRUE(std::all_of(into.bytes().begin(), into.bytes().end(), [](std::byte at) { return at == kMine; }))
        << "at " << i;
    if (status == DAT_DTO_SUCCESS) continue;
    EXPECT_EQ(status, DAT_DTO_ERR_LOCAL_PROTECTION);
    connection.reset();
    while (poll_event(client.connect.get()) || poll_event(server.connect.get())) continue;
    connection.emplace(connect_pair(server, client));
  }
}

}  // namespace
}  // namespace anydat::test
