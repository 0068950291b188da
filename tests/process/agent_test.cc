// SPDX-License-Identifier: BSD-3-Clause
// Agents that call the library while what they were called for goes away: no threads wait for each other in a circle.
// Each case is played by a process of its own, which a test can end if it hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "footprint.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"
#include "support/waiter.h"

namespace anydat::test {
namespace {

// What an agent does, and what it found.
struct Agent {
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE dying = DAT_HANDLE_NULL;  // the agent goes on when this one's handle is dead
  DAT_EVD_HANDLE later = DAT_HANDLE_NULL;  // what it works on then
  std::atomic<bool> done = false;
  std::atomic<bool> inside = false;
  std::atomic<int> calls = 0;
  std::atomic<DAT_RETURN> rc = DAT_SUCCESS;
};

DAT_CNO_HANDLE make_cno(DAT_IA_HANDLE ia, Agent& agent, DAT_AGENT_FUNC function) {
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  require(dat_cno_create(ia, {&agent, function}, &cno), "dat_cno_create");
  return cno;
}

// Waits for the handle's death, which the freeing call brings about before it waits for anybody, and then makes a call
// that needs the adapter for itself.
void work_when_it_is_dead(DAT_PVOID data, DAT_EVD_HANDLE) {
  auto* const agent = static_cast<Agent*>(data);
  if (agent->calls++ > 0) return;
  agent->inside = true;
  DAT_EVD_PARAM param;
  while (dat_evd_query(agent->dying, DAT_EVD_FIELD_ALL, &param) == DAT_SUCCESS) std::this_thread::yield();
  agent->rc = dat_evd_modify_cno(agent->later, DAT_HANDLE_NULL);
  agent->done = true;
}

// A message for an EVD with an agent arrives while a thread sleeps in a wait on another EVD and drives the adapter for
// all. Then that other EVD is freed, or the instance closed. Argument: which. What is made here is left to the end of
// the process, because its owners could not tell what the close has freed.
void play_agent_at_the_end(RoleContext& context) {
  const bool closes = context.arguments.at(0) == "close";
  Side& client = *new Side(context.wire);
  Side& server = *new Side(context.wire);
  const Lmr& source = *new Lmr(client.ia, client.pz, 64);
  const Lmr& sink = *new Lmr(server.ia, server.pz, 64);
  const Connection& connection = *new Connection(connect_pair(server, client));
  DAT_LMR_TRIPLET to = sink.triplet(), from = source.triplet();
  require(dat_ep_post_recv(connection.server.get(), 1, &to, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  Evd& waited = *new Evd(server.ia, DAT_EVD_SOFTWARE_FLAG, 4);
  Agent& agent = *new Agent;
  agent.dying = waited.get();
  agent.later = (new Evd(server.ia, DAT_EVD_SOFTWARE_FLAG, 4))->get();
  const DAT_CNO_HANDLE cno = make_cno(server.ia.get(), agent, work_when_it_is_dead);
  require(dat_evd_modify_cno(server.recv.get(), cno), "dat_evd_modify_cno");
  Waiter waiter(waited.get());
  require(dat_ep_post_send(connection.client.get(), 1, &from, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  EXPECT_TRUE(eventually([&] { return agent.inside.load(); }));
  if (closes) {
    require(server.ia.close(DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
    EXPECT_TRUE(agent.done) << "IA-CLOSE-14";
  } else {
    require(waited.free(), "dat_evd_free");
    require(dat_evd_modify_cno(server.recv.get(), DAT_HANDLE_NULL), "dat_evd_modify_cno");
    require(dat_cno_free(cno), "dat_cno_free");
    EXPECT_TRUE(agent.done);
    EXPECT_EQ(agent.rc, DAT_SUCCESS);
  }
  EXPECT_EQ(DAT_GET_TYPE(waiter.result().rc), DAT_ABORT);
}
const Role kAgentAtTheEnd("agent-at-the-end", play_agent_at_the_end);

void close_the_instance(DAT_PVOID data, DAT_EVD_HANDLE) {
  auto* const agent = static_cast<Agent*>(data);
  if (agent->calls++ > 0) return;
  agent->rc = dat_ia_close(agent->ia, DAT_CLOSE_ABRUPT_FLAG);
  agent->done = true;
}

// IA-CLOSE-9: each agent that is set is called once by the close, also if it is an agent that closes.
void play_closing_agent(RoleContext& context) {
  const Footprint before = Footprint::here();
  Agent agent, other;
  const Ia& ia = *new Ia(context.wire);
  agent.ia = ia.get();
  const DAT_CNO_HANDLE cno = make_cno(ia.get(), agent, close_the_instance);
  make_cno(ia.get(), other, [](DAT_PVOID data, DAT_EVD_HANDLE evd) {
    EXPECT_EQ(evd, DAT_HANDLE_NULL);
    ++static_cast<Agent*>(data)->calls;
  });
  const DAT_EVD_HANDLE waited = Evd(ia, DAT_EVD_SOFTWARE_FLAG, 4, DAT_HANDLE_NULL).release();
  const DAT_EVD_HANDLE triggering = Evd(ia, DAT_EVD_SOFTWARE_FLAG, 4, cno).release();
  Waiter waiter(waited);  // a thread is in the library meanwhile
  DAT_EVENT event{};
  event.event_number = DAT_SOFTWARE_EVENT;
  require(dat_evd_post_se(triggering, &event), "dat_evd_post_se");
  EXPECT_TRUE(eventually([&] { return agent.done.load(); }));
  EXPECT_EQ(agent.rc, DAT_SUCCESS);
  EXPECT_EQ(agent.calls, 1);
  EXPECT_EQ(other.calls, 1);
  EXPECT_EQ(DAT_GET_TYPE(waiter.result().rc), DAT_ABORT);
  EXPECT_EQ(DAT_GET_TYPE(dat_evd_post_se(triggering, &event)), DAT_INVALID_HANDLE);
  EXPECT_EQ(DAT_GET_TYPE(dat_ia_close(agent.ia, DAT_CLOSE_ABRUPT_FLAG)), DAT_INVALID_HANDLE);
  expect_back_to(before);
}
const Role kClosingAgent("closing-agent", play_closing_agent);

class AgentAtTheEnd : public testing::TestWithParam<Wire> {};

TEST_P(AgentAtTheEnd, MayCallTheLibraryWhileAnEvdIsFreed) {
  EXPECT_EQ(PeerProcess("agent-at-the-end", GetParam(), {"free"}).wait_exit(), 0);
}

TEST_P(AgentAtTheEnd, MayCallTheLibraryWhileTheInstanceIsClosed) {
  EXPECT_EQ(PeerProcess("agent-at-the-end", GetParam(), {"close"}).wait_exit(), 0);
}

TEST_P(AgentAtTheEnd, MayCloseTheInstance) {
  EXPECT_EQ(PeerProcess("closing-agent", GetParam()).wait_exit(), 0);
}

INSTANTIATE_TEST_SUITE_P(Wires, AgentAtTheEnd, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
