// SPDX-License-Identifier: BSD-3-Clause
// dat_cno_create, dat_cno_query, dat_cno_modify_agent without triggers, dat_cno_free: sections 8.1 to 8.4 of part 1.
#include <cstring>
#include <mutex>
#include <set>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

class CnoObjects : public EvdTest {};

void never_called(DAT_PVOID, DAT_EVD_HANDLE) {
  ADD_FAILURE() << "the agent was called";
}

// CNO-CREATE-1, CNO-CREATE-2, OBJ-1
TEST_P(CnoObjects, NewCnoHasNoEvdsNoWaitersAndNoTrigger) {
  Cno cno(ia);
  EXPECT_EQ(query_cno(cno.get()).ia_handle, ia.get());
  EXPECT_FALSE(take_trigger(cno.get()));
  EXPECT_THAT(cno.free(), Succeeds()) << "refused if an EVD or a waiter were there";
}

// CNO-CREATE-1, CNO-CREATE-4, CNO-QUERY-2
TEST_P(CnoObjects, GivenAgentIsThere) {
  int data = 0;
  for (void* const instance_data : {static_cast<void*>(&data), static_cast<void*>(nullptr)}) {
    const Cno cno(ia, {instance_data, never_called});
    const DAT_OS_WAIT_PROXY_AGENT agent = query_cno(cno.get()).agent;
    EXPECT_EQ(agent.instance_data, instance_data);
    EXPECT_EQ(agent.proxy_agent_func, &never_called);
  }
}

