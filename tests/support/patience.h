// SPDX-License-Identifier: BSD-3-Clause
// How long tests wait.
#pragma once

#include <chrono>
#include <functional>

namespace anydat::test {

// True under -fsanitize=address or =thread.
bool built_with_sanitizer();

// How long a test waits for something that must happen. Generous on purpose: it is only ever used up by a test that
// fails. 5 s, longer under a sanitizer, times the number in ANYDAT_TEST_TIMEOUT_SCALE.
std::chrono::milliseconds patience();

// How long a test watches for something that must not happen, where settle() cannot tell. Nothing that is absent can be
// awaited, so this is short, and it is used after an effect that the unwanted event would have preceded.
std::chrono::milliseconds quiet_time();

// Polls until `predicate` holds, and says whether it ever did.
bool eventually(const std::function<bool()>& predicate, std::chrono::milliseconds timeout = patience());

}  // namespace anydat::test
