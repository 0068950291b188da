// SPDX-License-Identifier: BSD-3-Clause
// anydat_ep_post_sends and anydat_ep_post_recvs: what dat_ep_post_send and dat_ep_post_recv would do, several times.
#include <array>
#include <deque>
#include <numeric>

#include "ep_fixture.h"
#include "many_fixture.h"
#include "support/properties.h"
#include "support/waiter.h"

namespace anydat::test {
namespace {

class ManyPosts : public EpTest {
 protected:
  static constexpr int kMany = 37;  // more than one row within

  static DAT_LMR_TRIPLET segment(const Buffers& buffers, int index, std::size_t length) {
    DAT_LMR_TRIPLET triplet = buffers.triplet(index);
    triplet.segment_length = static_cast<SegmentLength>(length);
    return triplet;
  }
  // Sends, or receives, of the buffers from the first on.
  static Posts plain(const Buffers& buffers, int count, std::size_t length = 32,
                     int flags = DAT_COMPLETION_DEFAULT_FLAG) {
    Posts posts;
    for (int i = 0; i < count; ++i) posts.add({segment(buffers, i, length)}, flags);
    return posts;
  }
  void fill_sources(std::size_t length = 32) {
    for (int i = 0; i < kBuffers; ++i) fill_pattern(client_buffers[i].first(length), static_cast<DAT_UINT64>(i));
  }
  static std::vector<DAT_UINT64> cookies(const std::vector<DAT_DTO_COMPLETION_EVENT_DATA>& completions) {
    std::vector<DAT_UINT64> result;
    for (const auto& dto : completions) result.push_back(dto.user_cookie.as_64);
    return result;
  }
  static std::vector<DAT_UINT64> up_to(DAT_UINT64 end) {
    std::vector<DAT_UINT64> result(end);
    std::iota(result.begin(), result.end(), DAT_UINT64{0});
    return result;
  }
  // What a post can have that is not as usual, wrong or right. The memory is that of one side's buffers.
  std::vector<OddPost> odd_posts(const Side& side, const Buffers& buffers, DAT_MEM_PRIV_FLAGS other_right) {
    const DAT_LMR_TRIPLET good = segment(buffers, 0, 16);
    DAT_LMR_TRIPLET outside = good, dead = good, empty = good;
    outside.segment_length = static_cast<SegmentLength>(buffers.lmr().bytes().size() + 1);
    {
      const Lmr gone(side.ia, side.pz, 64);
      dead = gone.triplet();
    }
    empty.segment_length = 0;
    empty.lmr_context = 0xDEADBEEF;
    const DAT_LMR_TRIPLET foreign = foreign_.emplace_back(side.ia, other_zones_.emplace_back(side.ia), 64).triplet();
    const DAT_LMR_TRIPLET without_right = foreign_.emplace_back(side.ia, side.pz, 64, other_right).triplet();
    const std::vector<DAT_LMR_TRIPLET> too_many(5, good);
    return {
        {"nothing odd", [=](Posts& posts) { posts.add({good}); }},
        {"no segments", [](Posts& posts) { posts.add_raw(0, nullptr); }},
        {"several segments",
         [=](Posts& posts) {
           posts.add({good, empty, good});
         }},
        {"a segment of no bytes", [=](Posts& posts) { posts.add({empty}); }},
        {"too many segments", [=](Posts& posts) { posts.add(too_many); }},
        {"a negative number of segments", [](Posts& posts) { posts.add_raw(-1, nullptr); }},
        {"no vector", [](Posts& posts) { posts.add_raw(1, nullptr); }},
        {"a segment outside its region", [=](Posts& posts) { posts.add({outside}); }},
        {"a region that is gone", [=](Posts& posts) { posts.add({dead}); }},
        {"a region of another zone", [=](Posts& posts) { posts.add({foreign}); }},
        {"a region without the right", [=](Posts& posts) { posts.add({without_right}); }},
        {"an unknown flag", [=](Posts& posts) { posts.add({good}, 0x40); }},
        {"UNSIGNALLED where it is not allowed",
         [=](Posts& posts) { posts.add({good}, DAT_COMPLETION_UNSIGNALLED_FLAG); }},
        {"SOLICITED", [=](Posts& posts) { posts.add({good}, DAT_COMPLETION_SOLICITED_WAIT_FLAG); }},
        {"SUPPRESS", [=](Posts& posts) { posts.add({good}, DAT_COMPLETION_SUPPRESS_FLAG); }},
        {"a fence", [=](Posts& posts) { posts.add({good}, DAT_COMPLETION_BARRIER_FENCE_FLAG); }},
    };
  }

