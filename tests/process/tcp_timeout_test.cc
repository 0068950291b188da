// SPDX-License-Identifier: BSD-3-Clause
// DAT_TCP_TIMEOUT_MS: what is too short is raised, which is said; 0 is no limit at all.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

// How many connections over TCP this process has, and of how many it has the host asked whether it is still there.
struct Connections {
  int all = 0;
  int watched = 0;
  static Connections here() {
    Connections found;
    for (int fd = 0; fd < 4096; ++fd) {
      int domain = 0, on = 0;
      socklen_t size = sizeof domain;
      sockaddr_in6 peer{};
      socklen_t length = sizeof peer;
      if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || (domain != AF_INET && domain != AF_INET6) ||
          ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) {
        continue;
      }
      size = sizeof on;
      ::getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &size);
      ++found.all;
      found.watched += on != 0 ? 1 : 0;
    }
    return found;
  }
};

// Says what it has printed while it opened its adapter, as how many warnings of that limit, and its qualifier; then, of
// one connection, whether its host is asked.
void play_limited(RoleContext& context) {
  const int log = ::memfd_create("stderr", MFD_CLOEXEC);
  const int before = ::dup(2);
  if (log < 0 || before < 0 || ::dup2(log, 2) != 2) throw std::runtime_error("standard error cannot be captured");
  Side side(context.wire);
  ::dup2(before, 2);
  std::string text(65536, '\0');
  const ssize_t length = ::pread(log, text.data(), text.size(), 0);
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  int warnings = 0;
  for (std::size_t at = 0; (at = text.find("warn: DAT_TCP_TIMEOUT_MS is ", at)) != std::string::npos; ++at) ++warnings;
  context.parent.say(std::to_string(warnings));
  context.parent.say(std::to_string(side.listen()));
  const Ep ep(side);
  const DAT_EVENT request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  const Connections found = Connections::here();
  context.parent.say(fmt::format("{} of {}", found.watched, found.all));
  context.parent.hear();
}
const Role kLimited("tcp-timeout-limited", play_limited);

TEST(TcpTimeout, IsRaisedWithAWarningAndZeroIsNone) {
  struct Case {
    const char* limit;
    const char* warnings;
    const char* watched;
  };
  for (const Case& one :
       {Case{"1", "1", "1 of 1"}, Case{"1999", "1", "1 of 1"}, Case{"2000", "0", "1 of 1"}, Case{"0", "0", "0 of 1"}}) {
    SCOPED_TRACE(one.limit);
    std::optional<ScopedEnv> env(
        std::in_place, std::map<std::string, std::string>{{"DAT_LOG", "warn"}, {"DAT_TCP_TIMEOUT_MS", one.limit}});
    const Wire& wire = wire_by_name("tcp");
    PeerProcess limited("tcp-timeout-limited", wire);
    env.reset();
    EXPECT_EQ(limited.channel().hear(), one.warnings);
    const Side side(wire);
    const Ep ep(side);
    require(dat_ep_connect(ep.get(), loopback(), std::stoull(limited.channel().hear()), DAT_TIMEOUT_INFINITE, 0,
                           nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EQ(limited.channel().hear(), one.watched);
    limited.channel().say("enough");
    EXPECT_EQ(limited.wait_exit(), 0);
  }
}

}  // namespace
}  // namespace anydat::test
