// SPDX-License-Identifier: BSD-3-Clause
// dat_evd_dequeue and dat_evd_post_se: sections 7.7 and 7.8 of part 1.
#include <sys/resource.h>

#include <algorithm>
#include <cstring>

#include "evd_fixture.h"

namespace anydat::test {
namespace {

class EvdPost : public EvdTest {
 protected:
  DAT_RETURN dequeue() {
    DAT_EVENT event{};
    return dat_evd_dequeue(evd.get(), &event);
  }
  void fill() { post_range(evd.get(), 1, evd.qlen()); }
};

// EVD-DEQ-1, EVT-1, EVT-37
TEST_P(EvdPost, DequeuedEventIsTheHeadAndFilledInFull) {
  post_range(evd.get(), 5, 2);
  for (const std::uintptr_t expected : {5u, 6u}) {
    DAT_EVENT event;
    std::memset(&event, 0xA5, sizeof event);
    ASSERT_THAT(dat_evd_dequeue(evd.get(), &event), Succeeds());
    EXPECT_EQ(event.event_number, DAT_SOFTWARE_EVENT);
    EXPECT_EQ(event.evd_handle, evd.get());
    EXPECT_EQ(value_of(event), expected);
  }
}

// EVD-DEQ-2
TEST_P(EvdPost, EmptyQueueIsSaidToBeEmpty) {
  EXPECT_THAT(dequeue(), HasType(DAT_QUEUE_EMPTY));
  post(evd.get());
  EXPECT_THAT(dequeue(), Succeeds());
  EXPECT_THAT(dequeue(), HasType(DAT_QUEUE_EMPTY));
}

// How often this thread has given up its processor by itself, which is what blocking is, however busy the machine.
long times_blocked() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// EVD-DEQ-3: whether there is something or not. Once in many rounds is enough: another thread of the library may have a
// lock for a moment, and the system may take a page away.
TEST_P(EvdPost, DequeuingDoesNotBlock) {
  constexpr int kCalls = 20;
  constexpr int kRounds = 50;
  long fewest = kCalls;
  for (int round = 0; round < kRounds && fewest > 0; ++round) {
    post_range(evd.get(), 1, kCalls / 2);
    const long before = times_blocked();
    int wrong = 0;
    for (int i = 0; i < kCalls; ++i) {
      wrong += DAT_GET_TYPE(dequeue()) == (i < kCalls / 2 ? DAT_SUCCESS : DAT_QUEUE_EMPTY) ? 0 : 1;
    }
    fewest = std::min(fewest, times_blocked() - before);
    ASSERT_EQ(wrong, 0);
  }
  EXPECT_EQ(fewest, 0);
}

// EVD-DEQ-4
TEST_P(EvdPost, DequeuingIsRefusedWhileAThreadWaits) {
  BlockedWait waiter(evd.get(), 2);
  EXPECT_THAT(dequeue(), HasType(DAT_INVALID_STATE));
  post(evd.get(), 1);
  EXPECT_THAT(dequeue(), HasType(DAT_INVALID_STATE)) << "also with an event queued";
  post(evd.get(), 2);
  EXPECT_EQ(value_of(waiter.result().event), 1u);
  EXPECT_EQ(take(evd.get()), 2u);
}

// EVD-DEQ-5
TEST_P(EvdPost, DequeuingWorksInEveryState) {
  post_range(evd.get(), 1, 4);
  ASSERT_THAT(dat_evd_disable(evd.get()), Succeeds());
  EXPECT_EQ(take(evd.get()), 1u);
  ASSERT_THAT(dat_evd_set_unwaitable(evd.get()), Succeeds());
  EXPECT_EQ(take(evd.get()), 2u);
  ASSERT_THAT(dat_evd_enable(evd.get()), Succeeds());
  EXPECT_EQ(take(evd.get()), 3u);
  ASSERT_THAT(dat_evd_clear_unwaitable(evd.get()), Succeeds());
  EXPECT_EQ(take(evd.get()), 4u);
}

// EVD-DEQ-8, EVD-POST-8, EVD-POST-10
TEST_P(EvdPost, BadArgumentsAreRefused) {
  post(evd.get());
  DAT_EVENT event = software_event(1);
  EXPECT_THAT(dat_evd_dequeue(evd.get(), nullptr), HasType(DAT_INVALID_PARAMETER));
  EXPECT_THAT(dat_evd_post_se(evd.get(), nullptr), HasType(DAT_INVALID_PARAMETER));
  for (const DAT_HANDLE bad : {DAT_HANDLE_NULL, ia.get()}) {
    EXPECT_THAT(dat_evd_dequeue(bad, &event), HasType(DAT_INVALID_HANDLE));
    EXPECT_THAT(dat_evd_post_se(bad, &event), HasType(DAT_INVALID_HANDLE));
  }
  EXPECT_EQ(queued(evd.get()), 1);
}

// EVD-DEQ-9
TEST_P(EvdPost, DequeuingMakesRoom) {
  fill();
  EXPECT_THAT(try_post(evd.get()), HasType(DAT_QUEUE_FULL));
  EXPECT_THAT(dequeue(), Succeeds());
  EXPECT_THAT(try_post(evd.get()), Succeeds());
  EXPECT_THAT(try_post(evd.get()), HasType(DAT_QUEUE_FULL)) << "for one";
}

// EVD-DEQ-10, EVM-45, CNO-WAIT-2
TEST_P(EvdPost, DequeuingDoesNotTakeALatchedTrigger) {
  const Cno cno(ia);
  const Evd made(ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
  post_range(made.get(), 1, 2);
  EXPECT_EQ(take_all(made.get()).size(), 2u);
  EXPECT_EQ(wait_cno(cno.get(), 0).evd, made.get());
  EXPECT_FALSE(poll_event(made.get())) << "a hint, not a promise";
}

// EVD-POST-1, EVM-29, EVM-41
TEST_P(EvdPost, PostedEventTriggersTheCno) {
  const Cno cno(ia);
  const Evd made(ia, DAT_EVD_SOFTWARE_FLAG, 4, cno.get());
  BlockedCnoWait waiter(cno.get());
  post(made.get(), 9);
  const CnoResult result = waiter.result();
  EXPECT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.evd, made.get());
  EXPECT_EQ(take(made.get()), 9u);
}

// EVD-POST-1, EVD-POST-11
TEST_P(EvdPost, PostedEventWakesTheWaiter) {
  BlockedWait waiter(evd.get());
  post(evd.get(), 9);
  EXPECT_EQ(value_of(waiter.result().event), 9u);
}

// EVD-POST-2
TEST_P(EvdPost, OnlySoftwareEventsCanBePosted) {
  const DAT_EVENT_NUMBER others[] = {DAT_DTO_COMPLETION_EVENT,
                                     DAT_RMR_BIND_COMPLETION_EVENT,
                                     DAT_CONNECTION_REQUEST_EVENT,
                                     DAT_CONNECTION_EVENT_ESTABLISHED,
                                     DAT_CONNECTION_EVENT_PEER_REJECTED,
                                     DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
                                     DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR,
                                     DAT_CONNECTION_EVENT_DISCONNECTED,
                                     DAT_CONNECTION_EVENT_BROKEN,
                                     DAT_CONNECTION_EVENT_TIMED_OUT,
                                     DAT_CONNECTION_EVENT_UNREACHABLE,
                                     DAT_ASYNC_ERROR_EVD_OVERFLOW,
                                     DAT_ASYNC_ERROR_IA_CATASTROPHIC,
                                     DAT_ASYNC_ERROR_EP_BROKEN,
                                     DAT_ASYNC_ERROR_TIMED_OUT,
                                     DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
                                     static_cast<DAT_EVENT_NUMBER>(0),
                                     static_cast<DAT_EVENT_NUMBER>(0x10000),
                                     static_cast<DAT_EVENT_NUMBER>(0x10002),
                                     static_cast<DAT_EVENT_NUMBER>(0x1FFFF)};
  const Evd any(ia, flags(0x1F1), 4);
  for (const DAT_EVENT_NUMBER number : others) {
    DAT_EVENT event = software_event(1);
    event.event_number = number;
    EXPECT_THAT(dat_evd_post_se(any.get(), &event), HasType(DAT_INVALID_PARAMETER)) << std::hex << number;
  }
  EXPECT_EQ(queued(any.get()), 0);
}

// EVD-POST-3, EVD-POST-4, EVD-POST-5
TEST_P(EvdPost, NumberHandleAndPointerAreDeliveredAndTheCallersEventIsCopied) {
  const Evd another(ia, DAT_EVD_SOFTWARE_FLAG, 4);
  for (const std::uintptr_t value : {std::uintptr_t{0}, std::uintptr_t{1}, ~std::uintptr_t{0}}) {
    DAT_EVENT event = software_event(value);
    event.evd_handle = another.get();  // of no meaning here
    ASSERT_THAT(dat_evd_post_se(evd.get(), &event), Succeeds());
    std::memset(&event, 0xA5, sizeof event);
    const auto delivered = poll_event(evd.get());
    ASSERT_TRUE(delivered);
    EXPECT_EQ(delivered->evd_handle, evd.get());
    EXPECT_EQ(value_of(*delivered), value);
  }
  EXPECT_FALSE(poll_event(another.get()));
}

// EVD-POST-6, EVM-9
TEST_P(EvdPost, PostsKeepTheirOrder) {
  fill();
  std::vector<std::uintptr_t> expected;
  for (std::uintptr_t i = 1; i <= static_cast<std::uintptr_t>(evd.qlen()); ++i) {
    expected.push_back(i);
  }
  EXPECT_EQ(take_all(evd.get()), expected);
}

// EVD-POST-7, EVD-POST-13, EVM-52
TEST_P(EvdPost, FullQueueRefusesThePostAndNothingElseHappens) {
  const Cno cno(ia);
  fill();
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), cno.get()), Succeeds());
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(try_post(evd.get(), 1000), HasType(DAT_QUEUE_FULL));
  }
  EXPECT_FALSE(take_trigger(cno.get()));
  EXPECT_FALSE(poll_event(ia.async_evd())) << "a refused post is no overflow";
  const std::vector<std::uintptr_t> all = take_all(evd.get());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(evd.qlen()));
  EXPECT_EQ(all.back(), static_cast<std::uintptr_t>(evd.qlen()));
  post(evd.get(), 7);
  EXPECT_TRUE(take_trigger(cno.get()));
  ASSERT_THAT(dat_evd_modify_cno(evd.get(), DAT_HANDLE_NULL), Succeeds());
}

// EVD-POST-9, EVM-4
TEST_P(EvdPost, EvdMustTakeSoftwareEvents) {
  for (const unsigned bits : {0x010u, 0x020u, 0x040u, 0x080u, 0x100u, 0x1F0u}) {
    const Evd other(ia, flags(bits), 4);
    EXPECT_THAT(try_post(other.get()), HasType(DAT_INVALID_PARAMETER)) << std::hex << bits;
    EXPECT_FALSE(poll_event(other.get()));
  }
  EXPECT_THAT(try_post(ia.async_evd()), HasType(DAT_INVALID_PARAMETER));
}

// EVD-POST-1: also on an EVD that other streams may feed.
TEST_P(EvdPost, SoftwareEventsMayShareAnEvd) {
  const Evd all(ia, flags(0x1F1), 4);
  post(all.get(), 3);
  EXPECT_EQ(take(all.get()), 3u);
}

ANYDAT_OVER_ALL_WIRES(EvdPost);

}  // namespace
}  // namespace anydat::test
