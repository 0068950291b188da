// SPDX-License-Identifier: BSD-3-Clause
// Every test ends. Whatever it waits for has a time-out of its own, but for waits without a limit that it is about, for
// threads that it joins, and for what it does not know to be a wait; whichever of these hangs, the program is ended,
// and says by which test.
#pragma once

#include <chrono>

namespace anydat::test {

// For main(): from now on no test takes longer than twelve times patience(), which is many times what any of them
// needs.
void watch_tests();

// The test that is running takes so much more, because it was asked to last.
void give_more_time(std::chrono::milliseconds more);

}  // namespace anydat::test
