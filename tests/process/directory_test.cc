// SPDX-License-Identifier: BSD-3-Clause
// Shared memory between network namespaces: processes that share a directory (DAT_SHM_DIR) meet in it.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "neighbour.h"
#include "os/unique_fd.h"
#include "support/dat_events.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAddress = "10.177.3.9";
constexpr const char* kLater = "10.177.3.12";

class SharedDirectory : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "anydat-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    share(directory_);
    try {
      Neighbour(wire_, {kAddress});
    } catch (const std::exception&) {
      GTEST_SKIP() << "this system gives no namespaces";
    }
  }
  void TearDown() override {
    env_.reset();
    if (!directory_.empty()) fs::remove_all(directory_);
  }
  // With DAT_WIRE=shm, which the wire has, there is no other way.
  void share(const fs::path& directory) {
    env_.reset();
    env_.emplace(std::map<std::string, std::string>{{"DAT_SHM_DIR", directory}});
  }
  // Too long for the address of a socket.
  fs::path deep_directory() const {
    fs::path deep = directory_;
    for (int i = 0; i < 4; ++i) deep /= std::string(60, 'd');
    fs::create_directories(deep);
    return deep;
  }
  static void exchange(Neighbour& first, Neighbour& second) {
    int seed = 0;
    for (Neighbour* from : {&first, &second}) {
      Neighbour& to = from == &first ? second : first;
      from->send(++seed);
      to.receive(seed);
      from->write(++seed);
      EXPECT_TRUE(to.holds(seed));
      from->read(seed);
    }
  }
  int names() const {
    int count = 0;
    const fs::path folder = directory_ / kAddress;
    if (!fs::exists(folder)) return 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++count;
    return count;
  }

  bool is_named(const char* address, const std::string& qualifier) const {
    return fs::is_socket(directory_ / address / qualifier);
  }
  bool gets_named(const char* address, const std::string& qualifier) const {
    return eventually([&] { return is_named(address, qualifier); });
  }
  bool loses_name(const char* address, const std::string& qualifier) const {
    return eventually([&] { return !is_named(address, qualifier); });
  }

  const Wire& wire_ = wire_by_name("shm");
  fs::path directory_;
  std::optional<ScopedEnv> env_;
};

TEST_F(SharedDirectory, LetsProcessesOfTwoNetworkNamespacesMeet) {
  Neighbour server(wire_, {kAddress});
  Neighbour client(wire_, {"10.177.3.10"});
  client.connect_to(server, kAddress);
  EXPECT_EQ(names(), 1);
  exchange(client, server);
}

// What 127.0.0.1 means is each namespace's own, and so is what serves there.
TEST_F(SharedDirectory, HasNoNameForLoopback) {
  Neighbour server(wire_, {kAddress});
  server.tell("take-address 127.0.0.1 lo:1");
  const std::string qualifier = server.tell("listen");
  EXPECT_EQ(names(), 1);
  for (const fs::directory_entry& folder : fs::directory_iterator(directory_)) {
    EXPECT_EQ(folder.path().filename(), kAddress);
  }
  Neighbour stranger(wire_, {"10.177.3.10"});
  stranger.tell("take-address 127.0.0.1 lo:1");
  stranger.tell(fmt::format("connect {} 127.0.0.1", qualifier));
  EXPECT_EQ(stranger.connection_event(), event_name(DAT_CONNECTION_EVENT_NON_PEER_REJECTED));
}

// The kernel translates the numbers of users: to whom they are shown they are those of his own namespace. In one both
// are their own root, as in rootless containers; in the other they have nothing in common.
TEST_F(SharedDirectory, LetsOneUserMeetWhateverItsNumbersAre) {
  for (const auto& [one, other] : {std::pair{"user-0", "user-0"}, std::pair{"user-0", "user-4711"}}) {
    SCOPED_TRACE(other);
    Neighbour server(wire_, {kAddress, one});
    Neighbour client(wire_, {"10.177.3.10", other});
    client.connect_to(server, kAddress);
    exchange(client, server);
    client.kill_all();
    server.kill_all();
  }
}

