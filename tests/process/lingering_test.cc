// SPDX-License-Identifier: BSD-3-Clause
// Descriptors that a process of the same user passes along, and that take long to close: nobody waits for that but a
// thread that does nothing else.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hostile_target.h"
#include "raw_peer.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

using shm::GreetingKind;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLingers{20};
constexpr std::size_t kCount = 3;
constexpr int kPeers = 4;

// A TCP socket with more to send than its peer takes: whoever closes it last waits for that, or for the time to go by.
class Lingering {
 public:
  Lingering() {
    const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socket_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listener.get(), generic, size) != 0 || ::listen(listener.get(), 1) != 0 ||
        ::getsockname(listener.get(), generic, &size) != 0 || ::connect(socket_.get(), generic, size) != 0) {
      throw std::runtime_error("no TCP connection");
    }
    other_ = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const linger long_time{1, static_cast<int>(kLingers.count())};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time);
    static const std::array<char, 64 << 10> bytes{};
    while (::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
  }
  int get() const { return socket_.get(); }
  // Only those it has been passed to have it from now on. They may end to linger when this goes.
  void give_away() { const Fd gone = std::move(socket_); }

 private:
  Fd socket_;
  Fd other_;
};

struct Way {
  std::string name;
  // What comes before, and how they are passed.
  std::function<void(RawPeer& peer)> begin;
  std::function<void(RawPeer& peer, const std::vector<int>& descriptors)> pass;
};
std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << way.name;
}

void link(RawPeer& peer) {
  if (!peer.shake_hands()) throw std::runtime_error("there is no link");
}

const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      {"InPlaceOfSegments",
       [](RawPeer& peer) {
         peer.greet(GreetingKind::hello);
         peer.hear();
       },
       [](RawPeer& peer, const std::vector<int>& descriptors) { peer.greet(GreetingKind::attach, descriptors); }},
      {"WithAGreetingThatNeedsNone", [](RawPeer&) {},
       [](RawPeer& peer, const std::vector<int>& descriptors) {
         std::vector<int> many;
         while (many.size() < 250) many.insert(many.end(), descriptors.begin(), descriptors.end());
         peer.greet(GreetingKind::hello, many);
       }},
      {"WithABell", link,
       [](RawPeer& peer, const std::vector<int>& descriptors) {
         const std::byte bell{};
         peer.send_bytes({&bell, 1}, descriptors);
       }},
      {"AsARegion", link,
       [](RawPeer& peer, const std::vector<int>& descriptors) {
         for (const int descriptor : descriptors) peer.send_bytes(bytes_of(shm::MappingBody{}), {descriptor});
       }},
      {"BehindNonsense", [](RawPeer&) {},
       [](RawPeer& peer, const std::vector<int>& descriptors) {
         peer.greet(static_cast<GreetingKind>(77));
         peer.send_bytes({}, {});
         for (const int descriptor : descriptors) peer.greet(GreetingKind::hello, {descriptor});
       }},
      {"ByCallersThatHangUp", [](RawPeer&) {},
       [](RawPeer& peer, const std::vector<int>& descriptors) {
         peer.greet(GreetingKind::hello, descriptors);
         peer.hang_up();
       }},
  };
  return all;
}

class LingeringDescriptors : public testing::TestWithParam<Way> {};

TEST_P(LingeringDescriptors, HoldUpNobody) {
  const Wire& wire = wire_by_name("shm");
  HostileTarget target(wire);
  Friend well_behaved(wire, target.qualifier(), 1);
  well_behaved.pass_message(100);
  const HostileTarget::State before = target.state();
  {
    std::vector<Lingering> passed(kCount);
    std::vector<int> descriptors;
    for (const Lingering& one : passed) descriptors.push_back(one.get());
    std::vector<RawPeer> peers;
    for (int i = 0; i < kPeers; ++i) GetParam().begin(peers.emplace_back(target.service()));
    // It finds all of it when it goes on, and is the only one to have it then.
    target.stop();
    for (RawPeer& peer : peers) GetParam().pass(peer, descriptors);
    for (Lingering& one : passed) one.give_away();
    target.resume();
    const auto begun = Clock::now();
    for (int i = 0; i < 20; ++i) well_behaved.pass_message(100);
    EXPECT_LT(Clock::now() - begun, kLingers / 4);
    // Nor is anybody else kept out.
    Friend another(wire, target.qualifier(), 2);
    another.pass_message(100);
    another.leave();
    EXPECT_LT(Clock::now() - begun, kLingers / 2);
  }
  target.expect_back_to(before);
  well_behaved.leave();
  target.finish();
}

INSTANTIATE_TEST_SUITE_P(Ways, LingeringDescriptors, testing::ValuesIn(ways()),
                         [](const testing::TestParamInfo<Way>& each) { return each.param.name; });

}  // namespace
}  // namespace anydat::test