  std::deque<Pz> other_zones_;  // before what is in them
  std::deque<Lmr> foreign_;
};

TEST_P(ManyPosts, SendsGoOutAndCompleteInOrder) {
  // SEND-1, DTO-40, SRQ-ORD-1
  const Pair pair = make_connected_pair();
  fill_sources();
  post_recv(pair.server, server_buffers, 0, kMany);
  ASSERT_EQ(send_many(pair.client.get(), plain(client_buffers, kMany)), (Outcome{DAT_SUCCESS, kMany}));
  const auto sent = expect_completions(pair.client_evds.request.get(), kMany);
  EXPECT_EQ(cookies(sent), up_to(kMany));
  const auto received = expect_completions(pair.server_evds.recv.get(), kMany);
  EXPECT_EQ(cookies(received), up_to(kMany));
  for (int i = 0; i < kMany; ++i) {
    EXPECT_EQ(sent[static_cast<std::size_t>(i)].transfered_length, 32u);
    EXPECT_EQ(sent[static_cast<std::size_t>(i)].ep_handle, pair.client.get());
    EXPECT_TRUE(has_pattern(server_buffers[i].first(32), static_cast<DAT_UINT64>(i))) << i;
  }
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
  EXPECT_FALSE(poll_event(pair.server_evds.recv.get()));
}

TEST_P(ManyPosts, ReceivesAreTakenInOrder) {
  // RECV-1, DTO-40
  const Pair pair = make_connected_pair();
  ASSERT_EQ(receive_many(pair.server.get(), plain(server_buffers, kMany, kBytes)), (Outcome{DAT_SUCCESS, kMany}));
  post_send(pair.client, client_buffers, 0, kMany);
  EXPECT_EQ(cookies(expect_completions(pair.server_evds.recv.get(), kMany)), up_to(kMany));
  for (int i = 0; i < kMany; ++i) {
    EXPECT_TRUE(has_pattern(server_buffers[i].first(32), static_cast<DAT_UINT64>(i))) << i;
  }
}

TEST_P(ManyPosts, ReceivesServeMessagesThatWait) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // DTO-40, SRQ-ARR-3
  const Pair pair = make_connected_pair();
  fill_sources();
  ASSERT_EQ(send_many(pair.client.get(), plain(client_buffers, kMany)), (Outcome{DAT_SUCCESS, kMany}));
  ASSERT_EQ(receive_many(pair.server.get(), plain(server_buffers, kMany, kBytes)), (Outcome{DAT_SUCCESS, kMany}));
  EXPECT_EQ(cookies(expect_completions(pair.server_evds.recv.get(), kMany)), up_to(kMany));
  EXPECT_EQ(cookies(expect_completions(pair.client_evds.request.get(), kMany)), up_to(kMany));
  for (int i = 0; i < kMany; ++i) {
    EXPECT_TRUE(has_pattern(server_buffers[i].first(32), static_cast<DAT_UINT64>(i))) << i;
  }
}

// An odd one at the front, in a row, behind a whole row: the answers, and what is done then, are those of single calls.
TEST_P(ManyPosts, SendsAreJudgedAsOneByOne) {
  // DTO-4 to DTO-11, DTO-30 to DTO-35
  for (const OddPost& odd : odd_posts(client, client_buffers, DAT_MEM_PRIV_LOCAL_WRITE_FLAG)) {
    for (const int before : {0, 3, 20}) {
      SCOPED_TRACE(odd.name + " behind " + std::to_string(before));
      Posts posts;
      for (int i = 0; i < before; ++i) posts.add({segment(client_buffers, i, 32)});
      odd.add(posts);
      for (int i = 0; i < 4; ++i) posts.add({segment(client_buffers, i, 32)});
      std::vector<std::vector<DAT_UINT64>> completed;
      std::vector<Outcome> outcomes;
      for (const auto& way : {send_singly, send_many}) {
        const Pair pair = make_connected_pair();
        post_recv(pair.server, server_buffers, 0, posts.size());
        outcomes.push_back(way(pair.client.get(), posts));
        expect_completions(pair.server_evds.recv.get(), outcomes.back().done);
        const bool one_hidden = odd.name == "SUPPRESS";
        completed.push_back(
            cookies(expect_completions(pair.client_evds.request.get(), outcomes.back().done - (one_hidden ? 1 : 0))));
        EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
        EXPECT_FALSE(poll_event(pair.server_evds.recv.get())) << "none more has been sent";
      }
      EXPECT_EQ(outcomes[1], outcomes[0]);
      EXPECT_EQ(completed[1], completed[0]);
    }
  }
}

TEST_P(ManyPosts, ReceivesAreJudgedAsOneByOne) {
  // DTO-4 to DTO-11, RECV-11
  for (const OddPost& odd : odd_posts(server, server_buffers, DAT_MEM_PRIV_LOCAL_READ_FLAG)) {
    for (const int before : {0, 3, 20}) {
      SCOPED_TRACE(odd.name + " behind " + std::to_string(before));
      Posts posts;
      for (int i = 0; i < before; ++i) posts.add({segment(server_buffers, i, 32)});
      odd.add(posts);
      for (int i = 0; i < 4; ++i) posts.add({segment(server_buffers, i, 32)});
      std::vector<Outcome> outcomes;
      for (const auto& way : {receive_singly, receive_many}) {
        const Ep ep(server);
        outcomes.push_back(way(ep.get(), posts));
        DAT_COUNT held = 0;
        ASSERT_THAT(dat_ep_recv_query(ep.get(), &held, nullptr), Succeeds());
        EXPECT_EQ(held, outcomes.back().done);
      }
      EXPECT_EQ(outcomes[1], outcomes[0]);
    }
  }
}

TEST_P(ManyPosts, LongAndShortSendsKeepTheirOrder) {
  // DTO-40: those that take other ways than the short ones do.
  constexpr int kCount = 24;
  const Pair pair = make_connected_pair();
  const Lmr source(client.ia, client.pz, kCount * kLarge);
  const Lmr target(server.ia, server.pz, kCount * kLarge);
  Posts sends, receives;
  const auto length_of = [](std::size_t i) {
    return std::array<std::size_t, 6>{8, 4000, 9000, 100, 8192, kLarge}[i % 6];
  };
  for (std::size_t i = 0; i < kCount; ++i) {
    fill_pattern(source.bytes().subspan(i * kLarge, length_of(i)), i);
    sends.add({source.triplet(i * kLarge, length_of(i))});
    receives.add({target.triplet(i * kLarge, kLarge)});
  }
  ASSERT_EQ(receive_many(pair.server.get(), receives), (Outcome{DAT_SUCCESS, kCount}));
  ASSERT_EQ(send_many(pair.client.get(), sends), (Outcome{DAT_SUCCESS, kCount}));
  const auto received = expect_completions(pair.server_evds.recv.get(), kCount);
  EXPECT_EQ(cookies(received), up_to(kCount));
  EXPECT_EQ(cookies(expect_completions(pair.client_evds.request.get(), kCount)), up_to(kCount));
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(received[i].transfered_length, length_of(i));
    EXPECT_TRUE(has_pattern(target.bytes().subspan(i * kLarge, length_of(i)), i)) << i;
  }
}

