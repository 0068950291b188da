// SPDX-License-Identifier: BSD-3-Clause
#include "support/watchdog.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "support/patience.h"

namespace anydat::test {
namespace {

// A timer of the kernel's: no thread, of which a test might count one too many, and none in a child.
timer_t its_end;
std::string last_words;

extern "C" void end_the_program(int) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, last_words.data(), last_words.size());
  ::signal(SIGABRT, SIG_DFL);
  std::abort();
}

// Null: never.
void set_end(std::chrono::milliseconds from_now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(from_now);
  itimerspec time{};
  time.it_value = {seconds.count(), std::chrono::nanoseconds(from_now - seconds).count()};
  ::timer_settime(its_end, 0, &time, nullptr);
}

class Watchdog : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    const std::chrono::milliseconds limit = 12 * patience();
    last_words = fmt::format("[  FAILED  ] {}.{}: it hangs, {} ms were not enough\n", test.test_suite_name(),
                             test.name(), limit.count());
    set_end(limit);
  }
  void OnTestEnd(const testing::TestInfo&) override { set_end(std::chrono::milliseconds(0)); }
};

}  // namespace

void watch_tests() {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  struct sigaction action {};
  action.sa_handler = end_the_program;
  if (::timer_create(CLOCK_MONOTONIC, &event, &its_end) != 0 || ::sigaction(SIGALRM, &action, nullptr) != 0) {
    throw std::runtime_error("no timer");
  }
  testing::UnitTest::GetInstance()->listeners().Append(new Watchdog);
}

void give_more_time(std::chrono::milliseconds more) {
  itimerspec left{};
  ::timer_gettime(its_end, &left);
  set_end(more + std::chrono::seconds(left.it_value.tv_sec) +
          std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(left.it_value.tv_nsec)));
}

}  // namespace anydat::test
