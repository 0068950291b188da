// SPDX-License-Identifier: BSD-3-Clause
// What holds for every call, shown with the calls of the SRQ: chapter 0 of the rules.
#include <atomic>
#include <cstddef>
#include <thread>

#include "srq_fixture.h"
#include "support/versions.h"

namespace anydat::test {
namespace {

class SrqGeneral : public SrqTest {};

TEST_P(SrqGeneral, SuccessIsZeroAndErrorsCarryClassAndType) {
  // GEN-1
  const Srq srq(server.ia, server.pz, 4);
  EXPECT_EQ(dat_srq_resize(srq.get(), 5), 0u);
  const DAT_RETURN rc = dat_srq_resize(srq.get(), 0);
  EXPECT_EQ(rc & 0xC0000000u, 0x80000000u);
  EXPECT_EQ(DAT_GET_TYPE(rc), static_cast<DAT_RETURN>(DAT_INVALID_PARAMETER));
}

TEST_P(SrqGeneral, BadHandleOfAnyKindIsRefusedByEveryCall) {
  // GEN-2, GEN-3, GEN-10
  Srq freed(server.ia, server.pz, 4);
  const DAT_SRQ_HANDLE stale = freed.get();
  freed.reset();
  const Ep ep(server);
  std::uint64_t zeroes[32]{};
  const std::vector<DAT_HANDLE> bad{DAT_HANDLE_NULL,
                                    stale,
                                    server.ia.get(),
                                    server.pz.get(),
                                    server.recv.get(),
                                    buffers.lmr().get(),
                                    ep.get(),
                                    static_cast<DAT_HANDLE>(zeroes),
                                    reinterpret_cast<DAT_HANDLE>(std::uintptr_t{1}),
                                    reinterpret_cast<DAT_HANDLE>(~std::uintptr_t{7})};
  DAT_SRQ_PARAM param{};
  DAT_LMR_TRIPLET segment = buffers.triplet(0);
  for (const DAT_HANDLE handle : bad) {
    for (const DAT_RETURN rc :
         {dat_srq_query(handle, DAT_SRQ_FIELD_ALL, &param), dat_srq_resize(handle, 4), dat_srq_set_lw(handle, 1),
          dat_srq_post_recv(handle, 1, &segment, cookie(0)), dat_srq_free(handle)}) {
      EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE)) << handle;
      EXPECT_THAT(rc, HasSubtype(DAT_INVALID_HANDLE_SRQ)) << handle;
    }
  }
  EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED) << "dat_srq_free of an endpoint freed it";
}

TEST_P(SrqGeneral, FreedHandleValueStaysOutOfCirculation) {
  // GEN-4, GEN-5
  DAT_SRQ_HANDLE last = DAT_HANDLE_NULL;
  for (int i = 0; i < 100; ++i) {
    Srq srq(server.ia, server.pz, 1);
    EXPECT_NE(srq.get(), last) << "the value freed just before";
    last = srq.get();
    ASSERT_THAT(srq.free(), Succeeds());
    EXPECT_THAT(dat_srq_free(last), HasType(DAT_INVALID_HANDLE));
  }
}

