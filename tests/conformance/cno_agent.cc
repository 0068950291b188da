// SPDX-License-Identifier: BSD-3-Clause
// OS wait proxy agents: the agent rules of section 8 of part 1.
#include <anydat/anydat.h>

#include <algorithm>
#include <cstring>
#include <future>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

class CnoAgent : public EvdTest {
 protected:
  CountingAgent agent;
  Cno cno{ia, agent.agent()};
  Evd noting{ia, DAT_EVD_SOFTWARE_FLAG, kLength, cno.get()};

  void set(CountingAgent& new_agent) { ASSERT_THAT(dat_cno_modify_agent(cno.get(), new_agent.agent()), Succeeds()); }
  bool set_now() const { return query_cno(cno.get()).agent.proxy_agent_func != nullptr; }
  // The release of the last EVD calls agents too; these tests count their own calls only.
  void TearDown() override { ASSERT_THAT(dat_cno_modify_agent(cno.get(), no_agent()), Succeeds()); }
};

// CNO-AGT-8, CNO-WAIT-11: one that is due when the EVD goes.
TEST_P(CnoAgent, IsNotCalledWithAnEvdThatHasBeenFreed) {
  struct Gate {
    std::atomic<bool> entered = false;
    std::atomic<bool> open = false;
  } gate;
  const auto holds = [](DAT_PVOID data, DAT_EVD_HANDLE) {
    auto* own = static_cast<Gate*>(data);
    own->entered = true;
    while (!own->open) std::this_thread::yield();
  };
  const Cno first(ia, DAT_OS_WAIT_PROXY_AGENT{&gate, holds});
  const Evd holding(ia, DAT_EVD_SOFTWARE_FLAG, kLength, first.get());
  post(holding.get());
  ASSERT_TRUE(eventually([&] { return gate.entered.load(); }));
  Evd gone(ia, DAT_EVD_SOFTWARE_FLAG, kLength, cno.get());
  post(gone.get());
  EXPECT_THAT(gone.free(), Succeeds());
  gate.open = true;
  ASSERT_TRUE(agent.eventually_called(1));
  EXPECT_EQ(agent.last_evd(), DAT_HANDLE_NULL);
}

// CNO-AGT-1
TEST_P(CnoAgent, IsCalledWithItsDataAndTheEvd) {
  post(noting.get());
  EXPECT_TRUE(agent.eventually_called(1));
  EXPECT_EQ(agent.last_evd(), noting.get());
}

// CNO-AGT-2, CNO-QUERY-2
TEST_P(CnoAgent, IsCalledOnceForEachTimeItIsSet) {
  EXPECT_TRUE(set_now());
  post(noting.get());
  ASSERT_TRUE(agent.eventually_called(1));
  EXPECT_FALSE(set_now());
  EXPECT_EQ(query_cno(cno.get()).agent.instance_data, nullptr);
  post_range(noting.get(), 2, 3);
  EXPECT_TRUE(take_trigger(cno.get()));
  EXPECT_EQ(agent.calls(), 1);
  set(agent);
  EXPECT_TRUE(set_now());
  post(noting.get());
  EXPECT_TRUE(agent.eventually_called(2));
}

// CNO-AGT-2: it has left the CNO before it is called, so it finds none there and may set itself again.
TEST_P(CnoAgent, HasLeftTheCnoWhenItIsCalled) {
  struct Look {
    DAT_CNO_HANDLE cno;
    std::atomic<bool> called = false;
    std::atomic<bool> was_set = true;
  } look{.cno = cno.get()};
  const auto looks = [](DAT_PVOID data, DAT_EVD_HANDLE) {
    auto* own = static_cast<Look*>(data);
    own->was_set = query_cno(own->cno).agent.proxy_agent_func != nullptr;
    own->called = true;
  };
  ASSERT_THAT(dat_cno_modify_agent(cno.get(), {&look, looks}), Succeeds());
  post(noting.get());
  ASSERT_TRUE(eventually([&] { return look.called.load(); }));
  EXPECT_FALSE(look.was_set);
}

// CNO-AGT-3
TEST_P(CnoAgent, ComesInAdditionToWaitersAndLatch) {
  post(noting.get());
  EXPECT_TRUE(agent.eventually_called(1));
  EXPECT_EQ(wait_cno(cno.get(), 0).evd, noting.get());
  set(agent);
  BlockedCnoWait waiter(cno.get());
  post(noting.get());
  EXPECT_EQ(waiter.result().evd, noting.get());
  EXPECT_TRUE(agent.eventually_called(2));
}

