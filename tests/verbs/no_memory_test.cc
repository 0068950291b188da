// SPDX-License-Identifier: BSD-3-Clause
// A program that runs out of memory while it uses a device: what is refused has changed nothing.
#include <gtest/gtest.h>

#include <stdexcept>

#include "process/no_memory.h"
#include "support/dat_fixture.h"
#include "support/dat_matchers.h"
#include "support/patience.h"
#include "verbs/device_test.h"
#include "verbs/edge.h"

namespace anydat::test {
namespace {

class DeviceMemory : public DeviceTest {
 protected:
  static DAT_RETURN post_recv(const Ep& ep, const Lmr& into) {
    DAT_LMR_TRIPLET segment = into.triplet(0, kBytes);
    return dat_ep_post_recv(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG);
  }
  static DAT_COUNT receives_of(const Ep& ep) {
    DAT_COUNT allocated = 0, span = 0;
    require(dat_ep_recv_query(ep.get(), &allocated, &span), "dat_ep_recv_query");
    return allocated;
  }
  // Behind a bind that cannot be done before its window has let go of what it showed. How many are accepted.
  DAT_COUNT sends_that_fit(const Ep& ep, const Lmr& memory) {
    Owned window(client);
    window.bind(ep, memory);
    expect_event(client.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
    DAT_COUNT count = 0;
    {
      const edge::Gate gate(edge::Call::deregistering);
      window.bind(ep, memory);
      if (!eventually([&] { return gate.reached(); })) throw std::runtime_error("the bind has not begun");
      DAT_LMR_TRIPLET segment = from.triplet(0, kBytes);
      while (dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS) ++count;
      require(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
    }
    expect_event(client.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
    for (DAT_COUNT i = 0; i < count; ++i) expect_completion(client.request.get(), DAT_DTO_ERR_FLUSHED);
    expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    wait_event(server.connect.get());
    return count + 1;
  }

 private:
  class Owned : public Owner<dat_rmr_free> {
   public:
    explicit Owned(const Side& side) { require(dat_rmr_create(side.pz.get(), out()), "dat_rmr_create"); }
    void bind(const Ep& ep, const Lmr& memory) const {
      DAT_LMR_TRIPLET part = memory.triplet(0, 16);
      require(dat_rmr_bind(get(), &part, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, ep.get(), {}, DAT_COMPLETION_DEFAULT_FLAG,
                           nullptr),
              "dat_rmr_bind");
    }
  };
};

TEST_P(DeviceMemory, ARefusedModificationChangesNothing) {
  // EP-MODIFY-1
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_request_dtos = 8;
  attr.max_recv_dtos = 8;
  attr.max_request_iov = 2;
  constexpr auto kMask =
      DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV;
  int refused = 0;
  for (long working = 0;; ++working) {
    SCOPED_TRACE(working);
    Ep ep(client, attr);
    const Ep peer(server);
    DAT_EP_PARAM wanted = ep.query();
    wanted.ep_attr.max_request_dtos = 24;
    wanted.ep_attr.max_recv_dtos = 24;
    wanted.ep_attr.max_request_iov = 4;
    DAT_RETURN rc = DAT_SUCCESS;
    {
      const NoMemory after(working, NoMemory::Failing::all);
      rc = dat_ep_modify(ep.get(), kMask, &wanted);
    }
    const bool done = rc == DAT_SUCCESS;
    if (!done) {
      ++refused;
      EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));
      EXPECT_EQ(ep.query().ep_attr.max_request_dtos, 8);
    }
    DAT_COUNT receives = 0;
    while (post_recv(ep, from) == DAT_SUCCESS) ++receives;
    EXPECT_EQ(receives, done ? 24 : 8);
    connect_pair(server, peer.get(), ep.get());
    EXPECT_EQ(sends_that_fit(ep, from), done ? 24 : 8);
    for (DAT_COUNT i = 0; i < receives; ++i) expect_completion(client.recv.get(), DAT_DTO_ERR_FLUSHED);
    if (done) break;
  }
  EXPECT_GE(refused, 4) << "each of its queues needs memory";
}

TEST_P(DeviceMemory, AReceiveThatIsPostedBeforeTheConnectionNeedsNone) {
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_recv_dtos = 200;
  const Ep ep(client, attr);
  DAT_COUNT posted = 0;
  {
    const NoMemory none(0, NoMemory::Failing::all);
    for (DAT_COUNT i = 0; i < attr.max_recv_dtos; ++i) posted += post_recv(ep, from) == DAT_SUCCESS ? 1 : 0;
  }
  EXPECT_EQ(receives_of(ep), posted) << "one that was refused is there";
  EXPECT_EQ(posted, attr.max_recv_dtos);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceMemory);
INSTANTIATE_TEST_SUITE_P(Devices, DeviceMemory, testing::ValuesIn(device_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
