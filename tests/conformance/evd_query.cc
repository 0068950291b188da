// SPDX-License-Identifier: BSD-3-Clause
// dat_evd_query: section 7.2 of part 1.
#include <cstring>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

class EvdQuery : public EvdTest {};

// EVD-QUERY-1, ARG-4, HND-8
TEST_P(EvdQuery, EachMaskBitFillsItsMember) {
  const Cno cno(ia);
  const Evd made(ia, flags(DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG), 5, cno.get());
  ASSERT_THAT(dat_evd_disable(made.get()), Succeeds());
  const auto ask = [&](DAT_EVD_PARAM_MASK mask) {
    DAT_EVD_PARAM param;
    std::memset(&param, 0xA5, sizeof param);
    EXPECT_THAT(dat_evd_query(made.get(), mask, &param), Succeeds());
    return param;
  };
  EXPECT_EQ(ask(DAT_EVD_FIELD_IA_HANDLE).ia_handle, ia.get());
  EXPECT_GE(ask(DAT_EVD_FIELD_EVD_QLEN).evd_qlen, 5);
  EXPECT_EQ(static_cast<unsigned>(ask(DAT_EVD_FIELD_EVD_STATE).evd_state),
            static_cast<unsigned>(DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_WAITABLE | DAT_EVD_STATE_CONFIG_THRESHOLD));
  EXPECT_EQ(ask(DAT_EVD_FIELD_CNO).cno_handle, cno.get());
  EXPECT_EQ(static_cast<unsigned>(ask(DAT_EVD_FIELD_EVD_FLAGS).evd_flags),
            static_cast<unsigned>(DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG));
  const DAT_EVD_PARAM all = ask(DAT_EVD_FIELD_ALL);
  EXPECT_EQ(all.ia_handle, ia.get());
  EXPECT_GE(all.evd_qlen, 5);
  EXPECT_EQ(all.cno_handle, cno.get());
}

// EVD-QUERY-1: the length is the queue's, however many events it holds.
TEST_P(EvdQuery, LengthIsTheCapacityNotTheNumberOfEvents) {
  const DAT_COUNT length = query_evd(evd.get()).evd_qlen;
  post_range(evd.get(), 1, 3);
  EXPECT_EQ(query_evd(evd.get()).evd_qlen, length);
}

// EVD-QUERY-2, EVM-26: each part changes alone, and has one value at all times.
TEST_P(EvdQuery, StateHasOneValueOfEachPart) {
  unsigned delivery = DAT_EVD_STATE_ENABLED;
  unsigned waiting = DAT_EVD_STATE_WAITABLE;
  const auto check = [&](const char* after) {
    const auto state = static_cast<unsigned>(query_evd(evd.get()).evd_state);
    EXPECT_EQ(state & kDeliveryPart, delivery) << after;
    EXPECT_EQ(state & kWaitingPart, waiting) << after;
    EXPECT_EQ(state & kConfigurationPart, static_cast<unsigned>(DAT_EVD_STATE_CONFIG_THRESHOLD)) << after;
    EXPECT_EQ(state & ~(kDeliveryPart | kWaitingPart | kConfigurationPart), 0u) << after;
  };
  check("creation");
  for (int round = 0; round < 2; ++round) {
    ASSERT_THAT(dat_evd_disable(evd.get()), Succeeds());
    delivery = DAT_EVD_STATE_DISABLED;
    check("disable");
    ASSERT_THAT(dat_evd_set_unwaitable(evd.get()), Succeeds());
    waiting = DAT_EVD_STATE_UNWAITABLE;
    check("set_unwaitable");
    ASSERT_THAT(dat_evd_enable(evd.get()), Succeeds());
    delivery = DAT_EVD_STATE_ENABLED;
    check("enable");
    ASSERT_THAT(dat_evd_clear_unwaitable(evd.get()), Succeeds());
    waiting = DAT_EVD_STATE_WAITABLE;
    check("clear_unwaitable");
  }
}

// EVD-QUERY-3, EVD-QUERY-4, EVD-QUERY-5, EVD-QUERY-9
TEST_P(EvdQuery, BadHandleMaskOrResultIsRefused) {
  DAT_EVD_PARAM param{};
  EXPECT_THAT(dat_evd_query(DAT_HANDLE_NULL, DAT_EVD_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
  EXPECT_THAT(dat_evd_query(ia.get(), DAT_EVD_FIELD_ALL, &param), HasType(DAT_INVALID_HANDLE));
  for (int bit = 5; bit < 31; ++bit) {
    const auto mask = static_cast<DAT_EVD_PARAM_MASK>(DAT_EVD_FIELD_ALL | 1u << bit);
    EXPECT_THAT(dat_evd_query(evd.get(), mask, &param), HasType(DAT_INVALID_PARAMETER)) << bit;
  }
  EXPECT_THAT(dat_evd_query(evd.get(), DAT_EVD_FIELD_ALL, nullptr), HasType(DAT_INVALID_PARAMETER));
}

// EVD-QUERY-6
TEST_P(EvdQuery, EmptyMaskSucceeds) {
  DAT_EVD_PARAM param{};
  EXPECT_THAT(dat_evd_query(evd.get(), static_cast<DAT_EVD_PARAM_MASK>(0), &param), Succeeds());
}

// EVD-QUERY-7
TEST_P(EvdQuery, WorksWhileAThreadWaitsAndDoesNotDisturbIt) {
  BlockedWait waiter(evd.get());
  for (int i = 0; i < 100; ++i) {
    query_evd(evd.get());
  }
  EXPECT_TRUE(waiter.stays_blocked());
  post(evd.get(), 7);
  const EvdResult result = waiter.result();
  EXPECT_THAT(result.rc, Succeeds());
  EXPECT_EQ(value_of(result.event), 7u);
}

// EVD-QUERY-8
TEST_P(EvdQuery, SharedAsyncEvdBelongsToTheInstanceThatMadeIt) {
  DAT_EVD_HANDLE shared = ia.async_evd();
  DAT_IA_HANDLE second = DAT_HANDLE_NULL;
  ASSERT_THAT(open_ia(GetParam(), 1, &shared, &second), Succeeds());
  EXPECT_EQ(query_evd(ia.async_evd()).ia_handle, ia.get());
  EXPECT_THAT(dat_ia_close(second, DAT_CLOSE_GRACEFUL_FLAG), Succeeds());
  EXPECT_EQ(query_evd(ia.async_evd()).ia_handle, ia.get());
}

ANYDAT_OVER_ALL_WIRES(EvdQuery);

}  // namespace
}  // namespace anydat::test
