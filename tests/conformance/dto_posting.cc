// SPDX-License-Identifier: BSD-3-Clause
// What holds for dat_ep_post_send and dat_ep_post_recv alike: section 4.1 of the rules. Flags are in dto_flags.cc,
// order in dto_order.cc, RDMA in rdma_posting.cc.
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>

#include "ep_fixture.h"
#include "support/properties.h"
#include "support/versions.h"

namespace anydat::test {
namespace {

class DtoPosting : public EpTest {
 protected:
  using Post = std::function<DAT_RETURN(DAT_COUNT, DAT_LMR_TRIPLET*)>;

  // The two calls, to the server's endpoint, as functions of the vector.
  static std::vector<Post> both(const Ep& ep) {
    const DAT_EP_HANDLE handle = ep.get();
    return {[handle](DAT_COUNT count, DAT_LMR_TRIPLET* iov) {
              return dat_ep_post_recv(handle, count, iov, cookie(1), DAT_COMPLETION_DEFAULT_FLAG);
            },
            [handle](DAT_COUNT count, DAT_LMR_TRIPLET* iov) {
              return dat_ep_post_send(handle, count, iov, cookie(2), DAT_COMPLETION_DEFAULT_FLAG);
            }};
  }

  // DTO-2: a refused post queues nothing and completes nothing.
  void expect_nothing_posted(const Pair& pair, Caller caller = Caller::here()) {
    const testing::ScopedTrace trace(caller.file, caller.line, "after refused posts");
    DAT_BOOLEAN recv_idle = DAT_FALSE;
    DAT_BOOLEAN request_idle = DAT_FALSE;
    require(dat_ep_get_status(pair.server.get(), nullptr, &recv_idle, &request_idle), "dat_ep_get_status");
    EXPECT_EQ(recv_idle, DAT_TRUE);
    EXPECT_EQ(request_idle, DAT_TRUE);
    EXPECT_EQ(pair.server.state(), DAT_EP_STATE_CONNECTED);
    EXPECT_FALSE(poll_event(pair.server_evds.recv.get()));
    EXPECT_FALSE(poll_event(pair.server_evds.request.get()));
    expect_working(pair);
  }
};

TEST_P(DtoPosting, OneEventSaysHowItEnded) {
  // DTO-1, DTO-3, SEND-1, SEND-3, RECV-1, RECV-5
  const Pair pair = make_connected_pair();
  post_recv(pair.server, server_buffers, 5);
  post_send(pair.client, client_buffers, 9, 1, 100);
  const DAT_EVENT sent = expect_event(pair.client_evds.request.get(), DAT_DTO_COMPLETION_EVENT);
  const DAT_EVENT received = expect_event(pair.server_evds.recv.get(), DAT_DTO_COMPLETION_EVENT);
  EXPECT_EQ(sent.evd_handle, pair.client_evds.request.get());
  EXPECT_EQ(received.evd_handle, pair.server_evds.recv.get());
  const auto& send = sent.event_data.dto_completion_event_data;
  EXPECT_EQ(send.ep_handle, pair.client.get());
  EXPECT_EQ(send.user_cookie.as_64, 9u);
  EXPECT_EQ(send.status, DAT_DTO_SUCCESS);
  EXPECT_EQ(send.transfered_length, 100u);
  const auto& recv = received.event_data.dto_completion_event_data;
  EXPECT_EQ(recv.ep_handle, pair.server.get());
  EXPECT_EQ(recv.user_cookie.as_64, 5u);
  EXPECT_EQ(recv.status, DAT_DTO_SUCCESS);
  EXPECT_EQ(recv.transfered_length, 100u);
  for (const OwnEvds* evds : {&pair.server_evds, &pair.client_evds}) {
    EXPECT_FALSE(poll_event(evds->recv.get()));
    EXPECT_FALSE(poll_event(evds->request.get()));
  }
}

TEST_P(DtoPosting, NoSegmentsMeanNoData) {
  // DTO-4, SEND-2
  const Pair pair = make_connected_pair();
  DAT_LMR_TRIPLET garbage{};
  garbage.lmr_context = 0xDEADBEEF;
  garbage.segment_length = 1000;
  for (DAT_LMR_TRIPLET* const ignored : {static_cast<DAT_LMR_TRIPLET*>(nullptr), &garbage}) {
    ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 0, ignored, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    ASSERT_THAT(dat_ep_post_send(pair.client.get(), 0, ignored, cookie(2), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).transfered_length, 0u);
    EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).transfered_length, 0u);
  }
}

