// SPDX-License-Identifier: BSD-3-Clause
// The counters of the InfiniBand extension: that a reset loses nothing, where they are printed, and that they cannot be
// stopped.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "face20/counters_fixture.h"
#include "support/threads.h"

namespace anydat::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// D2-CNTR-3: only what was read begins anew.
TEST_P(Dat2Counters, AResetIsOfWhatWasRead) {
  const Evd evd(client.ia, DAT_EVD_SOFTWARE_FLAG);
  const Evd other(client.ia, DAT_EVD_SOFTWARE_FLAG);
  const auto use = [](const Evd& which) {
    post_software(which.get());
    EXPECT_TRUE(poll_event(which.get()));
    EXPECT_FALSE(poll_event(which.get()));
  };
  use(evd);
  use(other);
  std::array<DAT_UINT64, DCNT_EVD_ALL_COUNTERS> values{};
  ASSERT_THAT(dat_ib_query_counters(evd.get(), DCNT_EVD_DEQUEUE_FOUND, values.data(), 1), Succeeds());
  EXPECT_EQ(values[DCNT_EVD_DEQUEUE_FOUND], 1u) << "as it was";
  EXPECT_EQ(counter_of(evd.get(), DCNT_EVD_DEQUEUE_FOUND), 0u);
  EXPECT_EQ(counter_of(evd.get(), DCNT_EVD_DEQUEUE_NOT_FOUND), 1u);
  EXPECT_EQ(counter_of(evd.get(), DCNT_EVD_DEQUEUE), 2u);
  EXPECT_EQ(counter_of(other.get(), DCNT_EVD_DEQUEUE_FOUND), 1u) << "of another";
  use(evd);
  EXPECT_EQ(counter_of(evd.get(), DCNT_EVD_DEQUEUE_FOUND), 1u);
  EXPECT_EQ(counters_of(evd.get(), true)[DCNT_EVD_DEQUEUE], 4u);
  for (const DAT_UINT64 value : counters_of(evd.get())) EXPECT_EQ(value, 0u);
  testing::internal::CaptureStdout();
  EXPECT_THAT(dat_ib_print_counters(other.get(), DCNT_EVD_DEQUEUE, 1), Succeeds());
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("DCNT_EVD_DEQUEUE 2\n")) << "as it was";
  EXPECT_EQ(counter_of(other.get(), DCNT_EVD_DEQUEUE), 0u);
}

// D2-CNTR-3: what has been reset and freed says nothing about what is made in its place.
TEST_P(Dat2Counters, AResetEndsWithItsObject) {
  for (int i = 0; i < 3000; ++i) {
    const Evd evd(client.ia, DAT_EVD_SOFTWARE_FLAG);
    EXPECT_FALSE(poll_event(evd.get()));
    EXPECT_EQ(counters_of(evd.get(), true)[DCNT_EVD_DEQUEUE_NOT_FOUND], 1u) << i;
  }
}

// D2-CNTR-3.
TEST_P(Dat2Counters, NoIncrementIsLostBetweenReadingAndReset) {
  constexpr DAT_UINT64 kEvents = 20'000;
  const Evd evd(client.ia, DAT_EVD_SOFTWARE_FLAG);
  std::atomic<bool> done{false};
  std::jthread counted([&] {
    for (DAT_UINT64 i = 0; i < kEvents; ++i) {
      post_software(evd.get());
      EXPECT_TRUE(poll_event(evd.get()));
    }
    done = true;
  });
  DAT_UINT64 sum = 0;
  for (bool last = false; !last;) {
    last = done;
    sum += counters_of(evd.get(), true)[DCNT_EVD_DEQUEUE_FOUND];
  }
  EXPECT_EQ(sum, kEvents);
}

// D2-CNTR-5, ENV-3.
TEST_P(Dat2Counters, PrintingNamesTheValues) {
  const Evd evd(client.ia, DAT_EVD_SOFTWARE_FLAG);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(poll_event(evd.get()));
  const auto printed = [&](DAT_HANDLE handle, int counter) {
    testing::internal::CaptureStdout();
    EXPECT_THAT(dat_ib_print_counters(handle, counter, 0), Succeeds());
    return testing::internal::GetCapturedStdout();
  };
  const std::string one = printed(evd.get(), DCNT_EVD_DEQUEUE_NOT_FOUND);
  EXPECT_THAT(one, HasSubstr("DCNT_EVD_DEQUEUE_NOT_FOUND 3\n"));
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 2) << "what it is of, and the counter";
  const std::string all = printed(evd.get(), DCNT_EVD_ALL_COUNTERS);
  EXPECT_THAT(all, HasSubstr("DCNT_EVD_DEQUEUE_NOT_FOUND 3\n"));
  EXPECT_THAT(all, HasSubstr("DCNT_EVD_WAIT 0\n"));
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1 + DCNT_EVD_ALL_COUNTERS);
  const std::string adapter = printed(client.ia.get(), DCNT_IA_ALL_COUNTERS);
  EXPECT_THAT(adapter, HasSubstr("DCNT_IA_PZ_CREATE 1\n"));
  EXPECT_THAT(adapter, HasSubstr("DCNT_IA_DIAG_ERR_SQ_TREE 0\n"));
  const Ep ep(client);
  EXPECT_THAT(printed(ep.get(), DCNT_EP_CONNECT), HasSubstr("DCNT_EP_CONNECT 0\n"));
  for (const auto& [destination, to_output] :
       {std::pair{"1", true}, std::pair{"0x3", true}, std::pair{"nowhere", true}, std::pair{"0x2", false}}) {
    const std::map<std::string, std::string> variables{{"DAT_DBG_DEST", destination}};
    const ScopedEnv env(variables);
    const std::string text = printed(evd.get(), DCNT_EVD_WAIT);
    if (to_output) {
      EXPECT_THAT(text, HasSubstr("DCNT_EVD_WAIT 0\n")) << destination;
    } else {
      EXPECT_THAT(text, IsEmpty());
    }
  }
}

// D2-CNTR-6, D2-CNTR-7.
TEST_P(Dat2Counters, StartAndStopChangeNothing) {
  const auto switch_both = [](DAT_HANDLE handle, int type) {
    const DAT_RETURN started = dat_ib_start_counter(handle, static_cast<DAT_IA_COUNTER_TYPE>(type));
    EXPECT_EQ(dat_ib_stop_counter(handle, static_cast<DAT_IA_COUNTER_TYPE>(type)), started);
    return started;
  };
  EXPECT_THAT(switch_both(client.ia.get(), DCNT_IA_CM), Succeeds());
  EXPECT_THAT(switch_both(client.ia.get(), DCNT_IA_LNK), HasType(DAT_MODEL_NOT_SUPPORTED));
  EXPECT_THAT(switch_both(client.ia.get(), DCNT_IA_DIAG), HasType(DAT_MODEL_NOT_SUPPORTED));
  EXPECT_THAT(switch_both(client.ia.get(), 3), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(switch_both(client.pz.get(), DCNT_IA_CM), HasType(DAT_INVALID_HANDLE));
  const Since since(client.ia.get());
  { const Pz pz(client.ia); }
  EXPECT_EQ(since[DCNT_IA_PZ_CREATE], 1u) << "stopped, and counting";
}

}  // namespace
}  // namespace anydat::test