TEST_P(SrqGeneral, FailedCallsChangeNothing) {
  // GEN-6
  const Srq srq(server.ia, server.pz, 4, 2);
  const Connection connection = connect_pair(server, srq, client);
  buffers.post(srq, 0, 4);
  send_and_wait(connection.client, 1);
  expect_completed(srq, connection.server, 3);
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 3), Succeeds());
  const DAT_SRQ_PARAM before = srq.query();
  DAT_LMR_TRIPLET segment = buffers.triplet(0);
  DAT_SRQ_PARAM untouched{};
  EXPECT_NE(dat_srq_resize(srq.get(), 3), DAT_RETURN{DAT_SUCCESS});
  EXPECT_NE(dat_srq_resize(srq.get(), 0), DAT_RETURN{DAT_SUCCESS});
  EXPECT_NE(dat_srq_set_lw(srq.get(), 5), DAT_RETURN{DAT_SUCCESS});
  EXPECT_NE(dat_srq_post_recv(srq.get(), 1, &segment, cookie(0)), DAT_RETURN{DAT_SUCCESS});
  EXPECT_NE(dat_srq_post_recv(srq.get(), 3, &segment, cookie(0)), DAT_RETURN{DAT_SUCCESS});
  EXPECT_NE(dat_srq_free(srq.get()), DAT_RETURN{DAT_SUCCESS});
  EXPECT_NE(dat_srq_query(srq.get(), static_cast<DAT_SRQ_PARAM_MASK>(0x1FF), &untouched), DAT_RETURN{DAT_SUCCESS});
  EXPECT_EQ(untouched.max_recv_dtos, 0);
  const DAT_SRQ_PARAM after = srq.query();
  EXPECT_EQ(after.max_recv_dtos, before.max_recv_dtos);
  EXPECT_EQ(after.max_recv_iov, before.max_recv_iov);
  EXPECT_EQ(after.low_watermark, before.low_watermark);
  EXPECT_EQ(after.available_dto_count, before.available_dto_count);
  EXPECT_EQ(after.outstanding_dto_count, before.outstanding_dto_count);
  expect_no_event(server.ia.async_evd());
  expect_completion(server.recv.get());
  pass_message(connection, 2);
  expect_low_watermark(server, srq);  // it is still armed
}

TEST_P(SrqGeneral, OfSeveralErrorsOneIsReported) {
  // GEN-8: which one is not prescribed.
  DAT_SRQ_ATTR attr{.max_recv_dtos = -1, .max_recv_iov = 0, .low_watermark = -1};
  DAT_SRQ_HANDLE handle = DAT_HANDLE_NULL;
  const DAT_RETURN rc = dat_srq_create(server.ia.get(), DAT_HANDLE_NULL, &attr, &handle);
  EXPECT_TRUE(is_type(rc, DAT_INVALID_HANDLE) || is_type(rc, DAT_INVALID_PARAMETER)) << describe(rc);
}

TEST_P(SrqGeneral, FullQueueFailsWithoutQueuing) {
  // GEN-9, GEN-11
  const Srq srq(server.ia, server.pz, 1);
  buffers.post(srq, 0, 1);
  EXPECT_THAT(buffers.try_post(srq, 1), HasType(DAT_INSUFFICIENT_RESOURCES));
  EXPECT_EQ(counts(srq), (Counts{.available = 1, .outstanding = 1}));
}