TEST_P(DtoPosting, SegmentCountsAreChecked) {
  // DTO-2, DTO-5, SEND-6, RECV-11
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_recv_iov = 3;
  attr.max_request_iov = 2;
  const Pair pair = make_connected_pair(attr);
  const DAT_EP_ATTR actual = pair.server.query().ep_attr;
  const std::vector<DAT_COUNT> limits{actual.max_recv_iov, actual.max_request_iov};
  const auto posts = both(pair.server);
  for (std::size_t i = 0; i < posts.size(); ++i) {
    std::vector<DAT_LMR_TRIPLET> segments(static_cast<std::size_t>(limits[i]) + 1, server_buffers.triplet(0));
    for (DAT_LMR_TRIPLET& segment : segments) {
      segment.segment_length = 0;  // those count as well
    }
    EXPECT_THAT(posts[i](-1, segments.data()), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(posts[i](std::numeric_limits<DAT_COUNT>::min(), segments.data()), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(posts[i](1, nullptr), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(posts[i](limits[i] + 1, segments.data()), HasType(DAT_INVALID_PARAMETER));
    EXPECT_THAT(posts[i](std::numeric_limits<DAT_COUNT>::max(), segments.data()), HasType(DAT_INVALID_PARAMETER));
  }
  expect_nothing_posted(pair);
  std::vector<DAT_LMR_TRIPLET> segments(3, server_buffers.triplet(0));
  EXPECT_THAT(posts[0](3, segments.data()), Succeeds());
  EXPECT_THAT(posts[1](2, segments.data()), Succeeds());
}

TEST_P(DtoPosting, EmptySegmentsAreNotLookedAt) {
  // DTO-6, TYPE-2
  const Pair pair = make_connected_pair();
  DAT_LMR_TRIPLET empty{};
  empty.lmr_context = 0xDEADBEEF;
  set_padding(empty, 0x55555555);
  empty.virtual_address = ~DAT_VADDR{0};
  DAT_LMR_TRIPLET sink = server_buffers.triplet(0);
  set_padding(sink, 0xFFFFFFFF);  // TYPE-1: ignored
  DAT_LMR_TRIPLET receive[3] = {empty, sink, empty};
  DAT_LMR_TRIPLET source = client_buffers.triplet(0);
  set_padding(source, 0xFFFFFFFF);
  source.segment_length = 40;
  fill_pattern(client_buffers[0].first(40), 3);
  DAT_LMR_TRIPLET send[3] = {empty, empty, source};
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 3, receive, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(dat_ep_post_send(pair.client.get(), 3, send, cookie(2), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).transfered_length, 40u);
  EXPECT_TRUE(has_pattern(server_buffers[0].first(40), 3));
}

TEST_P(DtoPosting, LengthsThatDoNotAddUpAreRefused) {
  // DTO-7, DTO-2, D2-TYPE-6
  const Pair pair = make_connected_pair();
  DAT_LMR_TRIPLET segments[2] = {server_buffers.triplet(0), server_buffers.triplet(1)};
  segments[0].segment_length = kSegmentLengthMax;
  for (const Post& post : both(pair.server)) {
    EXPECT_THAT(post(2, segments), HasType(DAT_INVALID_PARAMETER));
  }
  expect_nothing_posted(pair);
}

TEST_P(DtoPosting, MessagesObeyTheMaximumSize) {
  // DTO-8, SEND-6
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_message_size = 100;
  const Pair pair = make_connected_pair(attr, attr);
  DAT_LMR_TRIPLET segment = client_buffers.triplet(0);
  segment.segment_length = 101;
  EXPECT_THAT(dat_ep_post_send(pair.client.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_INVALID_PARAMETER));
  DAT_LMR_TRIPLET two[2] = {client_buffers.triplet(0), client_buffers.triplet(1)};
  two[0].segment_length = 60;
  two[1].segment_length = 41;
  EXPECT_THAT(dat_ep_post_send(pair.client.get(), 2, two, cookie(0), DAT_COMPLETION_DEFAULT_FLAG),
              HasType(DAT_INVALID_PARAMETER));
  // A receive buffer may be larger.
  post_recv(pair.server, server_buffers, 0);
  two[1].segment_length = 40;
  ASSERT_THAT(dat_ep_post_send(pair.client.get(), 2, two, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).transfered_length, 100u);
}

TEST_P(DtoPosting, AMaximumSizeOfZeroSetsNoLimit) {
  // DTO-8 (R61), EP-CREATE-10: what programs leave in an attribute record that they have cleared
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_message_size = 0;
  const Pair pair = make_connected_pair(attr, attr);
  EXPECT_EQ(pair.client.query().ep_attr.max_message_size, 0u);
  post_recv(pair.server, server_buffers, 0);
  DAT_LMR_TRIPLET segment = client_buffers.triplet(0);
  segment.segment_length = 100;
  ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).transfered_length, 100u);
}

TEST_P(DtoPosting, SegmentsLieWithinTheirRegions) {
  // DTO-9, DTO-12, DTO-2, PROT-1
  const Pair pair = make_connected_pair();
  const Lmr& lmr = server_buffers.lmr();
  const DAT_VADDR start = reinterpret_cast<DAT_VADDR>(lmr.bytes().data());
  const DAT_VLEN size = lmr.bytes().size();
  const std::vector<std::pair<DAT_VADDR, DAT_VLEN>> outside{{start - 1, 1},     {start - 1, 2},
                                                            {start, size + 1},  {start + size - 1, 2},
                                                            {start + size, 1},  {start + 8, ~DAT_VLEN{0} - 8},
                                                            {~DAT_VADDR{0}, 1}, {0, 1}};
  for (const auto& [address, length] : outside) {
    DAT_LMR_TRIPLET segment = lmr.triplet();
    segment.virtual_address = address;
    segment.segment_length = length;
    for (const Post& post : both(pair.server)) {
      EXPECT_THAT(post(1, &segment), HasType(DAT_INVALID_PARAMETER)) << std::hex << address << " + " << length;
    }
  }
  expect_nothing_posted(pair);
  // To the last byte it is allowed.
  DAT_LMR_TRIPLET segment = lmr.triplet(size - 1, 1);
  for (const Post& post : both(pair.server)) {
    EXPECT_THAT(post(1, &segment), Succeeds());
  }
}

TEST_P(DtoPosting, RegionsOfOtherZonesAreRefused) {
  // DTO-10, DTO-2, LMR-CREATE-5, PROT-1
  const Pz other(server.ia);
  const Lmr foreign(server.ia, other, kBytes);
  const Pair pair = make_connected_pair();
  DAT_LMR_TRIPLET segments[2] = {server_buffers.triplet(0), foreign.triplet()};
  for (const Post& post : both(pair.server)) {
    EXPECT_THAT(post(1, segments + 1), HasType(DAT_PROTECTION_VIOLATION));
    EXPECT_THAT(post(2, segments), HasType(DAT_PROTECTION_VIOLATION));
  }
  expect_nothing_posted(pair);
}

TEST_P(DtoPosting, UnknownRegionsAreRefused) {
  // DTO-11, DTO-2, LMR-FREE-3, LMR-FREE-9
  const Pair pair = make_connected_pair();
  DAT_LMR_CONTEXT freed = 0;
  std::vector<std::byte> memory(kBytes);
  {
    const Lmr gone(server.ia, server.pz, std::span(memory));
    freed = gone.context();
  }
  const Lmr next(server.ia, server.pz, std::span(memory));
  EXPECT_NE(next.context(), freed) << "a context is not reissued at once";
  for (const DAT_LMR_CONTEXT context : {freed, DAT_LMR_CONTEXT{0}, ~DAT_LMR_CONTEXT{0}}) {
    DAT_LMR_TRIPLET segment = next.triplet();
    segment.lmr_context = context;
    for (const Post& post : both(pair.server)) {
      EXPECT_THAT(post(1, &segment), HasType(DAT_PRIVILEGES_VIOLATION)) << std::hex << context;
    }
  }
  expect_nothing_posted(pair);
}

TEST_P(DtoPosting, PrivilegesAreThoseOfTheDirection) {
  // DTO-11, DTO-2, LMR-CREATE-10, PROT-1
  const Pair pair = make_connected_pair();
  const auto posts = both(pair.server);
  for (int bits = 0; bits <= DAT_MEM_PRIV_ALL_FLAG; ++bits) {
    if ((bits & ~DAT_MEM_PRIV_ALL_FLAG) != 0) {
      continue;
    }
    const Lmr lmr(server.ia, server.pz, 64, static_cast<DAT_MEM_PRIV_FLAGS>(bits));
    DAT_LMR_TRIPLET segment = lmr.triplet();
    for (std::size_t i = 0; i < posts.size(); ++i) {
      const int needed = i == 0 ? DAT_MEM_PRIV_LOCAL_WRITE_FLAG : DAT_MEM_PRIV_LOCAL_READ_FLAG;
      if ((bits & needed) == 0) {
        EXPECT_THAT(posts[i](1, &segment), HasType(DAT_PRIVILEGES_VIOLATION)) << "privileges 0x" << std::hex << bits;
      }
    }
  }
  expect_nothing_posted(pair);
  const Lmr readable(server.ia, server.pz, 64, DAT_MEM_PRIV_LOCAL_READ_FLAG);
  const Lmr writable(client.ia, client.pz, 64, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  fill_pattern(readable.bytes(), 4);
  DAT_LMR_TRIPLET sink = writable.triplet();
  DAT_LMR_TRIPLET source = readable.triplet();
  ASSERT_THAT(dat_ep_post_recv(pair.client.get(), 1, &sink, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  ASSERT_THAT(posts[1](1, &source), Succeeds());
  expect_completion(pair.client_evds.recv.get());
  EXPECT_TRUE(has_pattern(writable.bytes(), 4));
}

TEST_P(DtoPosting, TheConfiguredNumberFitsAndNoMoreThanTheQueueHolds) {
  ANYDAT_NEEDS_WAITING_MESSAGES(server.ia)
  // DTO-13, DTO-2, GEN-9
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_recv_dtos = 5;
  attr.max_request_dtos = 3;
  const Pair pair = make_connected_pair(attr, attr);
  const DAT_EP_ATTR actual = pair.client.query().ep_attr;
  for (DAT_COUNT i = 0; i < actual.max_recv_dtos; ++i) {
    EXPECT_EQ(try_recv(pair.client, client_buffers, i), DAT_RETURN{DAT_SUCCESS}) << i;
  }
  EXPECT_THAT(try_recv(pair.client, client_buffers, 20), HasType(DAT_INSUFFICIENT_RESOURCES));
  // Sends that stay in progress, since the peer has no buffer.
  const Lmr large(client.ia, client.pz, kLarge);
  for (DAT_COUNT i = 0; i < actual.max_request_dtos; ++i) {
    post_large_send(pair.client, large, static_cast<DAT_UINT64>(i));
  }
  EXPECT_THAT(try_send(pair.client, client_buffers, 21), HasType(DAT_INSUFFICIENT_RESOURCES));
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_completions(pair.client_evds.recv.get(), actual.max_recv_dtos, DAT_DTO_ERR_FLUSHED);
  expect_completions(pair.client_evds.request.get(), actual.max_request_dtos, DAT_DTO_ERR_FLUSHED);
  EXPECT_FALSE(poll_event(pair.client_evds.recv.get()));
  EXPECT_FALSE(poll_event(pair.client_evds.request.get()));
}

TEST_P(DtoPosting, CompletionFreesTheSlotReapedOrNot) {
  // DTO-14
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_recv_dtos = 2;
  attr.max_request_dtos = 2;
  const Pair pair = make_connected_pair(attr, attr);
  const auto idle = [](const Ep& ep) {
    return [&ep] {
      DAT_BOOLEAN recv = DAT_FALSE;
      DAT_BOOLEAN request = DAT_FALSE;
      require(dat_ep_get_status(ep.get(), nullptr, &recv, &request), "dat_ep_get_status");
      return recv == DAT_TRUE && request == DAT_TRUE;
    };
  };
  for (int round = 0; round < 10; ++round) {
    post_recv(pair.server, server_buffers, 0, 2);
    post_send(pair.client, client_buffers, 0, 1, 32, DAT_COMPLETION_SUPPRESS_FLAG);
    post_send(pair.client, client_buffers, 1, 1, 32,
              round % 2 == 0 ? DAT_COMPLETION_SUPPRESS_FLAG : DAT_COMPLETION_DEFAULT_FLAG);
    ASSERT_TRUE(eventually(idle(pair.server)));
    ASSERT_TRUE(eventually(idle(pair.client)));
  }
  expect_completions(pair.server_evds.recv.get(), 20);
  expect_completions(pair.client_evds.request.get(), 5);
}

TEST_P(DtoPosting, VectorIsTheConsumersAtReturn) {
  // DTO-16
  ASSERT_EQ(server.ia.provider().iov_ownership_on_return, DAT_IOV_CONSUMER);
  const Pair pair = make_connected_pair();
  DAT_LMR_TRIPLET receive[2] = {server_buffers.triplet(0), server_buffers.triplet(1)};
  receive[0].segment_length = 10;
  const DAT_LMR_TRIPLET before[2] = {receive[0], receive[1]};
  ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 2, receive, cookie(1), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  EXPECT_EQ(std::memcmp(receive, before, sizeof receive), 0) << "the Provider wrote into the vector";
  std::memset(static_cast<void*>(receive), 0xEE, sizeof receive);
  const Lmr large(client.ia, client.pz, kLarge);
  const Lmr sink(server.ia, server.pz, kLarge);
  fill_pattern(large.bytes(), 5);
  DAT_LMR_TRIPLET send = large.triplet();
  DAT_LMR_TRIPLET large_receive = sink.triplet();
  const bool late = messages_wait(server.ia);  // so that the Send is still to be carried out when its post returns
  const auto post_receive = [&] {
    ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &large_receive, cookie(3), DAT_COMPLETION_DEFAULT_FLAG),
                Succeeds());
  };
  if (!late) {
    post_receive();
  }
  post_send(pair.client, client_buffers, 3);
  ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &send, cookie(2), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
  std::memset(static_cast<void*>(&send), 0xEE, sizeof send);
  if (late) {
    post_receive();
  }
  expect_completions(pair.server_evds.recv.get(), 2);
  EXPECT_TRUE(has_pattern(sink.bytes(), 5));
}

TEST_P(DtoPosting, CookiesReturnUnchanged) {
  // DTO-17, TYPE-5
  const Pair pair = make_connected_pair();
  for (const DAT_UINT64 value :
       {DAT_UINT64{0}, ~DAT_UINT64{0}, DAT_UINT64{0x8000000000000001}, DAT_UINT64{1}, DAT_UINT64{1}}) {
    DAT_LMR_TRIPLET sink = server_buffers.triplet(0);
    DAT_LMR_TRIPLET source = client_buffers.triplet(0);
    ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &sink, cookie(value), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &source, cookie(~value), DAT_COMPLETION_DEFAULT_FLAG),
                Succeeds());
    EXPECT_EQ(expect_completion(pair.client_evds.request.get()).user_cookie.as_64, ~value);
    EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).user_cookie.as_64, value);
  }
  static_assert(sizeof(DAT_DTO_COOKIE) == 8 && sizeof(DAT_RMR_COOKIE) == 8);
}

