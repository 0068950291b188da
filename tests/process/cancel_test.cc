// SPDX-License-Identifier: BSD-3-Clause
// A program cancels threads that are inside the library. Each case is played by a process of its own, which a test can
// end if it hangs.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "footprint.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"
#include "support/threads.h"

namespace anydat::test {
namespace {

constexpr DAT_TIMEOUT kForMinutes = 600'000'000;

// A thread that can be cancelled, and whose join tells that from a crash, unlike those of std::thread.
class CancelledThread {
 public:
  explicit CancelledThread(std::function<void()> body) : body_(std::move(body)) {
    if (pthread_create(&thread_, nullptr, &CancelledThread::run, this) != 0) throw std::runtime_error("pthread_create");
  }
  void cancel() const { pthread_cancel(thread_); }
  // Whether it ended by being cancelled. A role that hangs here is killed by its test.
  bool join() {
    void* result = nullptr;
    pthread_join(thread_, &result);
    return result == PTHREAD_CANCELED;
  }
  // Objects of its frames were destroyed.
  bool unwound() const { return unwound_; }

 private:
  static void* run(void* self) {
    auto* const own = static_cast<CancelledThread*>(self);
    struct Frame {
      CancelledThread* thread;
      ~Frame() { thread->unwound_ = true; }
    } frame{own};
    try {
      own->body_();
    } catch (const std::exception& error) {
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);  // saying so is a cancellation point
      ADD_FAILURE() << error.what();
    }
    return nullptr;
  }

  std::function<void()> body_;
  std::atomic<bool> unwound_ = false;
  pthread_t thread_{};
};

// What a process holds between two instances: what it keeps from the first on, as the module for devices does its
// descriptors, is not counted.
Footprint footprint_between_instances(const Wire& wire) {
  { const Ia first(wire); }
  return Footprint::here();
}

DAT_EVENT software_event() {
  DAT_EVENT event{};
  event.event_number = DAT_SOFTWARE_EVENT;
  return event;
}

void wait_on(DAT_EVD_HANDLE evd) {
  DAT_EVENT event{};
  DAT_COUNT more = 0;
  dat_evd_wait(evd, kForMinutes, 1, &event, &more);
}

// Whether the thread has got into its wait: another one is refused.
bool has_waiter(DAT_EVD_HANDLE evd) {
  DAT_EVENT event{};
  return DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) == DAT_INVALID_STATE;
}

