// SPDX-License-Identifier: BSD-3-Clause
// A host that calls while many connections have just ended, and their peers do not hang up.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "os/unique_fd.h"
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

  // A socket that has called from 127.0.0.`from`.
  os::UniqueFd called_from(unsigned from) {
    os::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(0x7f000000u | from);
    sockaddr_in there = here;
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    there.sin_port = htons(static_cast<std::uint16_t>(target.port()));
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0) {
      throw std::runtime_error("nobody takes the call");
    }
    return socket;
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

// A request that the program does not answer keeps its descriptor for as long as no other caller needs one, and for
// seconds. Then one of the host with the most of them goes: its peer is told so, and the program when it accepts
// (CR-ACC-5). The others are as good as ever.
TEST_F(TcpNewcomer, IsLetInBesideRequestsThatTheProgramDoesNotAnswer) {
  std::deque<MpaPeer> peers;
  std::deque<DAT_CR_HANDLE> asking;
  const auto ask = [&](unsigned from) {
    peers.emplace_back(called_from(from));
    peers.back().greet({});
    const auto event = wait_event(target.side().requests.get(), 2 * patience());
    if (!event) return false;
    EXPECT_EQ(event->event_number, DAT_CONNECTION_REQUEST_EVENT);
    asking.push_back(event->event_data.cr_arrival_event_data.cr_handle);
    return true;
  };
  constexpr std::size_t kOthers = 2;
  ASSERT_TRUE(ask(3));
  ASSERT_TRUE(ask(5));
  for (rlim_t i = kOthers; i < kDescriptors / 4; ++i) ASSERT_TRUE(ask(2)) << i;
  for (const unsigned newcomer : {4, 6})
    ASSERT_TRUE(ask(newcomer)) << "it is kept out for as long as the program likes";
  const auto is_served = [&](std::size_t which) {
    const Ep ep(target.side(), target.srq(), default_srq_ep_attr());
    require(dat_cr_accept(asking[which], ep.get(), 0, nullptr), "dat_cr_accept");
    const DAT_EVENT_NUMBER outcome = wait_event(target.side().connect.get()).value().event_number;
    const auto answer = peers[which].hear_answer();
    EXPECT_TRUE(answer) << which;
    if (outcome == DAT_CONNECTION_EVENT_ESTABLISHED) {
      EXPECT_FALSE(answer && answer->frame.rejected) << which;
      return true;
    }
    EXPECT_EQ(outcome, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
    EXPECT_TRUE(answer && answer->frame.rejected) << which;
    EXPECT_TRUE(peers[which].hung_up()) << which;
    return false;
  };
  // Of 127.0.0.2 the oldest are not served. One of the other hosts may happen to have the same number as it, but hardly
  // both.
  std::size_t others = 0, of_the_busiest = 0;
  for (std::size_t i = 0; i < kOthers; ++i) others += is_served(i) ? 1 : 0;
  for (std::size_t i = kOthers; i < 2 * kOthers; ++i) of_the_busiest += is_served(i) ? 1 : 0;
  EXPECT_GE(others, 1u);
  EXPECT_EQ(others + of_the_busiest, kOthers);
  for (std::size_t i = asking.size() - 2; i < asking.size(); ++i) EXPECT_TRUE(is_served(i)) << "newcomer";
  for (std::size_t i = 2 * kOthers; i < asking.size() - 2; ++i) require(dat_cr_reject(asking[i]), "dat_cr_reject");
  target.expect_unharmed();
}

// A server that the program calls again as soon as it has been turned away keeps each of those sockets.
TEST_F(TcpNewcomer, IsFoundByAProgramThatCallsThoughAServerKeepsWhatIsOver) {
  MpaListener server;
  const Ep ep(target.side(), target.srq());
  std::vector<MpaPeer> kept;
  for (rlim_t i = 0; i < 2 * kDescriptors; ++i) {
    const DAT_RETURN called = dat_ep_connect(ep.get(), loopback(), server.port(), DAT_TIMEOUT_INFINITE, 0, nullptr,
                                             DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
    ASSERT_EQ(called, DAT_SUCCESS) << i << " sockets are kept";
    std::optional<MpaPeer> peer = server.accept();
    ASSERT_TRUE(peer && peer->hear_request());
    limit_to(4 * kDescriptors);
    peer->move_descriptor_to(kDescriptors);
    limit_to(kDescriptors);
    peer->send(MpaPeer::answer({.revision = 2, .enhanced = nic::soft::iwarp::Enhanced{.ird = 4, .ord = 1}}));
    peer->send(repeat(100, 0xff));
    kept.push_back(std::move(*peer));
    expect_event(target.side().connect.get(), DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    require(dat_ep_reset(ep.get()), "dat_ep_reset");
  }
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
  std::deque<os::UniqueFd> others;
  for (;;) {
    os::UniqueFd other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
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
