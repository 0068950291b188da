// SPDX-License-Identifier: BSD-3-Clause
// dat_evd_free: section 7.10 of part 1.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <stdexcept>
#include <utility>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

// Keeps a thread inside of the call that it sleeps in: a signal's handler, which does not return before it is let go.
std::atomic<int> kept_threads;
std::atomic<int> door_of_handler{-1};

extern "C" void stay_in_handler(int) {
  const int error = errno;
  ++kept_threads;
  char unused = 0;
  while (::read(door_of_handler, &unused, 1) < 0 && errno == EINTR) {
  }
  errno = error;
}

class KeptInside {
 public:
  KeptInside() {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    door_of_handler = ends[0];
    outside_ = ends[1];
    kept_threads = 0;
    struct sigaction stay {};
    stay.sa_handler = stay_in_handler;
    ::sigaction(SIGUSR1, &stay, &before_);
  }
  ~KeptInside() {
    ::sigaction(SIGUSR1, &before_, nullptr);
    let_go();
    ::close(door_of_handler);
  }
  KeptInside(const KeptInside&) = delete;
  KeptInside& operator=(const KeptInside&) = delete;

  void keep(const BlockedWait& waiter) {
    const int before = kept_threads;
    waiter.wait_until_asleep();  // and has no lock that the freeing thread would wait for
    waiter.signal(SIGUSR1);
    if (!eventually([&] { return kept_threads > before; })) throw std::runtime_error("the handler does not run");
  }
  void let_go() {
    if (outside_ >= 0) ::close(outside_);  // the end of file opens the door to all
    outside_ = -1;
  }

 private:
  int outside_ = -1;
  struct sigaction before_ {};
};

class EvdFree : public MessageTest {
 protected:
  void expect_in_use(DAT_EVD_HANDLE evd, const char* by) {
    const DAT_RETURN rc = dat_evd_free(evd);
    EXPECT_THAT(rc, HasType(DAT_INVALID_STATE)) << by;
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_EVD_IN_USE)) << by;
    DAT_HANDLE_TYPE type{};
    EXPECT_THAT(dat_get_handle_type(evd, &type), Succeeds()) << "it is still there";
  }
};

// EVD-FREE-1, HND-2
TEST_P(EvdFree, HandleIsInvalidForEveryLaterCall) {
  Evd evd(server.ia, DAT_EVD_SOFTWARE_FLAG, 4);
  const DAT_EVD_HANDLE stale = evd.get();
  ASSERT_THAT(evd.free(), Succeeds());
  DAT_EVENT event = software_event(1);
  DAT_EVD_PARAM param{};
  DAT_CONTEXT context{};
  DAT_HANDLE_TYPE type{};
  for (const DAT_RETURN rc :
       {dat_evd_query(stale, DAT_EVD_FIELD_ALL, &param), dat_evd_modify_cno(stale, DAT_HANDLE_NULL),
        dat_evd_enable(stale), dat_evd_disable(stale), wait_evd(stale, 0).rc, dat_evd_dequeue(stale, &event),
        dat_evd_post_se(stale, &event), dat_evd_resize(stale, 4), dat_evd_set_unwaitable(stale),
        dat_evd_clear_unwaitable(stale), dat_set_consumer_context(stale, context),
        dat_get_consumer_context(stale, &context), dat_get_handle_type(stale, &type), dat_evd_free(stale)}) {
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
  }
}

// EVD-FREE-2, EVD-FREE-4
TEST_P(EvdFree, QueuedSoftwareEventsAreLostAndDoNotHinder) {
  Evd evd(server.ia, DAT_EVD_SOFTWARE_FLAG, 4);
  post_range(evd.get(), 1, 3);
  EXPECT_THAT(evd.free(), Succeeds());
}

// EVD-FREE-3, EVM-6, EP-CREATE-25: each object that feeds an EVD keeps it, and lets it go.
TEST_P(EvdFree, FedEvdIsInUseUntilItsSourcesAreGone) {
  Evd recv(server.ia, DAT_EVD_DTO_FLAG);
  Evd request(server.ia, DAT_EVD_DTO_FLAG);
  Evd connection(server.ia, DAT_EVD_CONNECTION_FLAG);
  Evd requests(server.ia, DAT_EVD_CR_FLAG);
  Ep ep(server.ia, server.pz, {recv.get(), request.get(), connection.get()}, default_ep_attr());
  expect_in_use(recv.get(), "the receives of an endpoint");
  expect_in_use(request.get(), "the requests of an endpoint");
  expect_in_use(connection.get(), "the connection of an endpoint");
  ep.reset();
  EXPECT_THAT(recv.free(), Succeeds());
  EXPECT_THAT(request.free(), Succeeds());
  EXPECT_THAT(connection.free(), Succeeds());

  Psp psp(server.ia, requests);
  expect_in_use(requests.get(), "a PSP");
  const DAT_CONN_QUAL qualifier = psp.qualifier();
  psp.reset();

  Ep reserved(server);
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
  ASSERT_THAT(dat_rsp_create(server.ia.get(), qualifier, reserved.get(), requests.get(), &rsp), Succeeds());
  expect_in_use(requests.get(), "an RSP");
  ASSERT_THAT(dat_rsp_free(rsp), Succeeds());
  EXPECT_THAT(requests.free(), Succeeds());
}

