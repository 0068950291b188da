// SPDX-License-Identifier: BSD-3-Clause
// A peer that is stopped in the middle of writing into a receive buffer, as any debugger may stop it. The program does
// not get the memory back before the writing is over, or the peer has had half a second; no other peer or thread waits
// for that.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "hostile_attacks.h"
#include "nic/soft/stream.h"
#include "nic/soft/wire/shm/grants.h"
#include "nic/soft/wire/shm/rdma_uses.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBytes = 20'000;
constexpr std::chrono::milliseconds kInTime{400};
// Well within the half second, whatever a sanitizer makes of other times.
constexpr std::chrono::milliseconds kAWhile{30};
// A sanitizer may take longer, as all that waits does.
std::chrono::milliseconds a_second() {
  return patience() / 5;
}

// A window, and a region that it is bound to.
class Window {
 public:
  explicit Window(const Side& side) : region_(side.ia, side.pz, 64) {
    require(dat_rmr_create(side.pz.get(), &rmr_), "dat_rmr_create");
  }
  DAT_RETURN try_bind(const Ep& ep) {
    DAT_LMR_TRIPLET part = region_.triplet();
    return dat_rmr_bind(rmr_, &part, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, ep.get(), {}, DAT_COMPLETION_DEFAULT_FLAG,
                        &context_);
  }
  void bind(const Ep& ep) { require(try_bind(ep), "dat_rmr_bind"); }
  DAT_RMR_CONTEXT context() const { return context_; }
  DAT_RETURN free() const { return dat_rmr_free(rmr_); }

 private:
  Lmr region_;
  DAT_RMR_HANDLE rmr_ = DAT_HANDLE_NULL;
  DAT_RMR_CONTEXT context_ = 0;
};

class BusyWriter : public testing::Test {
 protected:
  void SetUp() override {
    qualifier_ = server_.listen();
    writer_ = writer_into(ep_);
    if (!writer_) {
      GTEST_SKIP() << "this wire has no peers that write into memory";
    }
    others_.emplace(connect_pair(server_, client_));
  }

