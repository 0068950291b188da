// SPDX-License-Identifier: BSD-3-Clause
// A program changes what its own registered pages may be used for (mprotect), and a peer reads and writes them by RDMA:
// that succeeds or is an error, and whatever comes of it, nobody crashes, hangs or breaks another connection.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <string>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr std::size_t kBytes = 64 * 1024;

// The process whose pages they are: it takes them away and waits for the end. Arguments: the protection.
void play_owner(RoleContext& context) {
  const int protection = std::stoi(context.arguments.at(0));
  void* const pages = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(pages, 0x11, kBytes);
  Side side(context.wire);
  const Lmr target(side.ia, side.pz, std::span(static_cast<std::byte*>(pages), kBytes));
  const Ep passive(side), other(side);
  context.parent.say(std::to_string(side.listen()));
  for (const Ep* ep : {&passive, &other}) {
    const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep->get(), 0, nullptr), "dat_cr_accept");
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  ::mprotect(pages, kBytes, protection);
  const DAT_RMR_TRIPLET remote = target.remote(0, kBytes);
  context.parent.say(std::to_string(remote.rmr_context));
  context.parent.say(std::to_string(remote.target_address));
  const Lmr sink(side.ia, side.pz, 64);
  DAT_LMR_TRIPLET to = sink.triplet();
  require(dat_ep_post_recv(other.get(), 1, &to, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  context.parent.hear(10 * patience());  // the requests are over
  expect_completion(side.recv.get());    // of the other connection
}
const Role kOwner("owner-of-pages", play_owner);

struct Case {
  Wire wire;
  int protection;
};
std::string case_name(const testing::TestParamInfo<Case>& info) {
  return info.param.wire.name + (info.param.protection == PROT_NONE ? "_none" : "_readonly");
}
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  // Where the kernel copies from process to process. Over other wires the owner's own process touches the pages, and is
  // told as any of its instructions would be, by a signal (docs/process-life.md).
  for (const int protection : {PROT_NONE, PROT_READ}) cases.push_back({wire_by_name("shm"), protection});
  return cases;
}

class ProtectedPages : public testing::TestWithParam<Case> {
 protected:
  void connect(const Ep& ep, DAT_CONN_QUAL qualifier) {
    require(dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  Side side{GetParam().wire};
  Lmr memory{side.ia, side.pz, kBytes};
};

TEST_P(ProtectedPages, AreReadAndWrittenByAPeerOrRefused) {
  PeerProcess owner("owner-of-pages", GetParam().wire, {std::to_string(GetParam().protection)});
  const DAT_CONN_QUAL qualifier = std::stoull(owner.channel().hear());
  const Ep ep(side), other(side);
  connect(ep, qualifier);
  connect(other, qualifier);
  DAT_RMR_TRIPLET remote{};
  remote.rmr_context = static_cast<DAT_RMR_CONTEXT>(std::stoul(owner.channel().hear()));
  remote.target_address = std::stoull(owner.channel().hear());
  DAT_LMR_TRIPLET local = memory.triplet();
  remote.segment_length = kBytes;
  require(dat_ep_post_rdma_read(ep.get(), 1, &local, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_rdma_read");
  const auto read = wait_event(side.request.get());
  ASSERT_TRUE(read) << "the Read hangs";
  if (ep.state() == DAT_EP_STATE_CONNECTED) {
    require(dat_ep_post_rdma_write(ep.get(), 1, &local, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_write");
    EXPECT_TRUE(wait_event(side.request.get())) << "the Write hangs";
  }
  const Lmr source(side.ia, side.pz, 64);
  DAT_LMR_TRIPLET from = source.triplet();
  require(dat_ep_post_send(other.get(), 1, &from, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  EXPECT_TRUE(eventually([&] {
    const auto event = wait_event(side.request.get());
    return event && event->event_data.dto_completion_event_data.ep_handle == other.get() &&
           event->event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS;
  }));
  owner.channel().say("over");
  EXPECT_EQ(owner.wait_exit(), 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, ProtectedPages, testing::ValuesIn(all_cases()), case_name);

}  // namespace
}  // namespace anydat::test
