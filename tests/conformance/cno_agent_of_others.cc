// SPDX-License-Identifier: BSD-3-Clause
// Agents that call the library while their CNO is freed, and the agent of an async EVD that another instance shares.

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

// ---- dat_cno_free

struct WorkingAgent {
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE other = DAT_HANDLE_NULL;
  std::atomic<bool> inside = false;
  std::atomic<bool> over = false;
  std::atomic<int> failures = 0;

  // Goes on when its CNO is dead to others, which the free brings about before it waits for anybody; and then makes
  // calls that need what a free may hold while it waits.
  static void work(DAT_PVOID data, DAT_EVD_HANDLE) {
    auto* const own = static_cast<WorkingAgent*>(data);
    own->inside = true;
    DAT_CNO_PARAM param;
    own->failures +=
        eventually([&] { return dat_cno_query(own->cno, DAT_CNO_FIELD_ALL, &param) != DAT_SUCCESS; }) ? 0 : 1;
    for (int i = 0; i < 100; ++i) own->failures += own->call_all() ? 0 : 1;
    own->over = true;
  }
  bool call_all() const {
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    DAT_CNO_HANDLE another = DAT_HANDLE_NULL;
    DAT_EVD_PARAM param;
    DAT_EVENT event{};
    const bool made = dat_pz_create(ia, &pz) == DAT_SUCCESS && dat_cno_create(ia, no_agent(), &another) == DAT_SUCCESS;
    return made && dat_evd_query(other, DAT_EVD_FIELD_ALL, &param) == DAT_SUCCESS && try_post(other) == DAT_SUCCESS &&
           dat_evd_dequeue(other, &event) == DAT_SUCCESS && dat_evd_modify_cno(other, another) == DAT_SUCCESS &&
           dat_evd_modify_cno(other, DAT_HANDLE_NULL) == DAT_SUCCESS && dat_cno_free(another) == DAT_SUCCESS &&
           dat_pz_free(pz) == DAT_SUCCESS;
  }
};

using CnoAgentAtItsEnd = EvdTest;

// CNO-FREE-3, CNO-AGT-7: the free waits for the agent, and the agent does not wait for the free.
TEST_P(CnoAgentAtItsEnd, MayCallTheLibraryWhileItsCnoIsFreed) {
  WorkingAgent agent{.ia = ia.get(), .other = evd.get()};
  Cno cno(ia, {&agent, WorkingAgent::work});
  agent.cno = cno.get();
  const Evd triggering(ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
  post(triggering.get());
  ASSERT_TRUE(eventually([&] { return agent.inside.load(); }));
  ASSERT_THAT(dat_evd_modify_cno(triggering.get(), DAT_HANDLE_NULL), Succeeds());
  ASSERT_THAT(cno.free(), Succeeds());
  EXPECT_TRUE(agent.over);
  EXPECT_EQ(agent.failures, 0);
}

ANYDAT_OVER_ALL_WIRES(CnoAgentAtItsEnd);

// ---- an async EVD of two instances

class CnoAgentOfASharedAsyncEvd : public MessageTest {
 protected:
  void SetUp() override {
    DAT_EVD_HANDLE shared = server.ia.async_evd();
    ASSERT_THAT(open_ia(GetParam(), 0, &shared, &second_), Succeeds());
    require(dat_pz_create(second_, &pz_), "dat_pz_create");
    // As few as there can be.
    require(dat_evd_create(second_, 1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &few_), "dat_evd_create");
    require(dat_evd_create(second_, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connect_), "dat_evd_create");
    DAT_EVD_HANDLE recv = DAT_HANDLE_NULL;
    require(dat_evd_create(second_, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &recv), "dat_evd_create");
    DAT_EP_ATTR attr = default_ep_attr();
    require(dat_ep_create(second_, pz_, recv, few_, connect_, &attr, &ep_), "dat_ep_create");
    DAT_REGION_DESCRIPTION where;
    where.for_va = memory_.data();
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    require(dat_lmr_create(second_, DAT_MEM_TYPE_VIRTUAL, where, memory_.size(), pz_, DAT_MEM_PRIV_ALL_FLAG, &lmr,
                           &context_, nullptr, nullptr, nullptr),
            "dat_lmr_create");
  }
  void TearDown() override {
    if (second_ != DAT_HANDLE_NULL) {
      EXPECT_THAT(dat_ia_close(second_, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    }
  }
  void connect_to(const Ep& passive) {
    connect(ep_, server.listen());
    const DAT_EVENT request = expect_event(server.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, passive.get(), 0, nullptr),
            "dat_cr_accept");
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    expect_event(connect_, DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  DAT_RETURN post_one() {
    DAT_LMR_TRIPLET from{};
    from.lmr_context = context_;
    from.virtual_address = reinterpret_cast<std::uintptr_t>(memory_.data());
    from.segment_length = memory_.size();
    return dat_ep_post_send(ep_, 1, &from, {}, DAT_COMPLETION_DEFAULT_FLAG);
  }

  std::array<std::byte, 8> memory_{};
  DAT_IA_HANDLE second_ = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE few_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE connect_ = DAT_HANDLE_NULL;
  DAT_EP_HANDLE ep_ = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT context_ = 0;
};

// IA-OPEN-19, CNO-AGT-1, CNO-AGT-2: what happens inside a post of the one instance calls the agent of the other,
// although neither program looks: once.
TEST_P(CnoAgentOfASharedAsyncEvd, IsCalledForAnOverflowInsideAPostOfTheOtherInstance) {
  CountingAgent agent;
  {
    const Cno cno(server.ia, agent.agent());
    ASSERT_THAT(dat_evd_modify_cno(server.ia.async_evd(), cno.get()), Succeeds());
    const Ep passive(server);
    const DAT_COUNT posts = query_evd(few_).evd_qlen + 1;
    ASSERT_LE(posts, kBuffers);
    for (int i = 0; i < posts; ++i) post_recv(passive, i);
    connect_to(passive);
    EXPECT_EQ(agent.calls(), 0);
    for (int i = 0; i < posts; ++i) ASSERT_THAT(post_one(), Succeeds()) << i;
    expect_completions(server.recv.get(), posts);
    EXPECT_TRUE(agent.eventually_called(1));
    EXPECT_EQ(agent.last_evd(), server.ia.async_evd());
    const auto event = expect_event(server.ia.async_evd(), DAT_ASYNC_ERROR_EVD_OVERFLOW);
    EXPECT_EQ(event.event_data.asynch_error_event_data.dat_handle, few_);
    EXPECT_EQ(agent.calls(), 1);
    ASSERT_THAT(dat_evd_modify_cno(server.ia.async_evd(), DAT_HANDLE_NULL), Succeeds());
    ASSERT_THAT(dat_ia_close(std::exchange(second_, DAT_HANDLE_NULL), DAT_CLOSE_ABRUPT_FLAG), Succeeds());
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);  // by the overflow
  }
}

ANYDAT_OVER_ALL_WIRES(CnoAgentOfASharedAsyncEvd);

}  // namespace
}  // namespace anydat::test
