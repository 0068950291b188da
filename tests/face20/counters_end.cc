// SPDX-License-Identifier: BSD-3-Clause
// Counters of an object that another thread frees.
#include <dat2/dat_ib_extensions.h>

#include <array>
#include <atomic>
#include <thread>

#include "face20/fixture.h"
#include "support/dat_events.h"

namespace anydat::test {
namespace {

class Dat2CountersEnd : public Dat2 {};
INSTANTIATE_TEST_SUITE_P(Wires, Dat2CountersEnd, testing::ValuesIn(all_wires()), wire_name);

using EvdCounters = std::array<DAT_UINT64, DCNT_EVD_ALL_COUNTERS>;

// MT-4, D2-CNTR-3.
TEST_P(Dat2CountersEnd, AResetThatMeetsItLeavesNothingForWhatIsMadeInItsPlace) {
  for (int i = 0; i < 500; ++i) {
    Evd evd(client.ia, DAT_EVD_SOFTWARE_FLAG);
    const DAT_EVD_HANDLE handle = evd.get();
    for (int k = 0; k < 5; ++k) EXPECT_FALSE(poll_event(handle));
    std::atomic<bool> begun{false};
    DAT_RETURN rc = DAT_SUCCESS;
    {
      const std::jthread reads([&] {
        EvdCounters values{};
        while (rc == DAT_SUCCESS) {
          rc = dat_ib_query_counters(handle, DCNT_EVD_ALL_COUNTERS, values.data(), 1);
          begun = true;
        }
      });
      while (!begun) std::this_thread::yield();
      evd.reset();
    }
    EXPECT_THAT(rc, HasType(DAT_INVALID_HANDLE));
  }
  for (int i = 0; i < 200; ++i) {
    const Evd evd(client.ia, DAT_EVD_SOFTWARE_FLAG);
    EXPECT_FALSE(poll_event(evd.get()));
    EvdCounters values{};
    ASSERT_THAT(dat_ib_query_counters(evd.get(), DCNT_EVD_ALL_COUNTERS, values.data(), 0), Succeeds());
    EXPECT_EQ(values[DCNT_EVD_DEQUEUE_NOT_FOUND], 1u) << i;
  }
}

}  // namespace
}  // namespace anydat::test
