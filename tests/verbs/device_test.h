// SPDX-License-Identifier: BSD-3-Clause
// Tests over RDMA devices: the adapters that ANYDAT_TEST_ADAPTERS names, none without it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "support/dat_fixture.h"

namespace anydat::test {

inline std::vector<Wire> device_wires() {
  return std::getenv("ANYDAT_TEST_ADAPTERS") ? all_wires() : std::vector<Wire>{};
}

// Two instances of one adapter, and messages of 64 bytes between them.
class DeviceTest : public testing::TestWithParam<Wire> {
 protected:
  static constexpr std::size_t kBytes = 64;

  static void receive(const Ep& ep, const Lmr& into, DAT_UINT64 cookie) {
    DAT_LMR_TRIPLET segment = into.triplet(0, kBytes);
    require(dat_ep_post_recv(ep.get(), 1, &segment, {.as_64 = cookie}, DAT_COMPLETION_DEFAULT_FLAG), "post_recv");
  }
  void send(const Ep& ep) {
    DAT_LMR_TRIPLET segment = from.triplet(0, kBytes);
    require(dat_ep_post_send(ep.get(), 1, &segment, {.as_64 = 7}, DAT_COMPLETION_DEFAULT_FLAG), "post_send");
  }
  static void post_shared(const Srq& srq, const Lmr& memory, DAT_UINT64 index) {
    DAT_LMR_TRIPLET segment = memory.triplet(index * kBytes, kBytes);
    require(dat_srq_post_recv(srq.get(), 1, &segment, {.as_64 = index}), "srq_post_recv");
  }
  // A message from the client arrives.
  void exchange(const Connection& connection) {
    receive(connection.server, to, 11);
    send(connection.client);
    EXPECT_EQ(expect_completion(server.recv.get()).ep_handle, connection.server.get());
    expect_completion(client.request.get());
  }

  Side server{GetParam()};
  Side client{GetParam()};
  Lmr to{server.ia, server.pz, kBytes};
  Lmr from{client.ia, client.pz, kBytes};
};

}  // namespace anydat::test