// Threads wait on EVDs, one of them driving the adapter for all. Each is cancelled in turn, then everything goes on as
// if they had never been: the EVDs can be waited on, others were not disturbed, the instance closes.
void play_cancelled_waiters(RoleContext& context) {
  constexpr int kThreads = 4;
  const Footprint before = footprint_between_instances(context.wire);
  {
    Side server(context.wire), client(context.wire);
    const Lmr sink(server.ia, server.pz, 64), source(client.ia, client.pz, 64);
    const Connection connection = connect_pair(server, client);
    std::list<Evd> evds;
    std::list<CancelledThread> threads;
    for (int i = 0; i < kThreads; ++i) {
      const DAT_EVD_HANDLE evd = evds.emplace_back(server.ia, DAT_EVD_SOFTWARE_FLAG, 4).get();
      threads.emplace_back([evd] { wait_on(evd); });
      EXPECT_TRUE(eventually([&] { return has_waiter(evd); }));
    }
    // A message, whichever thread drives the adapter when it comes.
    const auto expect_traffic = [&] {
      DAT_LMR_TRIPLET to = sink.triplet(), from = source.triplet();
      require(dat_ep_post_recv(connection.server.get(), 1, &to, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
      require(dat_ep_post_send(connection.client.get(), 1, &from, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
      expect_completion(server.recv.get());
      expect_completion(client.request.get());
    };
    expect_traffic();
    while (!threads.empty()) {
      threads.front().cancel();
      EXPECT_TRUE(threads.front().join());
      EXPECT_TRUE(threads.front().unwound());
      threads.pop_front();
      expect_traffic();
      const DAT_EVENT event = software_event();
      require(dat_evd_post_se(evds.front().get(), &event), "dat_evd_post_se");
      expect_event(evds.front().get(), DAT_SOFTWARE_EVENT);
      require(evds.front().free(), "dat_evd_free");
      evds.pop_front();
    }
  }
  expect_back_to(before);
}
const Role kCancelledWaiters("cancelled-waiters", play_cancelled_waiters);

// The same for threads that wait on one CNO, whose trigger goes to one of those that are left.
void play_cancelled_cno_waiters(RoleContext& context) {
  Ia ia(context.wire);
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  require(dat_cno_create(ia.get(), DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), "dat_cno_create");
  {
    Evd evd(ia, DAT_EVD_SOFTWARE_FLAG, 64, cno);
    std::atomic<int> triggers = 0;
    const auto wait_for_one = [&] {
      DAT_EVD_HANDLE by = DAT_HANDLE_NULL;
      if (dat_cno_wait(cno, kForMinutes, &by) == DAT_SUCCESS) ++triggers;
    };
    const DAT_EVENT event = software_event();
    for (int round = 0; round < 20; ++round) {
      CancelledThread first(wait_for_one), second(wait_for_one);
      const int before = triggers;
      // The event and the cancelling meet; what the cancelled thread was given goes to the other.
      if (round % 2 == 0) first.cancel();
      require(dat_evd_post_se(evd.get(), &event), "dat_evd_post_se");
      if (round % 2 != 0) first.cancel();
      const bool cancelled = first.join();
      if (!cancelled) require(dat_evd_post_se(evd.get(), &event), "dat_evd_post_se");
      EXPECT_FALSE(second.join());
      EXPECT_EQ(triggers - before, cancelled ? 1 : 2);
      drain(evd.get());
    }
  }
  require(dat_cno_free(cno), "dat_cno_free");
}
const Role kCancelledCnoWaiters("cancelled-cno-waiters", play_cancelled_cno_waiters);

// A thread that has been cancelled makes other calls: none of them is where it ends.
void play_cancelled_worker(RoleContext& context) {
  const Footprint before = footprint_between_instances(context.wire);
  std::atomic<int> steps = 0;
  std::atomic<bool> cancelled = false;
  CancelledThread worker([&] {
    while (!cancelled) ::sched_yield();  // no cancellation point
    {
      Side server(context.wire), client(context.wire);
      const Lmr sink(server.ia, server.pz, 64), source(client.ia, client.pz, 64);
      Ep passive(server), active(client);
      const DAT_CONN_QUAL qualifier = server.listen();
      require(dat_ep_connect(active.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                             DAT_CONNECT_DEFAULT_FLAG),
              "dat_ep_connect");
      ++steps;
      DAT_EVENT event{};
      while (dat_evd_dequeue(server.requests.get(), &event) != DAT_SUCCESS)
        dat_evd_dequeue(client.connect.get(), &event);
      require(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, passive.get(), 0, nullptr),
              "dat_cr_accept");
      while (passive.state() != DAT_EP_STATE_CONNECTED || active.state() != DAT_EP_STATE_CONNECTED) {
        dat_evd_dequeue(server.connect.get(), &event);
        dat_evd_dequeue(client.connect.get(), &event);
      }
      ++steps;
      for (int i = 0; i < 100; ++i) {
        DAT_LMR_TRIPLET to = sink.triplet(), from = source.triplet();
        require(dat_ep_post_recv(passive.get(), 1, &to, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
        require(dat_ep_post_send(active.get(), 1, &from, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
        for (bool sent = false, received = false; !sent || !received;) {
          received |= dat_evd_dequeue(server.recv.get(), &event) == DAT_SUCCESS;
          sent |= dat_evd_dequeue(client.request.get(), &event) == DAT_SUCCESS;
        }
      }
      ++steps;
      require(dat_ep_disconnect(active.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
      while (passive.state() != DAT_EP_STATE_DISCONNECTED || active.state() != DAT_EP_STATE_DISCONNECTED) {
        dat_evd_dequeue(server.connect.get(), &event);
        dat_evd_dequeue(client.connect.get(), &event);
      }
      drain(server.connect.get());
      drain(client.connect.get());
    }
    ++steps;
    pthread_testcancel();
  });
  worker.cancel();
  cancelled = true;
  EXPECT_TRUE(worker.join());
  EXPECT_EQ(steps, 4);
  expect_back_to(before);
}
const Role kCancelledWorker("cancelled-worker", play_cancelled_worker);

class Cancel : public testing::TestWithParam<Wire> {
 protected:
  static void play(const char* role) { EXPECT_EQ(PeerProcess(role, GetParam()).wait_exit(), 0); }
};

TEST_P(Cancel, OfThreadsInEvdWaitLeavesEverythingInOrder) {
  play("cancelled-waiters");
}

TEST_P(Cancel, OfAThreadInCnoWaitPassesItsTriggerOn) {
  play("cancelled-cno-waiters");
}

TEST_P(Cancel, EndsAThreadInNoOtherCall) {
  play("cancelled-worker");
}

INSTANTIATE_TEST_SUITE_P(Wires, Cancel, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