TEST_P(ManyPosts, AFullQueueTakesWhatItHasRoomFor) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // DTO-2, DTO-13
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_request_dtos = 8;
  attr.max_recv_dtos = 20;
  std::vector<Outcome> sends, receives;
  const Lmr large(client.ia, client.pz, kLarge);
  Posts of_large;
  for (int i = 0; i < kMany; ++i) of_large.add({large.triplet()});
  for (const bool many : {false, true}) {
    const Pair pair = make_connected_pair(attr, attr);
    const Outcome sent = (many ? send_many : send_singly)(pair.client.get(), of_large);
    EXPECT_THAT(sent.rc, HasType(DAT_INSUFFICIENT_RESOURCES));
    EXPECT_EQ(sent.done, pair.client.query().ep_attr.max_request_dtos);
    sends.push_back(sent);
    const Outcome received =
        (many ? receive_many : receive_singly)(pair.client.get(), plain(client_buffers, kMany, kBytes));
    EXPECT_THAT(received.rc, HasType(DAT_INSUFFICIENT_RESOURCES));
    EXPECT_EQ(received.done, pair.client.query().ep_attr.max_recv_dtos);
    receives.push_back(received);
    ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    EXPECT_EQ(cookies(expect_completions(pair.client_evds.request.get(), sent.done, DAT_DTO_ERR_FLUSHED)),
              up_to(static_cast<DAT_UINT64>(sent.done)));
    EXPECT_EQ(cookies(expect_completions(pair.client_evds.recv.get(), received.done, DAT_DTO_ERR_FLUSHED)),
              up_to(static_cast<DAT_UINT64>(received.done)));
    EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
    EXPECT_FALSE(poll_event(pair.client_evds.recv.get()));
  }
  EXPECT_EQ(sends[1], sends[0]);
  EXPECT_EQ(receives[1], receives[0]);
}

