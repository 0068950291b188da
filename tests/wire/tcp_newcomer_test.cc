// SPDX-License-Identifier: BSD-3-Clause
// A host that calls while many connections have just ended, and their peers do not hang up.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "support/patience.h"
#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using NewcomerClock = std::chrono::steady_clock;

class TcpNewcomer : public TcpTest {
 protected:
  TcpNewcomer() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    limit_to(kDescriptors);
  }
  ~TcpNewcomer() override { ::setrlimit(RLIMIT_NOFILE, &before_); }
  void limit_to(rlim_t descriptors) {
    rlimit limit = before_;
    limit.rlim_cur = descriptors;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }

  static constexpr rlim_t kDescriptors = 320;  // a quarter of them for callers
  static constexpr std::size_t kEnding = 70;
  static constexpr std::size_t kAsking = 10;

 private:
  rlimit before_{};
};

// RFC 5042, section 6: those that were connections have a minute if they only make a little progress, and two seconds
// without any. Callers have a share of the descriptors of their own.
TEST_F(TcpNewcomer, IsLetInBesidePeersThatDoNotHangUp) {
  std::deque<MpaPeer> peers;
  std::deque<Ep> ends;
  for (std::size_t i = 0; i < kEnding; ++i) {
    peers.emplace_back(target.port());
    ends.push_back(meet(peers.back()));
  }
  // Requests that the program takes its time to answer.
  std::vector<DAT_CR_HANDLE> asking;
  const auto next_request = [&] {
    const DAT_EVENT request = expect_event(target.side().requests.get(), DAT_CONNECTION_REQUEST_EVENT);
    asking.push_back(request.event_data.cr_arrival_event_data.cr_handle);
  };
  for (std::size_t i = 0; i < kAsking; ++i) {
    peers.emplace_back(target.port());
    peers.back().greet({});
    next_request();
  }
  const auto start = NewcomerClock::now();
  for (const Ep& ep : ends) {
    require(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
    target.expect_end(ep);
  }
  peers.emplace_back(target.port());
  peers.back().greet({});
  next_request();
  EXPECT_LT(NewcomerClock::now() - start, std::chrono::milliseconds(1500)) << "it has waited until they were over";
  for (const DAT_CR_HANDLE request : asking) require(dat_cr_reject(request), "dat_cr_reject");
  target.expect_unharmed();
}

// Nor does the one in whose place he comes lack for being all that there is left.
TEST_F(TcpNewcomer, IsLetInBesideThemWhereNoDescriptorIsLeft) {
  if (built_with_sanitizer()) GTEST_SKIP() << "the sanitizer needs a descriptor to look at memory, and calls it bad";
  std::deque<MpaPeer> peers;
  std::deque<Ep> ends;
  for (std::size_t i = 0; i < kEnding; ++i) {
    peers.emplace_back(target.port());
    ends.push_back(meet(peers.back()));
  }
  limit_to(4 * kEnding);  // they are as many as a quarter of them
  for (const Ep& ep : ends) {
    require(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
    target.expect_end(ep);
  }
  std::deque<base::UniqueFd> others;
  for (;;) {
    base::UniqueFd other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!other) break;
    others.push_back(std::move(other));
  }
  ASSERT_FALSE(others.empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // by then any of them may be cut short
  others.pop_back();                                             // for our own socket
  peers.emplace_back(target.port());
  peers.back().greet({});
  const auto request = wait_event(target.side().requests.get());
  others.clear();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->event_number, DAT_CONNECTION_REQUEST_EVENT);
  require(dat_cr_reject(request->event_data.cr_arrival_event_data.cr_handle), "dat_cr_reject");
  target.expect_unharmed();
}

}  // namespace
}  // namespace anydat::test