// CNO-AGT-4
TEST_P(CnoAgent, IsCalledAlthoughAnEarlierTriggerIsStillLatched) {
  for (int i = 1; i <= 3; ++i) {
    post(noting.get());
    ASSERT_TRUE(agent.eventually_called(i));
    set(agent);
  }
}

// CNO-AGT-5
TEST_P(CnoAgent, IsNotCalledForATriggerFromBeforeItWasSet) {
  post(noting.get());
  ASSERT_TRUE(agent.eventually_called(1));
  CountingAgent later;
  set(later);
  EXPECT_TRUE(take_trigger(cno.get()));
  EXPECT_TRUE(set_now());
  EXPECT_EQ(later.calls(), 0);
  post(noting.get());
  EXPECT_TRUE(later.eventually_called(1));
}

// CNO-AGT-6, CNO-WAIT-8
TEST_P(CnoAgent, IsCalledWithoutAnEvdWhenTheLastOneIsFreed) {
  Evd second(ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
  ASSERT_THAT(second.free(), Succeeds());
  EXPECT_EQ(agent.calls(), 0) << "not the last";
  ASSERT_THAT(noting.free(), Succeeds());
  EXPECT_TRUE(agent.eventually_called(1));
  EXPECT_EQ(agent.last_evd(), DAT_HANDLE_NULL);
}

// CNO-AGT-6: moving the last EVD away is no teardown.
TEST_P(CnoAgent, IsNotCalledWhenTheLastEvdIsMovedAway) {
  ASSERT_THAT(dat_evd_modify_cno(noting.get(), DAT_HANDLE_NULL), Succeeds());
  EXPECT_TRUE(set_now());
  EXPECT_EQ(agent.calls(), 0);
}

// CNO-AGT-7, GEN-11: it holds no lock up: it takes the event, sets itself again and posts the next, a hundred times.
TEST_P(CnoAgent, MayDequeueSetItselfAndPost) {
  struct Chain {
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE evd;
    std::atomic<int> links = 0;
    std::atomic<int> failures = 0;
    static void follow(DAT_PVOID data, DAT_EVD_HANDLE triggered) {
      auto* chain = static_cast<Chain*>(data);
      DAT_EVENT event{};
      const bool good = triggered == chain->evd && dat_evd_dequeue(chain->evd, &event) == DAT_SUCCESS &&
                        dat_cno_modify_agent(chain->cno, {data, follow}) == DAT_SUCCESS;
      chain->failures += good ? 0 : 1;
      if (++chain->links < 100) chain->failures += try_post(chain->evd) == DAT_SUCCESS ? 0 : 1;
    }
  } chain{.cno = cno.get(), .evd = noting.get()};
  ASSERT_THAT(dat_cno_modify_agent(cno.get(), {&chain, Chain::follow}), Succeeds());
  post(noting.get());
  EXPECT_TRUE(eventually([&] { return chain.links == 100; })) << chain.links;
  EXPECT_EQ(chain.failures, 0);
}

// CNO-AGT-7: it sets itself again and posts the event that calls it next, and is still not called within itself,
// whatever the number of such events: its stack is that of one call.
TEST_P(CnoAgent, IsNeverCalledWithinItself) {
  struct Chain {
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE evd;
    std::atomic<int> links = 0;
    std::atomic<int> depth = 0;
    std::atomic<int> most = 0;
    static void follow(DAT_PVOID data, DAT_EVD_HANDLE) {
      auto* chain = static_cast<Chain*>(data);
      chain->most = std::max<int>(chain->most, ++chain->depth);
      dat_cno_modify_agent(chain->cno, {data, follow});
      if (++chain->links < 200) try_post(chain->evd);
      drain(chain->evd);
      --chain->depth;
    }
  } chain{.cno = cno.get(), .evd = noting.get()};
  ASSERT_THAT(dat_cno_modify_agent(cno.get(), {&chain, Chain::follow}), Succeeds());
  post(noting.get());
  EXPECT_TRUE(eventually([&] { return chain.links >= 200 && chain.depth == 0; })) << chain.links;
  EXPECT_EQ(chain.most, 1);
}

// CNO-AGT-7: whichever thread it runs in, the others get on, also the one that posts.
TEST_P(CnoAgent, OthersMayWorkWhileItRuns) {
  struct Gate {
    std::atomic<bool> inside = false;
    std::atomic<bool> open = false;
    std::atomic<bool> passed = false;
  } gate;
  const auto wait_at = [](DAT_PVOID data, DAT_EVD_HANDLE) {
    auto* own = static_cast<Gate*>(data);
    own->inside = true;
    while (!own->open) {
      std::this_thread::yield();
    }
    own->passed = true;
  };
  ASSERT_THAT(dat_cno_modify_agent(cno.get(), {&gate, wait_at}), Succeeds());
  std::thread poster([&] { post(noting.get()); });
  const bool inside = eventually([&] { return gate.inside.load(); });
  EXPECT_TRUE(inside);
  EXPECT_EQ(take(noting.get()), 1u);
  EXPECT_TRUE(take_trigger(cno.get()));
  post(evd.get(), 5);
  EXPECT_EQ(value_of(wait_evd(evd.get(), 0).event), 5u);
  {
    const Evd made(ia, DAT_EVD_SOFTWARE_FLAG, 4);
    const AsyncSource source(ia);
    source.fire();
    expect_event(ia.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
  }
  gate.open = true;
  poster.join();
  EXPECT_TRUE(eventually([&] { return gate.passed.load(); })) << "the agent still looks at the gate";
}

// CNO-AGT-8
TEST_P(CnoAgent, EvdIsAHintWhoseEventMayBeGone) {
  post(noting.get());
  take(noting.get());
  ASSERT_TRUE(agent.eventually_called(1));
  EXPECT_EQ(agent.last_evd(), noting.get());
  EXPECT_FALSE(poll_event(noting.get()));
}

// CNO-MOD-1
TEST_P(CnoAgent, NewAgentReplacesTheOld) {
  CountingAgent other;
  set(other);
  EXPECT_EQ(query_cno(cno.get()).agent.instance_data, &other);
  post(noting.get());
  EXPECT_TRUE(other.eventually_called(1));
  EXPECT_EQ(agent.calls(), 0);
}

// CNO-MOD-2
TEST_P(CnoAgent, RemovedAgentIsNotCalled) {
  ASSERT_THAT(dat_cno_modify_agent(cno.get(), no_agent()), Succeeds());
  EXPECT_FALSE(set_now());
  post(noting.get());
  EXPECT_TRUE(take_trigger(cno.get()));
  EXPECT_EQ(agent.calls(), 0);
}

// CNO-MOD-3, CNO-MOD-1: of a change and a trigger that meet, each trigger calls one agent at most, and none is called
// twice for one setting.
TEST_P(CnoAgent, ChangingItBesideTriggersCallsEachSettingAtMostOnce) {
  constexpr int kSettings = 300;
  static CountingAgent others[2];  // one that is just being called may run on when the test is over
  const int before = others[0].calls() + others[1].calls();
  const auto called = [&] { return others[0].calls() + others[1].calls() - before; };
  std::atomic<bool> done = false;
  std::atomic<int> posted = 0;
  std::thread poster([&] {
    while (!done) {
      posted += try_post(noting.get()) == DAT_SUCCESS ? 1 : 0;
      drain(noting.get());
    }
  });
  for (int i = 0; i < kSettings; ++i) {
    set(others[i % 2]);
  }
  EXPECT_TRUE(eventually([&] { return called() > 0; }));
  done = true;
  poster.join();
  ASSERT_THAT(dat_cno_modify_agent(cno.get(), no_agent()), Succeeds());
  EXPECT_LE(called(), kSettings);
  EXPECT_LE(called() + agent.calls(), posted);
}

// CNO-AGT-1: any kind of event triggers it, one that the adapter's own thread delivers too.
TEST_P(CnoAgent, IsCalledForEventsOfTheAdapter) {
  ASSERT_THAT(dat_evd_modify_cno(ia.async_evd(), cno.get()), Succeeds());
  const AsyncSource source(ia);
  source.fire();
  EXPECT_TRUE(agent.eventually_called(1));
  EXPECT_EQ(agent.last_evd(), ia.async_evd());
  expect_event(ia.async_evd(), DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
  ASSERT_THAT(dat_evd_modify_cno(ia.async_evd(), DAT_HANDLE_NULL), Succeeds());
}

// CNO-FREE-3, GEN-11: the data of an agent is the program's again when the CNO has been freed, also if the agent has
// only just begun.
TEST_P(CnoAgent, IsOverWhenTheCnoHasBeenFreed) {
  struct Stay {
    std::atomic<bool> inside = false;
    std::atomic<bool> may_go = false;
    std::atomic<bool> over = false;
    static void in(DAT_PVOID data, DAT_EVD_HANDLE) {
      auto* own = static_cast<Stay*>(data);
      own->inside = true;
      while (!own->may_go) std::this_thread::yield();
      own->over = true;
    }
  } stay;
  Cno gone(ia, {&stay, Stay::in});
  Evd triggering(ia, DAT_EVD_SOFTWARE_FLAG, 4, gone.get());
  std::thread poster([&] { post(triggering.get()); });
  EXPECT_TRUE(eventually([&] { return stay.inside.load(); }));
  EXPECT_THAT(dat_evd_modify_cno(triggering.get(), DAT_HANDLE_NULL), Succeeds());
  auto freed = std::async(std::launch::async, [&] { return gone.free(); });
  EXPECT_EQ(freed.wait_for(quiet_time()), std::future_status::timeout) << "the agent is still inside";
  stay.may_go = true;
  EXPECT_THAT(freed.get(), Succeeds());
  EXPECT_TRUE(stay.over);
  poster.join();
}

// CNO-AGT-7 does not ask for it, but an agent may free its own CNO.
TEST_P(CnoAgent, MayFreeItsCno) {
  struct Last {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    std::atomic<int> done = 0;
    std::atomic<DAT_RETURN> rc = DAT_SUCCESS;
    static void call(DAT_PVOID data, DAT_EVD_HANDLE) {
      auto* own = static_cast<Last*>(data);
      dat_evd_modify_cno(own->evd, DAT_HANDLE_NULL);
      own->rc = dat_cno_free(own->cno);
      ++own->done;
    }
  } last;
  Cno freed(ia, {&last, Last::call});
  Evd triggering(ia, DAT_EVD_SOFTWARE_FLAG, 4, freed.get());
  last.evd = triggering.get();
  last.cno = freed.release();
  post(triggering.get());
  EXPECT_TRUE(eventually([&] { return last.done == 1; }));
  EXPECT_THAT(last.rc.load(), Succeeds());
}

// How often a thread has slept on behalf of the adapter.
DAT_UINT64 sleeps_of(const Ia& ia) {
  ANYDAT_COUNTER counters[16];
  DAT_COUNT count = 0;
  require(anydat_get_counters(ia.get(), 16, counters, &count), "anydat_get_counters");
  const auto* const row = std::find_if(
      counters, counters + count, [](const ANYDAT_COUNTER& counter) { return !std::strcmp(counter.name, "sleeps"); });
  return row == counters + count ? 0 : row->value;
}

// Returns when no thread drives the adapter any more and all its own sleep for good, which is longer than the 2 ms for
// which they look after one another.
void wait_until_it_sleeps(const Ia& ia) {
  ASSERT_TRUE(eventually([&] {
    const DAT_UINT64 before = sleeps_of(ia);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return sleeps_of(ia) == before;
  }));
}

using CnoAgentOfPosts = MessageTest;

// CNO-AGT-1, EVM-33: a request that completes while it is being posted calls the agent, although the program does not
// look and the adapter sleeps.
TEST_P(CnoAgentOfPosts, IsCalledForACompletionInsideThePost) {
  const Connection connection = connect_pair(server, client);
  CountingAgent agent;
  Cno cno(client.ia);
  ASSERT_THAT(dat_evd_modify_cno(client.request.get(), cno.get()), Succeeds());
  for (int i = 0; i < 5; ++i) {
    ASSERT_THAT(dat_cno_modify_agent(cno.get(), agent.agent()), Succeeds());
    post_recv(connection.server, i);
    wait_until_it_sleeps(client.ia);
    send(connection.client, i);
    ASSERT_TRUE(agent.eventually_called(i + 1)) << "of post " << i;
    EXPECT_EQ(agent.last_evd(), client.request.get());
  }
  expect_completions(client.request.get(), 5);
  expect_completions(server.recv.get(), 5);
  ASSERT_THAT(dat_evd_modify_cno(client.request.get(), DAT_HANDLE_NULL), Succeeds());
}

ANYDAT_OVER_ALL_WIRES(CnoAgent);
ANYDAT_OVER_ALL_WIRES(CnoAgentOfPosts);

}  // namespace
}  // namespace anydat::test