TEST_P(ManyPosts, TheStateCountsAsForSinglePosts) {
  // SEND-5, DTO-20
  const Posts sends = plain(client_buffers, 5);
  const Posts receives = plain(client_buffers, 5, kBytes);
  for (const bool many : {false, true}) {
    Pair pair = make_pair();
    const auto send = many ? send_many : send_singly;
    const auto receive = many ? receive_many : receive_singly;
    const Outcome before = send(pair.client.get(), sends);
    EXPECT_EQ(before, send_singly(pair.client.get(), sends));
    EXPECT_THAT(before.rc, HasType(DAT_INVALID_STATE));
    EXPECT_EQ(receive(pair.client.get(), receives), (Outcome{DAT_SUCCESS, 5}));
    connect_pair(server, pair.server.get(), pair.client.get());
    ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    expect_terminal_event(pair.client_evds.connect.get(), pair.client.get());
    EXPECT_EQ(cookies(expect_completions(pair.client_evds.recv.get(), 5, DAT_DTO_ERR_FLUSHED)), up_to(5));
    EXPECT_EQ(send(pair.client.get(), sends), (Outcome{DAT_SUCCESS, 5}));
    EXPECT_EQ(receive(pair.client.get(), receives), (Outcome{DAT_SUCCESS, 5}));
    EXPECT_EQ(cookies(expect_completions(pair.client_evds.request.get(), 5, DAT_DTO_ERR_FLUSHED)), up_to(5));
    EXPECT_EQ(cookies(expect_completions(pair.client_evds.recv.get(), 5, DAT_DTO_ERR_FLUSHED)), up_to(5));
  }
}

TEST_P(ManyPosts, AnEndpointOfAnSrqTakesNoReceives) {
  // RECV-9
  const Srq srq(server.ia, server.pz, 4);
  const Ep ep(server, srq);
  const Outcome outcome = receive_many(ep.get(), plain(server_buffers, 3));
  EXPECT_EQ(outcome, receive_singly(ep.get(), plain(server_buffers, 3)));
  EXPECT_THAT(outcome.rc, HasType(DAT_INVALID_STATE));
}

TEST_P(ManyPosts, CompletionsWakeAsThoseOfSinglePosts) {
  // EVM-30, DTO-31: a waiter's threshold counts all; unsignalled ones wake no thread.
  DAT_EP_ATTR attr = default_ep_attr();
  const Pair pair = make_connected_pair(attr, attr);
  post_recv(pair.server, server_buffers, 0, 20);
  Waiter waiter(pair.client_evds.request.get(), 20);
  ASSERT_EQ(send_many(pair.client.get(), plain(client_buffers, 19)), (Outcome{DAT_SUCCESS, 19}));
  EXPECT_TRUE(waiter.stays_blocked());
  ASSERT_EQ(send_many(pair.client.get(), plain(client_buffers, 1)), (Outcome{DAT_SUCCESS, 1}));
  const Waiter::Result result = waiter.result();
  EXPECT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.more, 19);
  expect_completions(pair.client_evds.request.get(), 19);

  attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
  const Pair quiet = make_connected_pair(default_ep_attr(), attr);
  post_recv(quiet.server, server_buffers, 20, 6);
  Waiter sleeper(quiet.client_evds.request.get());
  ASSERT_EQ(send_many(quiet.client.get(), plain(client_buffers, 5, 32, DAT_COMPLETION_UNSIGNALLED_FLAG)),
            (Outcome{DAT_SUCCESS, 5}));
  expect_completions(quiet.server_evds.recv.get(), 5);
  EXPECT_TRUE(sleeper.stays_blocked());
  ASSERT_EQ(send_many(quiet.client.get(), plain(client_buffers, 1)), (Outcome{DAT_SUCCESS, 1}));
  EXPECT_THAT(sleeper.result().rc, Succeeds());
}