// EVD-FREE-3, EP-CSRQ-22, EVM-6
TEST_P(EvdFree, SrqEndpointFeedsItsEvdsToo) {
  Evd recv(server.ia, DAT_EVD_DTO_FLAG);
  const Srq srq(server.ia, server.pz, 4);
  {
    const Ep ep(server.ia, server.pz, {recv.get(), server.request.get(), server.connect.get()}, srq,
                default_srq_ep_attr());
    expect_in_use(recv.get(), "an endpoint with an SRQ");
  }
  EXPECT_THAT(recv.free(), Succeeds());
}

// EVD-FREE-3, EVD-FREE-9, OBJ-6
TEST_P(EvdFree, AsyncEvdOfAnInstanceIsInUse) {
  expect_in_use(server.ia.async_evd(), "the instance that made it");
  Evd shared(server.ia, DAT_EVD_ASYNC_FLAG);
  DAT_EVD_HANDLE handle = shared.get();
  DAT_IA_HANDLE second = DAT_HANDLE_NULL;
  ASSERT_THAT(open_ia(GetParam(), 0, &handle, &second), Succeeds());
  expect_in_use(shared.get(), "an instance that was given it");
  ASSERT_THAT(dat_ia_close(second, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  EXPECT_THAT(shared.free(), Succeeds());
}

// EVD-FREE-6, EVM-6
TEST_P(EvdFree, FormerSourcesAreUnaffected) {
  Evd before(server.ia, DAT_EVD_DTO_FLAG);
  Ep ep(server.ia, server.pz, {before.get(), server.request.get(), server.connect.get()}, default_ep_attr());
  DAT_EP_PARAM param{};
  param.recv_evd_handle = server.recv.get();
  ASSERT_THAT(dat_ep_modify(ep.get(), DAT_EP_FIELD_RECV_EVD_HANDLE, &param), Succeeds());
  ASSERT_THAT(before.free(), Succeeds());
  const Ep sender(client);
  post_recv(ep, 3);
  connect_pair(server, ep.get(), sender.get());
  send(sender, 1);
  EXPECT_EQ(expect_completion(server.recv.get()).user_cookie.as_64, 3u);
}

// EVD-FREE-7, CNO-WAIT-8
TEST_P(EvdFree, CnoIsReleasedWithItsLastEvd) {
  Cno cno(server.ia);
  Evd one(server.ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
  Evd two(server.ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
  BlockedCnoWait waiter(cno.get());
  ASSERT_THAT(one.free(), Succeeds());
  EXPECT_TRUE(waiter.stays_blocked()) << "not the last one";
  ASSERT_THAT(two.free(), Succeeds());
  const CnoResult result = waiter.result();
  EXPECT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.evd, DAT_HANDLE_NULL);
  EXPECT_THAT(cno.free(), Succeeds());
}

// EVD-FREE-5: a thread that cannot leave dat_evd_wait keeps the call that frees; so both of those that wait in an
// adapter, of which one sees to its progress.
TEST_P(EvdFree, WaiterHasLeftWhenTheCallReturns) {
  Evd led(server.ia, DAT_EVD_SOFTWARE_FLAG, 4);
  Evd followed(server.ia, DAT_EVD_SOFTWARE_FLAG, 4);
  BlockedWait leader(led.get(), 3);
  BlockedWait follower(followed.get(), 3);
  for (const auto& [evd, waiter] : {std::pair{&followed, &follower}, std::pair{&led, &leader}}) {
    std::future<DAT_RETURN> freed;  // goes when the thread has been let go
    KeptInside kept;
    kept.keep(*waiter);
    const DAT_EVD_HANDLE handle = evd->get();
    freed = std::async(std::launch::async, [&evd = *evd] { return evd.free(); });
    // The call has begun: it is no handle any more.
    DAT_EVD_PARAM param{};
    ASSERT_TRUE(eventually(
        [&] { return DAT_GET_TYPE(dat_evd_query(handle, DAT_EVD_FIELD_ALL, &param)) == DAT_INVALID_HANDLE; }));
    EXPECT_EQ(freed.wait_for(quiet_time()), std::future_status::timeout) << "the waiter is still inside";
    kept.let_go();
    EXPECT_THAT(freed.get(), Succeeds());
    EXPECT_THAT(waiter->result().rc, HasType(DAT_ABORT));
  }
}

// EVD-FREE-11: the provider answers for the consumer that can no longer hear of the request.
TEST_P(EvdFree, RequestsLostWithTheQueueAreRejected) {
  Evd requests(server.ia, DAT_EVD_CR_FLAG, 4);
  Psp psp(server.ia, requests);
  const Ep first(client);
  const Ep second(client);
  connect(first.get(), psp.qualifier());
  connect(second.get(), psp.qualifier());
  ASSERT_TRUE(eventually([&] { return queued(requests.get()) == 2; }));
  psp.reset();
  ASSERT_THAT(requests.free(), Succeeds());
  for (int i = 0; i < 2; ++i) {
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  }
  EXPECT_EQ(first.state(), DAT_EP_STATE_DISCONNECTED);
  EXPECT_EQ(second.state(), DAT_EP_STATE_DISCONNECTED);
}

// EVD-FREE-12
TEST_P(EvdFree, BadHandleIsRefusedAndFreesNothing) {
  for (const DAT_HANDLE bad : {DAT_HANDLE_NULL, server.ia.get(), server.pz.get()}) {
    EXPECT_THAT(dat_evd_free(bad), HasType(DAT_INVALID_HANDLE));
  }
  DAT_PZ_PARAM param{};
  EXPECT_THAT(dat_pz_query(server.pz.get(), DAT_PZ_FIELD_ALL, &param), Succeeds());
}

ANYDAT_OVER_ALL_WIRES(EvdFree);

}  // namespace
}  // namespace anydat::test