TEST_P(DtoPosting, AlignmentIsNeverRequired) {
  // DTO-18
  const Lmr source(client.ia, client.pz, 600);
  const Lmr sink(server.ia, server.pz, 600);
  const Pair pair = make_connected_pair();
  for (const std::size_t offset : {1, 3, 5, 13}) {
    for (const std::size_t length : {1, 7, 65, 511}) {
      fill_pattern(source.bytes().subspan(offset, length), length);
      DAT_LMR_TRIPLET to = sink.triplet(offset * 2, length);
      DAT_LMR_TRIPLET from = source.triplet(offset, length);
      ASSERT_THAT(dat_ep_post_recv(pair.server.get(), 1, &to, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
      ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &from, cookie(0), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
      EXPECT_EQ(expect_completion(pair.server_evds.recv.get()).transfered_length, length);
      EXPECT_TRUE(has_pattern(sink.bytes().subspan(offset * 2, length), length)) << offset << " " << length;
    }
  }
}

// What an upcall is given.
struct Reposter {
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  DAT_LMR_TRIPLET segment{};
  std::atomic<DAT_RETURN> rc = DAT_CLASS_ERROR;
};

void repost(DAT_PVOID instance, DAT_EVD_HANDLE) {
  auto* const self = static_cast<Reposter*>(instance);
  self->rc = dat_ep_post_recv(self->ep, 1, &self->segment, cookie(77), DAT_COMPLETION_DEFAULT_FLAG);
}

TEST_P(DtoPosting, AnUpcallMayPost) {
  // DTO-19, GEN-11
  Reposter reposter;
  DAT_CNO_HANDLE handle = DAT_HANDLE_NULL;
  require(dat_cno_create(server.ia.get(), {.instance_data = &reposter, .proxy_agent_func = &repost}, &handle),
          "dat_cno_create");
  const Owner<dat_cno_free> cno(handle);
  const Evd recv(server.ia, DAT_EVD_DTO_FLAG, 64, cno.get());
  const Ep ep(server.ia, server.pz,
              {.recv = recv.get(), .request = server.request.get(), .connect = server.connect.get()},
              default_ep_attr());
  reposter.ep = ep.get();
  reposter.segment = server_buffers.triplet(1);
  const Ep peer(client);
  connect_pair(server, ep.get(), peer.get());
  post_recv(ep, server_buffers, 0);
  post_send(peer, client_buffers, 0);
  // No thread waits on the EVD meanwhile, or the CNO would not be triggered.
  ASSERT_TRUE(eventually([&] { return reposter.rc == DAT_SUCCESS; })) << describe(reposter.rc);
  post_send(peer, client_buffers, 1);
  expect_completion(recv.get());
  EXPECT_EQ(expect_completion(recv.get()).user_cookie.as_64, 77u) << "posted by the upcall";
}

TEST_P(DtoPosting, ADisconnectedEndpointFlushesAtOnce) {
  // DTO-20, SEND-5, RECV-3, STAT-4
  const Pair pair = make_connected_pair();
  ASSERT_THAT(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(pair.client_evds.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(try_recv(pair.client, client_buffers, i), Succeeds());
    EXPECT_EQ(expect_completion(pair.client_evds.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64,
              static_cast<DAT_UINT64>(i));
    ASSERT_THAT(try_send(pair.client, client_buffers, i, 32, DAT_COMPLETION_SUPPRESS_FLAG), Succeeds());
    EXPECT_EQ(expect_completion(pair.client_evds.request.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64,
              static_cast<DAT_UINT64>(i));
  }
  EXPECT_EQ(pair.client.state(), DAT_EP_STATE_DISCONNECTED);
}

TEST_P(DtoPosting, HandlesAreChecked) {
  // DTO-21, GEN-2
  Ep freed(server);
  const DAT_EP_HANDLE stale = freed.get();
  freed.reset();
  DAT_LMR_TRIPLET segment = server_buffers.triplet(0);
  for (const DAT_HANDLE bad : {static_cast<DAT_HANDLE>(DAT_HANDLE_NULL), stale, server.pz.get(), server.recv.get()}) {
    for (const DAT_RETURN rc : {dat_ep_post_recv(bad, 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG),
                                dat_ep_post_send(bad, 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG)}) {
      EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
      EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_EP));
    }
  }
}

ANYDAT_OVER_ALL_WIRES(DtoPosting);

}  // namespace
}  // namespace anydat::test
