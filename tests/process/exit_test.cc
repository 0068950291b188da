// SPDX-License-Identifier: BSD-3-Clause
// How a program with an adapter open may end and start others: exit() and quick_exit() with threads inside the library,
// posix_spawn() and system(), and another effective user. Each case is played by a process of its own.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>

#include "support/child.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"
#include "support/threads.h"

extern char** environ;

namespace anydat::test {
namespace {

// Two threads sleep in waits, a third polls, and a connection stands, when the process ends. Argument: by which call.
void play_exit(RoleContext& context) {
  Side& server = *new Side(context.wire);
  Side& client = *new Side(context.wire);
  new Connection(connect_pair(server, client));
  Evd& polled = *new Evd(server.ia, DAT_EVD_SOFTWARE_FLAG, 4);
  const auto wait_on = [](DAT_EVD_HANDLE evd) {
    return [evd] {
      DAT_EVENT event{};
      DAT_COUNT more = 0;
      dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
    };
  };
  (new WatchedThread(wait_on(server.recv.get())))->wait_until_asleep();
  (new WatchedThread(wait_on(client.recv.get())))->wait_until_asleep();
  std::thread([&polled] {
    DAT_EVENT event{};
    for (;;) dat_evd_dequeue(polled.get(), &event);
  }).detach();
  if (testing::Test::HasFailure()) ::_exit(1);
  context.arguments.at(0) == "exit" ? std::exit(17) : std::quick_exit(17);
}
const Role kExit("exit-with-waiters", play_exit);

void expect_message(const Side& server, const Side& client, const Connection& connection, const Lmr& sink,
                    const Lmr& source) {
  DAT_LMR_TRIPLET to = sink.triplet(), from = source.triplet();
  require(dat_ep_post_recv(connection.server.get(), 1, &to, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  require(dat_ep_post_send(connection.client.get(), 1, &from, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  expect_completion(server.recv.get());
  expect_completion(client.request.get());
}

// Descriptors of a program that posix_spawn started beside the three that it is given: none are the library's.
void play_spawner(RoleContext& context) {
  Side server(context.wire), client(context.wire);
  const Lmr sink(server.ia, server.pz, 64), source(client.ia, client.pz, 64);
  const Connection connection = connect_pair(server, client);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(std::system("exit 3") >> 8, 3);
    std::array<std::string, 3> words{"/bin/sh", "-c",
                                     "for f in /proc/self/fd/*; do readlink $f; done | grep -q anydat"};
    std::array<char*, 4> argv{words[0].data(), words[1].data(), words[2].data(), nullptr};
    pid_t pid = -1;
    ASSERT_EQ(posix_spawn(&pid, "/bin/sh", nullptr, nullptr, argv.data(), environ), 0);
    const int status = end_of(pid);
    EXPECT_EQ(WEXITSTATUS(status), 1) << "a descriptor of the library was passed on";
    expect_message(server, client, connection, sink, source);
  }
}
const Role kSpawner("spawner", play_spawner);

// Drops its privileges, if it has any, with the adapter open: what is open goes on, a service point of before is
// reached over TCP, as those of other users are, and new adapters find each other as usual.
void play_other_user(RoleContext&) {
  const Wire both{.name = "both", .ia_name = "soft-lo", .env = {}};
  Side server(both), client(both);
  const Lmr sink(server.ia, server.pz, 64), source(client.ia, client.pz, 64);
  const Connection before = connect_pair(server, client);
  constexpr uid_t kNobody = 65534;
  if (::geteuid() == 0) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  expect_message(server, client, before, sink, source);
  const Connection after = connect_pair(server, client);
  expect_message(server, client, after, sink, source);
  Side new_server(both), new_client(both);
  const Lmr new_sink(new_server.ia, new_server.pz, 64), new_source(new_client.ia, new_client.pz, 64);
  const Connection anew = connect_pair(new_server, new_client);
  expect_message(new_server, new_client, anew, new_sink, new_source);
}
const Role kOtherUser("other-user", play_other_user);

class ProcessEnd : public testing::TestWithParam<Wire> {};

TEST_P(ProcessEnd, ExitWithThreadsInsideTheLibrary) {
  EXPECT_EQ(PeerProcess("exit-with-waiters", GetParam(), {"exit"}).wait_exit(), 17);
}

TEST_P(ProcessEnd, QuickExitWithThreadsInsideTheLibrary) {
  EXPECT_EQ(PeerProcess("exit-with-waiters", GetParam(), {"quick_exit"}).wait_exit(), 17);
}

TEST_P(ProcessEnd, SpawnedProgramsInheritNothing) {
  EXPECT_EQ(PeerProcess("spawner", GetParam()).wait_exit(), 0);
}

TEST(OtherUser, WhatIsOpenGoesOnAndMoreCanBeMade) {
  EXPECT_EQ(PeerProcess("other-user", wire_by_name("shm")).wait_exit(), 0);
}

INSTANTIATE_TEST_SUITE_P(Wires, ProcessEnd, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