// CNO-CREATE-2, CNO-CREATE-3, CNO-CREATE-7, CNO-MOD-5: no agent value is bad; one without a function is none.
TEST_P(CnoObjects, AgentWithoutFunctionIsNone) {
  int data = 0;
  for (void* const instance_data : {static_cast<void*>(&data), static_cast<void*>(nullptr)}) {
    const Cno cno(ia, {instance_data, nullptr});
    EXPECT_EQ(query_cno(cno.get()).agent.proxy_agent_func, nullptr);
    EXPECT_EQ(query_cno(cno.get()).agent.instance_data, nullptr);
    ASSERT_THAT(dat_cno_modify_agent(cno.get(), {&data, never_called}), Succeeds());
    ASSERT_THAT(dat_cno_modify_agent(cno.get(), {instance_data, nullptr}), Succeeds());
    EXPECT_EQ(query_cno(cno.get()).agent.proxy_agent_func, nullptr);
    Evd made(ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
    post(made.get());
    EXPECT_TRUE(take_trigger(cno.get()));
  }
}

// CNO-CREATE-5
TEST_P(CnoObjects, BadIaOrNullResultIsRefused) {
  DAT_CNO_HANDLE made = DAT_HANDLE_NULL;
  for (const DAT_HANDLE bad : {DAT_HANDLE_NULL, evd.get()}) {
    const DAT_RETURN rc = dat_cno_create(bad, no_agent(), &made);
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
  }
  EXPECT_THAT(dat_cno_create(ia.get(), no_agent(), nullptr), HasType(DAT_INVALID_PARAMETER));
}

// CNO-CREATE-6: there is a limit, and meeting it harms nothing.
TEST_P(CnoObjects, RunningOutOfCnosIsSaid) {
  std::vector<DAT_CNO_HANDLE> all;
  DAT_RETURN rc = DAT_SUCCESS;
  constexpr std::size_t kMany = 100'000;
  for (DAT_CNO_HANDLE made = DAT_HANDLE_NULL; all.size() < kMany; all.push_back(made)) {
    rc = dat_cno_create(ia.get(), no_agent(), &made);
    if (rc != DAT_SUCCESS) break;
  }
  EXPECT_TRUE(rc == DAT_SUCCESS || is_type(rc, DAT_INSUFFICIENT_RESOURCES)) << describe(rc);
  for (const DAT_CNO_HANDLE one : all) {
    ASSERT_THAT(dat_cno_free(one), Succeeds());
  }
  const Cno again(ia);
}

// CNO-CREATE-8, THR-1
TEST_P(CnoObjects, ManyThreadsCreateAtOnce) {
  std::mutex lock;
  std::set<DAT_CNO_HANDLE> all;
  in_threads(4, [&](int) {
    for (int i = 0; i < 100; ++i) {
      DAT_CNO_HANDLE made = DAT_HANDLE_NULL;
      const DAT_RETURN rc = dat_cno_create(ia.get(), no_agent(), &made);
      const std::lock_guard guard(lock);
      EXPECT_THAT(rc, Succeeds());
      all.insert(made);
    }
  });
  EXPECT_EQ(all.size(), 400u);
  for (const DAT_CNO_HANDLE one : all) {
    EXPECT_THAT(dat_cno_free(one), Succeeds());
  }
}

// CNO-QUERY-1, ARG-4, HND-8
TEST_P(CnoObjects, EachMaskBitFillsItsMember) {
  int data = 0;
  const Cno cno(ia, {&data, never_called});
  const auto ask = [&](DAT_CNO_PARAM_MASK mask) {
    DAT_CNO_PARAM param;
    std::memset(&param, 0xA5, sizeof param);
    EXPECT_THAT(dat_cno_query(cno.get(), mask, &param), Succeeds());
    return param;
  };
  EXPECT_EQ(ask(DAT_CNO_FIELD_IA_HANDLE).ia_handle, ia.get());
  EXPECT_EQ(ask(DAT_CNO_FIELD_AGENT).agent.instance_data, &data);
  EXPECT_EQ(ask(DAT_CNO_FIELD_AGENT).agent.proxy_agent_func, &never_called);
  EXPECT_EQ(ask(DAT_CNO_FIELD_ALL).ia_handle, ia.get());
  EXPECT_EQ(ask(DAT_CNO_FIELD_ALL).agent.instance_data, &data);
}

// CNO-QUERY-3, CNO-QUERY-4, ARG-3
TEST_P(CnoObjects, QueryRefusesBadArguments) {
  const Cno cno(ia);
  DAT_CNO_PARAM param{};
  for (const DAT_HANDLE bad : {DAT_HANDLE_NULL, ia.get(), evd.get()}) {
    EXPECT_THAT(dat_cno_query(bad, DAT_CNO_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
  }
  for (int bit = 2; bit < 31; ++bit) {
    EXPECT_THAT(dat_cno_query(cno.get(), static_cast<DAT_CNO_PARAM_MASK>(1u << bit), &param),
                HasType(DAT_INVALID_PARAMETER))
        << bit;
  }
  EXPECT_THAT(dat_cno_query(cno.get(), DAT_CNO_FIELD_ALL, nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_cno_query(cno.get(), static_cast<DAT_CNO_PARAM_MASK>(0), &param), Succeeds());
}

// CNO-QUERY-5
TEST_P(CnoObjects, QueryWorksWhileThreadsWait) {
  const Cno cno(ia);
  const Evd made(ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
  BlockedCnoWait waiter(cno.get());
  EXPECT_EQ(query_cno(cno.get()).ia_handle, ia.get());
  EXPECT_TRUE(waiter.stays_blocked());
  post(made.get());
  EXPECT_EQ(waiter.result().evd, made.get());
}

// CNO-FREE-1, HND-2
TEST_P(CnoObjects, FreedHandleIsInvalidForEveryLaterCall) {
  Cno cno(ia);
  const DAT_CNO_HANDLE stale = cno.get();
  ASSERT_THAT(cno.free(), Succeeds());
  DAT_CNO_PARAM param{};
  DAT_EVD_HANDLE made = DAT_HANDLE_NULL;
  DAT_CONTEXT context{};
  for (const DAT_RETURN rc :
       {dat_cno_query(stale, DAT_CNO_FIELD_ALL, &param), dat_cno_modify_agent(stale, no_agent()), wait_cno(stale, 0).rc,
        dat_evd_modify_cno(evd.get(), stale), dat_evd_create(ia.get(), 4, stale, DAT_EVD_SOFTWARE_FLAG, &made),
        dat_set_consumer_context(stale, context), dat_cno_free(stale)}) {
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
  }
}

// CNO-FREE-2, RC-6
TEST_P(CnoObjects, CnoWithAnEvdOrAWaiterIsInUse) {
  const auto expect_in_use = [](const Cno& cno) {
    const DAT_RETURN rc = dat_cno_free(cno.get());
    EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));
    EXPECT_THAT(rc, HasSubtype(DAT_INVALID_STATE_CNO_IN_USE));
  };
  Cno cno(ia);
  {
    const Evd made(ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
    expect_in_use(cno);
    post(made.get());
    EXPECT_EQ(wait_cno(cno.get(), 0).evd, made.get()) << "nothing has changed";
  }
  {
    BlockedCnoWait waiter(cno.get());
    expect_in_use(cno);
    EXPECT_TRUE(waiter.stays_blocked());
    const Evd made(ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
    post(made.get());
    EXPECT_EQ(waiter.result().evd, made.get());
  }
  EXPECT_THAT(cno.free(), Succeeds());
}

// CNO-FREE-3
TEST_P(CnoObjects, AgentNeitherHindersTheFreeNorIsCalled) {
  Cno cno(ia, {nullptr, never_called});
  EXPECT_THAT(cno.free(), Succeeds());
}

// CNO-FREE-4
TEST_P(CnoObjects, LatchedTriggerDoesNotHinderTheFree) {
  Cno cno(ia);
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), cno.get()), Succeeds());
  post(evd.get());
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), DAT_HANDLE_NULL), Succeeds());
  EXPECT_THAT(cno.free(), Succeeds());
}

// CNO-FREE-5
TEST_P(CnoObjects, FreeRefusesBadHandles) {
  for (const DAT_HANDLE bad : {DAT_HANDLE_NULL, ia.get(), evd.get()}) {
    EXPECT_THAT(dat_cno_free(bad), HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(dat_cno_modify_agent(bad, no_agent()), HasType(DAT_INVALID_HANDLE));
  }
}

// CNO-FREE-6, CNO-FREE-7: the way to get a waiter out.
TEST_P(CnoObjects, SpareEvdReleasesTheWaitersOfOneCnoAfterTheOther) {
  Cno cnos[] = {Cno(ia), Cno(ia), Cno(ia)};
  for (Cno& cno : cnos) {
    BlockedCnoWait waiter(cno.get());
    ASSERT_THAT(dat_evd_modify_cno(evd.get(), cno.get()), Succeeds());
    post(evd.get());
    EXPECT_EQ(waiter.result().evd, evd.get());
    take(evd.get());
    EXPECT_THAT(cno.free(), HasType(DAT_INVALID_STATE)) << "the spare EVD is still associated";
  }
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), DAT_HANDLE_NULL), Succeeds());
  for (Cno& cno : cnos) {
    EXPECT_THAT(cno.free(), Succeeds());
  }
}

ANYDAT_OVER_ALL_WIRES(CnoObjects);

}  // namespace
}  // namespace anydat::test