TEST_F(SharedDirectory, HasNamesForQualifiersOf64Bits) {
  const std::string qualifier = "18446744073709486079";  // whose lower bits another one has
  Neighbour server(wire_, {kAddress});
  server.tell("listen " + qualifier);
  EXPECT_TRUE(fs::is_socket(directory_ / kAddress / qualifier));
  Neighbour client(wire_, {"10.177.3.10"});
  client.tell(fmt::format("connect {} {}", qualifier, kAddress));
  server.tell("accept");
  EXPECT_EQ(client.connection_event(), event_name(DAT_CONNECTION_EVENT_ESTABLISHED));
}

TEST_F(SharedDirectory, MayHaveALongPath) {
  share(deep_directory());
  Neighbour server(wire_, {kAddress});
  Neighbour client(wire_, {"10.177.3.10"});
  client.connect_to(server, kAddress);
  exchange(client, server);
}

// As by pthread_exit() in main(): /proc/self shows nothing of such a process.
TEST_F(SharedDirectory, MayHaveALongPathWhenAMainThreadHasEnded) {
  share(deep_directory());
  Neighbour server(wire_, {kAddress, "main-thread-ends"});
  Neighbour client(wire_, {"10.177.3.10", "main-thread-ends"});
  server.tell("end-main-thread");
  client.tell("end-main-thread");
  client.connect_to(server, kAddress);
  exchange(client, server);
}

// In a directory that many may write to, another user may have put a link where a folder of ours is to be.
TEST_F(SharedDirectory, IsNotLeftByALink) {
  const fs::path elsewhere = directory_ / "elsewhere";
  fs::create_directory(elsewhere);
  fs::create_directory_symlink(elsewhere, directory_ / kAddress);
  Neighbour server(wire_, {kAddress});
  const std::string qualifier = server.tell("listen");
  EXPECT_TRUE(fs::is_empty(elsewhere)) << "the service point is published at another place";

  // Nor is a caller led to the service point of another address.
  constexpr const char* kOther = "10.177.3.12";
  Neighbour other(wire_, {kOther});
  other.tell("listen " + qualifier);
  ASSERT_TRUE(fs::exists(directory_ / kOther / qualifier));
  fs::remove(directory_ / kAddress);
  fs::create_directory_symlink(directory_ / kOther, directory_ / kAddress);
  Neighbour client(wire_, {"10.177.3.10"});
  EXPECT_THROW(client.tell(fmt::format("connect {} {}", qualifier, kAddress)), std::runtime_error);
}

// What a process that was killed has left behind is replaced when its number is wanted again, and until then it
// misleads no caller.
TEST_F(SharedDirectory, IsNotSpoiltByTheDead) {
  std::string qualifier;
  {
    Neighbour server(wire_, {kAddress});
    qualifier = server.tell("listen");
    EXPECT_EQ(names(), 1);
    server.kill_all();
  }
  EXPECT_EQ(names(), 1) << "the name of a process that was killed is left";
  Neighbour client(wire_, {"10.177.3.10"});
  client.tell(fmt::format("connect {} {}", qualifier, kAddress));
  EXPECT_EQ(client.connection_event(), event_name(DAT_CONNECTION_EVENT_NON_PEER_REJECTED));

  Neighbour server(wire_, {kAddress});
  server.tell("listen " + qualifier);
  EXPECT_EQ(names(), 1);
  Neighbour next(wire_, {"10.177.3.11"});
  next.tell(fmt::format("connect {} {}", qualifier, kAddress));
  server.tell("accept");
  EXPECT_EQ(next.connection_event(), event_name(DAT_CONNECTION_EVENT_ESTABLISHED));
}

TEST_F(SharedDirectory, KeepsNoNameOfAServicePointThatIsFreed) {
  Neighbour server(wire_, {kAddress});
  server.tell("listen");
  EXPECT_EQ(names(), 1);
  server.tell("listen-no-more");
  EXPECT_EQ(names(), 0);
}

TEST_F(SharedDirectory, FollowsAnAddressThatComesLater) {
  const std::string other = "4711";
  Neighbour server(wire_, {kAddress});
  const std::string qualifier = server.tell("listen");
  server.tell("listen " + other);
  server.tell(fmt::format("take-address {} lo:1", kLater));
  ASSERT_TRUE(gets_named(kLater, qualifier)) << "the address that has come is not published";
  EXPECT_TRUE(gets_named(kLater, other)) << "it is not for every service point";
  EXPECT_TRUE(is_named(kAddress, qualifier));
  Neighbour client(wire_, {"10.177.3.10"});
  client.connect_to(server, kLater, qualifier);
  exchange(client, server);

  server.tell("listen-no-more");
  EXPECT_FALSE(is_named(kLater, qualifier)) << "the name does not go with its service point";
  EXPECT_TRUE(is_named(kLater, other));
}