  // A peer of the endpoint that is in the middle of pushing into its receive buffer.
  std::optional<RawPeer> writer_into(Ep& ep) {
    post_buffer(ep);
    auto writer = std::async(std::launch::async,
                             [&] { return begin_writing_into(raw_service_name(qualifier_), qualifier_, name_); });
    const auto request = wait_event(server_.requests.get());
    require(request ? DAT_SUCCESS : DAT_TIMEOUT_EXPIRED, "a request");
    require(dat_cr_accept(request->event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
    expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    return writer.get();
  }

  // The call, in a thread of its own, lasts until the writing is over; other connections go on meanwhile.
  void expect_to_wait(const std::function<DAT_RETURN()>& call) {
    const auto begun = Clock::now();
    auto result = std::async(std::launch::async, call);
    EXPECT_EQ(result.wait_for(kAWhile), std::future_status::timeout);
    for (int i = 0; i < 10; ++i) {
      pass_message();
    }
    EXPECT_EQ(result.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    end_writing();
    ASSERT_EQ(result.wait_for(patience()), std::future_status::ready);
    EXPECT_THAT(result.get(), Succeeds());
    expect_before_the_cut(begun);
  }

  // It was the end of the writing that was waited for, and not the half second.
  static void expect_before_the_cut(Clock::time_point begun) {
    if (!built_with_sanitizer()) {
      EXPECT_LT(Clock::now() - begun, kInTime);
    }
  }

  // The peer never goes on: the call comes back by itself, within the second, and others go on meanwhile.
  void expect_to_wait_for_half_a_second(const std::function<DAT_RETURN()>& call) {
    const auto begun = Clock::now();
    auto result = std::async(std::launch::async, call);
    while (Clock::now() - begun < std::chrono::milliseconds(300)) {
      expect_a_message_in_time();
    }
    ASSERT_EQ(result.wait_for(patience()), std::future_status::ready);
    EXPECT_THAT(result.get(), Succeeds());
    EXPECT_GT(Clock::now() - begun, kInTime);
    EXPECT_LT(Clock::now() - begun, a_second());
  }

  // The link is given half a second, in which nothing is said of the connection.
  void expect_the_end_of_its_link_to_be_held_up() {
    writer_->put({.kind = static_cast<shm::CellKind>(200)});
    writer_->ring();
    const auto begun = Clock::now();
    while (Clock::now() - begun < std::chrono::milliseconds(300)) {
      expect_a_message_in_time();
      EXPECT_FALSE(poll_event(server_.connect.get()));
      EXPECT_FALSE(poll_event(server_.recv.get()));
    }
    expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    expect_completion(server_.recv.get(), DAT_DTO_ERR_FLUSHED);
    EXPECT_LT(Clock::now() - begun, a_second());
  }

  // In less than the half second that a stopped peer is given.
  void expect_a_message_in_time() {
    const auto begun = Clock::now();
    pass_message();
    EXPECT_LT(Clock::now() - begun, kInTime);
  }

  void pass_message() {
    DAT_LMR_TRIPLET to = other_memory_.triplet();
    DAT_LMR_TRIPLET from = client_memory_.triplet();
    require(dat_ep_post_recv(others_->server.get(), 1, &to, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    require(dat_ep_post_send(others_->client.get(), 1, &from, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
    expect_completion(server_.recv.get());
    expect_completion(client_.request.get());
  }

  // The instance has been closed, so nothing of it is to be freed.
  void nothing_is_left() {
    for (Owner<dat_evd_free>* evd :
         {static_cast<Owner<dat_evd_free>*>(&server_.recv), static_cast<Owner<dat_evd_free>*>(&server_.request),
          static_cast<Owner<dat_evd_free>*>(&server_.connect), static_cast<Owner<dat_evd_free>*>(&server_.requests)}) {
      evd->release();
    }
    server_.pz.release();
    server_.psp->release();
    memory_.release();
    other_memory_.release();
    ep_.release();
  }

  void end_writing() {
    for (auto& grant : writer_->outbound().header().grants) {
      const std::uint64_t word = grant.load();
      if ((word & 1) != 0) {
        grant.store(word & ~std::uint64_t{1});
      }
    }
  }

  void post_buffer(Ep& ep) {
    DAT_LMR_TRIPLET segment = memory_.triplet();
    require(dat_ep_post_recv(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  }

  Side server_{wire_by_name("shm")};
  Side client_{wire_by_name("shm")};
  Lmr memory_{server_.ia, server_.pz, kBytes};
  Lmr other_memory_{server_.ia, server_.pz, kBytes};
  Lmr client_memory_{client_.ia, client_.pz, kBytes};
  Ep ep_{server_};
  std::optional<Connection> others_;
  std::optional<RawPeer> writer_;
  DAT_CONN_QUAL qualifier_ = 0;
  std::uint32_t name_ = 0;  // of the connection, as the server has it
};

// LMR-FREE-8: one that is in the middle of an RDMA, whichever slot it notes that in.
TEST_F(BusyWriter, HoldsUpTheFreeOfARegionThatItUsesByRdma) {
  shm::SegmentHeader& header = writer_->outbound().header();
  header.rdma_own_slots.store(1);
  for (const std::uint32_t slot : {0u, shm::kSharedRdmaSlots - 1, shm::kSharedRdmaSlots, shm::kRdmaSlots - 1}) {
    SCOPED_TRACE(slot);
    Lmr region(server_.ia, server_.pz, 64);
    header.rdma_uses[slot].store(region.rmr_context());
    auto result = std::async(std::launch::async, [&] { return region.free(); });
    EXPECT_EQ(result.wait_for(kAWhile), std::future_status::timeout);
    pass_message();
    header.rdma_uses[slot].store(0);
    ASSERT_EQ(result.wait_for(patience()), std::future_status::ready);
    EXPECT_THAT(result.get(), Succeeds());
  }
}

// Its link is given half a second to come out of the RDMA that it is in the middle of; others do not wait for that.
TEST_F(BusyWriter, HoldsUpTheEndOfItsLinkOnly) {
  end_writing();
  writer_->outbound().header().rdma_uses[0].store(1);
  expect_the_end_of_its_link_to_be_held_up();
}

// What it pushes, too.
TEST_F(BusyWriter, HoldsUpTheEndOfItsLinkWhileItPushes) {
  expect_the_end_of_its_link_to_be_held_up();
}

// LMR-FREE-8
TEST_F(BusyWriter, HoldsUpTheFreeOfItsRegionForHalfASecondAtMost) {
  expect_to_wait_for_half_a_second([this] { return memory_.free(); });
  expect_completion(server_.recv.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
  expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

// EP-FREE-5
TEST_F(BusyWriter, HoldsUpTheFreeOfItsEndpointForHalfASecondAtMost) {
  expect_to_wait_for_half_a_second([this] { return ep_.free(); });
}

TEST_F(BusyWriter, HoldsUpTheEndOfItsConnectionForHalfASecondAtMost) {
  const auto begun = Clock::now();
  ASSERT_THAT(dat_ep_disconnect(ep_.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  Window window(server_);
  EXPECT_THAT(window.try_bind(ep_), HasType(DAT_INVALID_STATE)) << "RMR-BIND-13: not DISCONNECTED yet";
  EXPECT_THAT(window.free(), Succeeds());
  while (Clock::now() - begun < std::chrono::milliseconds(300)) {
    expect_a_message_in_time();
    EXPECT_FALSE(poll_event(server_.connect.get()));
    EXPECT_FALSE(poll_event(server_.recv.get()));
  }
  expect_completion(server_.recv.get(), DAT_DTO_ERR_FLUSHED);
  expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_LT(Clock::now() - begun, a_second());
  pass_message();
}

// Also when a window has been waited for, which it has let go of meanwhile.
TEST_F(BusyWriter, HoldsUpTheEndOfItsConnectionThoughItLetsGoOfAWindow) {
  shm::SegmentHeader& header = writer_->outbound().header();
  Window window(server_);
  window.bind(ep_);
  expect_event(server_.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  header.rdma_uses[0].store(window.context());
  window.bind(ep_);
  const auto begun = Clock::now();
  ASSERT_THAT(dat_ep_disconnect(ep_.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  header.rdma_uses[0].store(0);
  while (Clock::now() - begun < std::chrono::milliseconds(300)) {
    expect_a_message_in_time();
    EXPECT_FALSE(poll_event(server_.connect.get()));
    EXPECT_FALSE(poll_event(server_.recv.get()));
  }
  expect_completion(server_.recv.get(), DAT_DTO_ERR_FLUSHED);
  expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_LT(Clock::now() - begun, a_second());
  EXPECT_THAT(window.free(), Succeeds());
}

// Those who end it themselves, in the middle of their writing, as well.
TEST_F(BusyWriter, HoldsUpTheEndThatItHasAskedForForHalfASecondAtMost) {
  const auto begun = Clock::now();
  writer_->put({.kind = shm::CellKind::close,
                .connection = name_,
                .aux = static_cast<std::uint32_t>(nic::soft::CloseReason::abrupt)});
  writer_->ring();
  while (Clock::now() - begun < std::chrono::milliseconds(300)) {
    expect_a_message_in_time();
    EXPECT_FALSE(poll_event(server_.connect.get()));
  }
  expect_completion(server_.recv.get(), DAT_DTO_ERR_FLUSHED);
  EXPECT_TRUE(wait_event(server_.connect.get()));
  EXPECT_LT(Clock::now() - begun, a_second());
}

// RMR-BIND-6, RMR-FREE: what a window has shown is taken away before the bind completes.
TEST_F(BusyWriter, HoldsUpTheRebindAndTheFreeOfAWindowThatItUsesOnly) {
  shm::SegmentHeader& header = writer_->outbound().header();
  Window window(server_);
  window.bind(others_->server);
  expect_event(server_.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  header.rdma_uses[0].store(window.context());
  const auto begun = Clock::now();
  window.bind(others_->server);
  EXPECT_LT(Clock::now() - begun, kInTime);
  expect_a_message_in_time();
  EXPECT_FALSE(poll_event(server_.request.get()));
  header.rdma_uses[0].store(0);
  expect_event(server_.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);

  header.rdma_uses[0].store(window.context());
  auto result = std::async(std::launch::async, [&] { return window.free(); });
  expect_a_message_in_time();
  EXPECT_EQ(result.wait_for(kAWhile), std::future_status::timeout);
  header.rdma_uses[0].store(0);
  ASSERT_EQ(result.wait_for(patience()), std::future_status::ready);
  EXPECT_THAT(result.get(), Succeeds());
}

// One that does not let go of a window loses its link.
TEST_F(BusyWriter, HoldsUpAWindowForHalfASecondAtMost) {
  shm::SegmentHeader& header = writer_->outbound().header();
  Window window(server_);
  window.bind(others_->server);
  expect_event(server_.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
  header.rdma_uses[0].store(window.context());
  EXPECT_THAT(window.free(), Succeeds());
  expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_completion(server_.recv.get(), DAT_DTO_ERR_FLUSHED);
  pass_message();
}

// LMR-FREE-8
TEST_F(BusyWriter, HoldsUpTheFreeOfItsRegionOnly) {
  expect_to_wait([this] { return memory_.free(); });
  expect_completion(server_.recv.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
  expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

TEST_F(BusyWriter, HoldsUpTheFreeOfItsEndpointOnly) {
  expect_to_wait([this] { return ep_.free(); });
}

// EP-FREE-5: one that is in the middle of an RDMA as well, whatever region it is on.
TEST_F(BusyWriter, HoldsUpTheFreeOfAnEndpointWhosePeerItIsByRdma) {
  end_writing();
  shm::SegmentHeader& header = writer_->outbound().header();
  header.rdma_uses[1].store(nic::soft::shm::rdma_use(1, name_ + 1));  // by another connection
  header.rdma_uses[0].store(nic::soft::shm::rdma_use(1, name_));
  auto result = std::async(std::launch::async, [this] { return ep_.free(); });
  EXPECT_EQ(result.wait_for(kAWhile), std::future_status::timeout);
  expect_a_message_in_time();
  EXPECT_NE(header.rdma_gate.load(), 0U);
  header.rdma_uses[0].store(0);
  ASSERT_EQ(result.wait_for(patience()), std::future_status::ready);
  EXPECT_THAT(result.get(), Succeeds());
}

TEST_F(BusyWriter, HoldsUpTheEndOfItsConnectionByRdmaForHalfASecondAtMost) {
  end_writing();
  writer_->outbound().header().rdma_uses[0].store(nic::soft::shm::rdma_use(1, name_));
  ASSERT_THAT(dat_ep_disconnect(ep_.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_a_message_in_time();
  EXPECT_FALSE(poll_event(server_.connect.get()));
  expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_completion(server_.recv.get(), DAT_DTO_ERR_FLUSHED);
  pass_message();
}

// EP-DISC: the event is late, and what is flushed comes before it.
TEST_F(BusyWriter, HoldsUpTheEndOfItsConnectionOnly) {
  const auto begun = Clock::now();
  ASSERT_THAT(dat_ep_disconnect(ep_.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  for (int i = 0; i < 10; ++i) {
    pass_message();
  }
  EXPECT_FALSE(poll_event(server_.connect.get()));
  EXPECT_FALSE(poll_event(server_.recv.get()));
  post_buffer(ep_);
  end_writing();
  expect_completion(server_.recv.get(), DAT_DTO_ERR_FLUSHED);
  expect_completion(server_.recv.get(), DAT_DTO_ERR_FLUSHED);
  expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_before_the_cut(begun);
}

TEST_F(BusyWriter, HoldsUpNothingOnceItsLinkIsGone) {
  ASSERT_THAT(dat_ep_disconnect(ep_.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  writer_->hang_up();
  expect_completion(server_.recv.get(), DAT_DTO_ERR_FLUSHED);
  expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

TEST_F(BusyWriter, HoldsUpTheCloseOfItsInstance) {
  others_.reset();
  const auto begun = Clock::now();
  auto result = std::async(std::launch::async, [this] { return server_.ia.close(DAT_CLOSE_ABRUPT_FLAG); });
  EXPECT_EQ(result.wait_for(kAWhile), std::future_status::timeout);
  end_writing();
  ASSERT_EQ(result.wait_for(patience()), std::future_status::ready);
  EXPECT_THAT(result.get(), Succeeds());
  expect_before_the_cut(begun);
  nothing_is_left();
}

// IA-CLOSE-4. However many there are, they have the half second together.
TEST_F(BusyWriter, HoldsUpTheCloseOfItsInstanceForHalfASecondAtMost) {
  std::vector<RawPeer> others;
  std::vector<std::unique_ptr<Ep>> endpoints;
  for (int i = 0; i < 8; ++i) {
    endpoints.push_back(std::make_unique<Ep>(server_));
    others.push_back(*writer_into(*endpoints.back()));
  }
  others_.reset();
  const auto begun = Clock::now();
  EXPECT_THAT(server_.ia.close(DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  EXPECT_GT(Clock::now() - begun, kInTime);
  EXPECT_LT(Clock::now() - begun, a_second());
  for (const auto& ep : endpoints) {
    ep->release();
  }
  nothing_is_left();
}

// What it says that it uses when no connection is left is not waited for as long again.
TEST_F(BusyWriter, HoldsUpTheCloseOfItsInstanceNoLongerByWhatNobodyGaveIt) {
  Ep other(server_);
  const std::optional<RawPeer> second = writer_into(other);
  for (auto& grant : second->outbound().header().grants) grant.store(shm::kGrantBusy);
  others_.reset();
  const auto begun = Clock::now();
  EXPECT_THAT(server_.ia.close(DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  EXPECT_LT(Clock::now() - begun, a_second());
  other.release();
  nothing_is_left();
}

}  // namespace
}  // namespace anydat::test
