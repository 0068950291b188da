// SPDX-License-Identifier: BSD-3-Clause
// A program that runs out of memory while it uses a device: what is refused has changed nothing.
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
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

// What comes of one attempt while an allocation fails, found out without any.
struct Attempt {
  DAT_RETURN connect = DAT_SUCCESS;
  DAT_RETURN accept = DAT_SUCCESS;
  DAT_RETURN reject = DAT_SUCCESS;
  DAT_EVENT_NUMBER active{};  // the event of either side; 0: none
  DAT_EVENT_NUMBER passive{};

  bool is_over() const {
    if (connect != DAT_SUCCESS) return true;
    return active != 0 && (active != DAT_CONNECTION_EVENT_ESTABLISHED || passive != 0);
  }
};

class DeviceAttempts : public DeviceMemory {
 protected:
  // `given`: the endpoint that accepts, or none if the request has it.
  Attempt play(const Ep& ep, DAT_CONN_QUAL qualifier, DAT_EP_HANDLE given, std::chrono::steady_clock::time_point end) {
    Attempt result;
    result.connect = dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr,
                                    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
    DAT_EVENT event{};
    while (!result.is_over() && std::chrono::steady_clock::now() < end) {
      if (dat_evd_dequeue(server.requests.get(), &event) == DAT_SUCCESS) {
        const DAT_CR_HANDLE request = event.event_data.cr_arrival_event_data.cr_handle;
        result.accept = dat_cr_accept(request, given, 0, nullptr);
        if (result.accept != DAT_SUCCESS) result.reject = dat_cr_reject(request);
      }
      if (dat_evd_dequeue(client.connect.get(), &event) == DAT_SUCCESS) result.active = event.event_number;
      if (dat_evd_dequeue(server.connect.get(), &event) == DAT_SUCCESS) result.passive = event.event_number;
      ::usleep(100);
    }
    return result;
  }
  void drain() {
    DAT_EVENT event{};
    for (const Evd* evd : {&client.connect, &server.connect, &server.requests}) {
      while (dat_evd_dequeue(evd->get(), &event) == DAT_SUCCESS) {
      }
    }
  }
};

TEST_P(DeviceAttempts, HaveTheirEnd) {
  const DAT_CONN_QUAL reserved_at = Psp(server.ia, server.requests).qualifier();
  for (const bool reserved : {false, true}) {
    SCOPED_TRACE(reserved ? "RSP" : "PSP");
    for (long working = 0;; ++working) {
      SCOPED_TRACE(working);
      const Ep passive(server), active(client);
      DAT_RSP_HANDLE point = DAT_HANDLE_NULL;
      if (reserved) {
        ASSERT_THAT(dat_rsp_create(server.ia.get(), reserved_at, passive.get(), server.requests.get(), &point),
                    Succeeds());
      }
      const DAT_CONN_QUAL qualifier = reserved ? reserved_at : server.listen();
      const DAT_EP_HANDLE given = reserved ? DAT_HANDLE_NULL : passive.get();
      const auto end = std::chrono::steady_clock::now() + patience();
      Attempt attempt;
      {
        const NoMemory after(working, NoMemory::Failing::one);
        attempt = play(active, qualifier, given, end);
      }
      ASSERT_TRUE(attempt.is_over());
      EXPECT_THAT(attempt.reject, Succeeds());
      for (const DAT_RETURN rc : {attempt.connect, attempt.accept}) {
        EXPECT_TRUE(rc == DAT_SUCCESS || DAT_GET_TYPE(rc) == DAT_INSUFFICIENT_RESOURCES) << std::hex << rc;
      }
      if (reserved) {
        ASSERT_THAT(dat_rsp_free(point), Succeeds());
      }
      drain();
      if (NoMemory::has_failed_any()) continue;
      EXPECT_EQ(attempt.active, DAT_CONNECTION_EVENT_ESTABLISHED);
      break;
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceAttempts);
INSTANTIATE_TEST_SUITE_P(Devices, DeviceAttempts, testing::ValuesIn(device_wires()), wire_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceMemory);
INSTANTIATE_TEST_SUITE_P(Devices, DeviceMemory, testing::ValuesIn(device_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