TEST_P(SrqGeneral, ContextOfTheConsumerSurvivesEverything) {
  // GEN-15
  const Srq srq(server.ia, server.pz, 8);
  Connection connection = connect_pair(server, srq, client);
  DAT_CONTEXT context{};
  for (const DAT_HANDLE object : {srq.get(), connection.server.get()}) {
    ASSERT_THAT(dat_get_consumer_context(object, &context), Succeeds());
    EXPECT_EQ(context.as_64, 0u) << "a new object";
    context.as_64 = 0x123456789ABCDEFu;
    ASSERT_THAT(dat_set_consumer_context(object, context), Succeeds());
  }
  buffers.post(srq, 0, 2);
  pass_message(connection);
  ASSERT_THAT(dat_srq_resize(srq.get(), 20), Succeeds());
  ASSERT_THAT(dat_srq_set_lw(srq.get(), 5), Succeeds());
  ASSERT_THAT(dat_ep_disconnect(connection.server.get(), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  ASSERT_THAT(dat_ep_reset(connection.server.get()), Succeeds());
  for (const DAT_HANDLE object : {srq.get(), connection.server.get()}) {
    ASSERT_THAT(dat_get_consumer_context(object, &context), Succeeds());
    EXPECT_EQ(context.as_64, 0x123456789ABCDEFu);
  }
}

TEST_P(SrqGeneral, CreatingIsSafeFromManyThreads) {
  // MT-1
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        DAT_SRQ_ATTR attr{.max_recv_dtos = 4, .max_recv_iov = 1, .low_watermark = 0};
        DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
        DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
        const DAT_EP_ATTR ep_attr = default_srq_ep_attr();
        failures += dat_srq_create(server.ia.get(), server.pz.get(), &attr, &srq) == DAT_SUCCESS ? 0 : 1;
        failures += dat_ep_create_with_srq(server.ia.get(), server.pz.get(), server.recv.get(), server.request.get(),
                                           server.connect.get(), srq, &ep_attr, &ep) == DAT_SUCCESS
                        ? 0
                        : 1;
        failures += dat_ep_free(ep) == DAT_SUCCESS ? 0 : 1;
        failures += dat_srq_free(srq) == DAT_SUCCESS ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failures, 0);
}

TEST_P(SrqGeneral, PostingIsSafeFromManyThreadsOnOneQueue) {
  // MT-2
  ASSERT_EQ(server.ia.provider().is_thread_safe, DAT_TRUE);
  const Srq srq(server.ia, server.pz, 40);
  std::atomic<int> accepted = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 15; ++i) {
        accepted += buffers.try_post(srq, t * 15 + i) == DAT_SUCCESS ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(accepted, 40) << "of 60 posts exactly as many succeed as fit";
  EXPECT_EQ(counts(srq), (Counts{.available = 40, .outstanding = 40}));
}

TEST_P(SrqGeneral, FreeingAQueueInUseByAnotherThreadHarmsNoOther) {
  // MT-4
  const Srq other(server.ia, server.pz, 4);
  const Connection connection = connect_pair(server, other, client);
  buffers.post(other, 0, 2);
  for (int round = 0; round < 20; ++round) {
    Srq victim(server.ia, server.pz, 50, 1);
    const DAT_SRQ_HANDLE handle = victim.get();
    std::atomic<int> calls = 0;
    std::atomic<int> unexpected = 0;
    std::thread user([&] {
      DAT_SRQ_PARAM param{};
      for (int i = 0; i < 50; ++i, ++calls) {
        DAT_LMR_TRIPLET segment = buffers.triplet(10);
        const DAT_RETURN posted = dat_srq_post_recv(handle, 1, &segment, cookie(0));
        const DAT_RETURN queried = dat_srq_query(handle, DAT_SRQ_FIELD_ALL, &param);
        unexpected += posted == DAT_SUCCESS || is_type(posted, DAT_INVALID_HANDLE) ? 0 : 1;
        unexpected += queried == DAT_SUCCESS || is_type(queried, DAT_INVALID_HANDLE) ? 0 : 1;
      }
    });
    while (calls < 5) {
      std::this_thread::yield();
    }
    EXPECT_THAT(victim.free(), Succeeds());
    user.join();
    EXPECT_EQ(unexpected, 0);
  }
  EXPECT_EQ(counts(other), (Counts{.available = 2, .outstanding = 2}));
  pass_message(connection);
}

TEST_P(SrqGeneral, TripletsAndCookiesHaveTheirSizes) {
  // TYPE-1, TYPE-5, D2-SRQ-4: all of these tests hold for 2.0, too
  EXPECT_EQ(sizeof(DAT_LMR_TRIPLET), kIsVersion1 ? 24u : 16u);
  EXPECT_EQ(offsetof(DAT_LMR_TRIPLET, lmr_context), kIsVersion1 ? 0u : 12u);
  EXPECT_EQ(offsetof(DAT_LMR_TRIPLET, virtual_address), kIsVersion1 ? 8u : 0u);
  EXPECT_EQ(offsetof(DAT_LMR_TRIPLET, segment_length), kIsVersion1 ? 16u : 8u);
  EXPECT_EQ(sizeof(DAT_DTO_COOKIE), 8u);
  const Srq srq(server.ia, server.pz, 1);
  DAT_LMR_TRIPLET segment = buffers.triplet(0);
  set_padding(segment, 0xFFFFFFFF);
  EXPECT_THAT(dat_srq_post_recv(srq.get(), 1, &segment, cookie(0)), Succeeds()) << "the pad is ignored";
}

ANYDAT_OVER_ALL_WIRES(SrqGeneral);

}  // namespace
}  // namespace anydat::test