TEST_P(ManyPosts, SolicitedOnesWakeThePeer) {
  ANYDAT_NEEDS_SOLICITED(server.ia)
  // DTO-31, EVM-31
  DAT_EP_ATTR attr = default_ep_attr();
  attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
  const Pair pair = make_connected_pair(attr);
  post_recv(pair.server, server_buffers, 0, 8);
  Waiter waiter(pair.server_evds.recv.get());
  ASSERT_EQ(send_many(pair.client.get(), plain(client_buffers, 4)), (Outcome{DAT_SUCCESS, 4}));
  expect_completions(pair.client_evds.request.get(), 4);
  EXPECT_TRUE(waiter.stays_blocked());
  Posts posts(4);
  posts.add({segment(client_buffers, 4, 32)});
  posts.add({segment(client_buffers, 5, 32)}, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  ASSERT_EQ(send_many(pair.client.get(), posts), (Outcome{DAT_SUCCESS, 2}));
  EXPECT_THAT(waiter.result().rc, Succeeds());
  expect_completions(pair.server_evds.recv.get(), 5);
}

TEST_P(ManyPosts, ACompletionWithoutRoomBreaksTheConnection) {
  // EVM-54: what there was room for is there, in order.
  const Evd requests(client.ia, DAT_EVD_DTO_FLAG, 4);
  ASSERT_EQ(requests.qlen(), 4) << "this test needs a queue of exactly the length it asks for";
  const OwnEvds evds(client);
  const Ep ep(client.ia, client.pz, {evds.recv.get(), requests.get(), evds.connect.get()}, default_ep_attr());
  const Ep peer(server);
  connect_pair(server, peer.get(), ep.get());
  post_recv(peer, server_buffers, 0, 10);
  EXPECT_EQ(send_many(ep.get(), plain(client_buffers, 10)), (Outcome{DAT_SUCCESS, 10}));
  expect_terminal_event(evds.connect.get(), ep.get());
  EXPECT_EQ(
      expect_event(client.ia.async_evd(), DAT_ASYNC_ERROR_EVD_OVERFLOW).event_data.asynch_error_event_data.dat_handle,
      requests.get());
  EXPECT_EQ(cookies(expect_completions(requests.get(), 4)), up_to(4));
  EXPECT_FALSE(poll_event(requests.get()));
}

TEST_P(ManyPosts, NoneIsPostedByZero) {
  const Pair pair = make_connected_pair();
  for (const auto& call : {anydat_ep_post_sends, anydat_ep_post_recvs}) {
    DAT_COUNT posted = -1;
    EXPECT_THAT(call(pair.client.get(), 0, nullptr, &posted), Succeeds());
    EXPECT_EQ(posted, 0);
  }
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
}

TEST_P(ManyPosts, WrongArgumentsAreRefused) {
  // GEN-2
  const Pair pair = make_connected_pair();
  const Posts posts = plain(client_buffers, 2);
  DAT_EP_HANDLE stale = DAT_HANDLE_NULL;
  {
    const Ep gone(client);
    stale = gone.get();
  }
  const auto refused = [](DAT_RETURN_SUBTYPE argument) {
    return testing::AllOf(HasType(DAT_INVALID_PARAMETER), HasSubtype(argument));
  };
  for (const auto& call : {anydat_ep_post_sends, anydat_ep_post_recvs}) {
    DAT_COUNT posted = -1;
    EXPECT_THAT(call(pair.client.get(), -1, posts.all().data(), &posted), refused(DAT_INVALID_ARG2));
    EXPECT_EQ(posted, 0);
    EXPECT_THAT(call(pair.client.get(), 2, nullptr, &posted), refused(DAT_INVALID_ARG3));
    EXPECT_THAT(call(pair.client.get(), 2, posts.all().data(), nullptr), refused(DAT_INVALID_ARG4));
    for (const DAT_HANDLE wrong : {DAT_HANDLE{DAT_HANDLE_NULL}, DAT_HANDLE{stale}, DAT_HANDLE{client.ia.get()}}) {
      posted = -1;
      EXPECT_THAT(call(wrong, 2, posts.all().data(), &posted),
                  testing::AllOf(HasType(DAT_INVALID_HANDLE), HasSubtype(DAT_INVALID_HANDLE_EP)));
      EXPECT_EQ(posted, 0);
    }
  }
  DAT_BOOLEAN idle = DAT_FALSE;
  ASSERT_THAT(dat_ep_get_status(pair.client.get(), nullptr, &idle, nullptr), Succeeds());
  EXPECT_EQ(idle, DAT_TRUE);
  expect_working(pair);
}

ANYDAT_OVER_ALL_WIRES(ManyPosts);

}  // namespace
}  // namespace anydat::test
