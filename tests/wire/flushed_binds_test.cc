// SPDX-License-Identifier: BSD-3-Clause
// Binds that are flushed give back the contexts that were put aside for them.
#include <gtest/gtest.h>

#include "nic/soft/adapter.h"
#include "wire/sim_fixture.h"

namespace anydat::test {
namespace {

TEST(FlushedBinds, GiveTheirContextsBack) {
  // RMR-BIND-13. Sends that no receive awaits, more than are on their way at once, keep the binds behind
  // them from being carried out.
  constexpr std::size_t kLarge = 1 << 20;
  constexpr int kSends = 20;
  constexpr std::uint64_t kBinds = 10;
  Side server(local_wire()), client(local_wire());
  const Lmr large(server.ia, server.pz, kLarge);
  const Lmr region(server.ia, server.pz, 64);
  const Connection pair = connect_pair(server, client);
  DAT_RMR_HANDLE window = DAT_HANDLE_NULL;
  require(dat_rmr_create(server.pz.get(), &window), "dat_rmr_create");
  const Owner<dat_rmr_free> owner(window);
  DAT_LMR_TRIPLET message = large.triplet();
  for (int i = 0; i < kSends; ++i) {
    require(dat_ep_post_send(pair.server.get(), 1, &message, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  }
  const DAT_LMR_TRIPLET part = region.triplet();
  for (std::uint64_t i = 0; i < kBinds; ++i) {
    DAT_RMR_CONTEXT context = 0;
    require(dat_rmr_bind(window, &part, DAT_MEM_PRIV_REMOTE_READ_FLAG, pair.server.get(), {},
                         DAT_COMPLETION_DEFAULT_FLAG, &context),
            "dat_rmr_bind");
  }
  const nic::RegionTable& regions = end_of(pair.server).adapter->regions();
  const std::uint64_t given_back = regions.removals();
  require(dat_ep_disconnect(pair.server.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_completions(server.request.get(), kSends, DAT_DTO_ERR_FLUSHED);
  for (std::uint64_t i = 0; i < kBinds; ++i) {
    const DAT_EVENT event = expect_event(server.request.get(), DAT_RMR_BIND_COMPLETION_EVENT);
    EXPECT_EQ(event.event_data.rmr_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
  }
  EXPECT_EQ(regions.removals(), given_back + kBinds);
}

}  // namespace
}  // namespace anydat::test
