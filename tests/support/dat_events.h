// SPDX-License-Identifier: BSD-3-Clause
// Reaping events in tests.
#pragma once

#include <dat/udat.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "support/caller.h"
#include "support/patience.h"

namespace anydat::test {

std::string event_name(DAT_EVENT_NUMBER number);

// The time-out of a call that the test wants to come back for another reason. It ends the test in which that never
// comes.
DAT_TIMEOUT long_timeout();

// Waits with dat_evd_wait for one event; nothing when the time is up.
std::optional<DAT_EVENT> wait_event(DAT_EVD_HANDLE evd, std::chrono::milliseconds timeout = patience());

// Takes one event with dat_evd_dequeue if there is one now.
std::optional<DAT_EVENT> poll_event(DAT_EVD_HANDLE evd);

// The next event of the EVD, which must be of that number. Throws otherwise: a test has no use for going on.
DAT_EVENT expect_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, Caller caller = Caller::here());

// The next event as a DTO completion; it must carry `status`. Throws if there is none, fails on another status.
DAT_DTO_COMPLETION_EVENT_DATA expect_completion(DAT_EVD_HANDLE evd, DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS,
                                                Caller caller = Caller::here());

// The next `count` completions, all with `status`.
std::vector<DAT_DTO_COMPLETION_EVENT_DATA> expect_completions(DAT_EVD_HANDLE evd, int count,
                                                              DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS,
                                                              Caller caller = Caller::here());

// Fails if an event is on the EVD, or comes of what has been posted, put off or sent before: all adapters of this
// process are made to carry that out first (settle()). Where there is more on which that depends, such as another
// process, or a device, it is watched for quiet_time(): then a wrong event is found for certain only if the caller has
// first seen an effect that the event would have come before. It never fails a correct library, since a rule says that
// no event comes.
void expect_no_event(DAT_EVD_HANDLE evd, Caller caller = Caller::here());

// Takes and drops everything that is on the EVD now; returns how many.
int drain(DAT_EVD_HANDLE evd);

}  // namespace anydat::test