// A process that has the lock of a folder may be stopped: connections do not wait for it, and nor do names that can be
// had later.
TEST_F(SharedDirectory, IsNotWaitedForByConnectionsWhenAnAddressComes) {
  constexpr int kFirst = 4711, kMany = 40;
  Neighbour server(wire_, {kAddress});
  const std::string qualifier = server.tell("listen");
  for (int other = kFirst; other < kFirst + kMany; ++other) server.tell(fmt::format("listen {}", other));
  Neighbour client(wire_, {"10.177.3.10"});
  client.connect_to(server, kAddress, qualifier);
  ASSERT_TRUE(fs::create_directory(directory_ / kLater));
  os::UniqueFd lock(::open((directory_ / kLater).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);

  server.tell(fmt::format("take-address {} lo:1", kLater));
  const auto begun = std::chrono::steady_clock::now();
  exchange(client, server);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, patience() / 5);
  EXPECT_FALSE(is_named(kLater, qualifier));
  lock.reset();
  EXPECT_TRUE(gets_named(kLater, qualifier));
  EXPECT_TRUE(gets_named(kLater, std::to_string(kFirst + kMany - 1)));
}

TEST_F(SharedDirectory, KeepsNoNameOfAnAddressThatHasGone) {
  const std::string other = "4711";
  Neighbour server(wire_, {kAddress});
  server.tell(fmt::format("take-address {} lo:1", kLater));
  const std::string qualifier = server.tell("listen");
  server.tell("listen " + other);
  ASSERT_TRUE(is_named(kLater, qualifier));
  Neighbour client(wire_, {"10.177.3.10"});
  client.connect_to(server, kLater, qualifier);

  // What is no name of ours stays. The second service point is told after the first.
  const fs::path foreign = directory_ / kLater / qualifier;
  fs::remove(foreign);
  fs::create_directory(foreign);
  server.tell("lose-address lo:1");
  ASSERT_TRUE(loses_name(kLater, other)) << "the address that has gone is still published";
  EXPECT_TRUE(fs::is_directory(foreign));
  EXPECT_TRUE(is_named(kAddress, qualifier));
  exchange(client, server);  // a connection does not mind

  // Who has the address now is met there.
  fs::remove(foreign);
  Neighbour heir(wire_, {kLater});
  heir.tell("listen " + other);
  Neighbour next(wire_, {"10.177.3.11"});
  next.connect_to(heir, kLater, other);
  exchange(next, heir);
}

// An IPv4 address stays while its device is down, so nothing but the device is told of.
TEST_F(SharedDirectory, FollowsADeviceThatGoesDownAndUp) {
  Neighbour server(wire_, {kAddress});
  if (server.tell("without-ipv6") == "no") GTEST_SKIP() << "IPv6 cannot be switched off here";
  const std::string qualifier = server.tell("listen");
  ASSERT_TRUE(is_named(kAddress, qualifier));
  server.tell("device-down");
  EXPECT_TRUE(loses_name(kAddress, qualifier));
  server.tell("device-up");
  EXPECT_TRUE(gets_named(kAddress, qualifier));
  Neighbour client(wire_, {"10.177.3.10"});
  client.connect_to(server, kAddress, qualifier);
  exchange(client, server);
}

TEST_F(SharedDirectory, IsFollowedByOneSocketWhileThereAreServicePoints) {
  Neighbour server(wire_, {kAddress});
  EXPECT_EQ(server.tell("count-news"), "0");
  server.tell("listen");
  EXPECT_EQ(server.tell("count-news"), "1");
  server.tell("listen 4711");
  EXPECT_EQ(server.tell("count-news"), "1");

  env_.reset();
  Neighbour without(wire_, {kAddress});
  without.tell("listen");
  EXPECT_EQ(without.tell("count-news"), "0") << "nobody is to be told of addresses without a directory";
}

}  // namespace
}  // namespace anydat::test
