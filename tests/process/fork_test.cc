// SPDX-License-Identifier: BSD-3-Clause
// fork() without exec: the child has nothing of the library's connections, and may begin anew; the parent goes on.
#include <anydat/anydat.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "forked.h"
#include "support/child.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

extern char** environ;

namespace anydat::test {
namespace {

class Fork : public testing::TestWithParam<Wire> {
 protected:
  void connect(const Ep& ep, Side& side, DAT_CONN_QUAL qualifier) {
    require(dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    event_ = wait_event(side.connect.get());
  }
  std::optional<DAT_EVENT> event_;
};

// ---- the death of the parent

// Argument: qualifier. Connects, forks, and says who the child is.
void play_forking_client(RoleContext& context) {
  Side side(context.wire);
  const Ep ep(side);
  require(dat_ep_connect(ep.get(), loopback(), std::stoull(context.arguments.at(0)), DAT_TIMEOUT_INFINITE, 0, nullptr,
                         DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  const pid_t child = ::fork();
  if (child == 0) idle_until_killed();
  context.parent.say(std::to_string(child));
  context.parent.hear();
}

const Role kForkingClient("forking_client", play_forking_client);

// A process that is no child of this one.
class Stranger {
 public:
  explicit Stranger(pid_t pid) : pid_(pid) {}
  ~Stranger() { ::kill(pid_, SIGKILL); }
  bool alive() const { return ::kill(pid_, 0) == 0; }

 private:
  pid_t pid_;
};

TEST_P(Fork, TheDeathOfTheParentIsNoticedWhileItsChildLives) {
  Side side(GetParam());
  const Ep ep(side);
  PeerProcess client("forking_client", GetParam(), {std::to_string(side.listen())});
  const DAT_CR_HANDLE request =
      expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
  require(dat_cr_accept(request, ep.get(), 0, nullptr), "dat_cr_accept");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  const Stranger child(std::stoi(client.channel().hear()));
  client.kill();
  const auto event = wait_event(side.connect.get());
  ASSERT_TRUE(event) << "the child keeps the connection";
  EXPECT_THAT(event->event_number, testing::AnyOf(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED));
  EXPECT_TRUE(child.alive());
}

TEST_P(Fork, AServicePointThatIsFreedAcceptsNobodyWhileAChildLives) {
  Side server(GetParam());
  Side client(GetParam());
  const DAT_CONN_QUAL qualifier = server.listen();
  const IdleChild child;
  server.psp.reset();
  const Ep ep(client);
  connect(ep, client, qualifier);
  ASSERT_TRUE(event_) << "the child's copy takes the call";
  EXPECT_EQ(event_->event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED) << event_name(event_->event_number);
  require(dat_ep_reset(ep.get()), "dat_ep_reset");
}

TEST_P(Fork, ADisconnectReachesThePeerWhileAChildLives) {
  Side server(GetParam());
  Side client(GetParam());
  Connection pair = connect_pair(server, client);
  const IdleChild child;
  require(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  EXPECT_TRUE(wait_event(server.connect.get()));
  EXPECT_TRUE(wait_event(client.connect.get()));
}

// ---- the child

int lines_with(const char* file, const char* text) {
  std::ifstream in(file);
  int count = 0;
  for (std::string line; std::getline(in, line);) count += line.find(text) != std::string::npos ? 1 : 0;
  return count;
}

int sockets_and_the_like() {
  int count = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    std::array<char, 256> name{};
    if (::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), name.data(), name.size() - 1) < 0) continue;
    const std::string_view what(name.data());
    count +=
        what.starts_with("socket:") || what.starts_with("anon_inode:") || what.starts_with("/memfd:anydat") ? 1 : 0;
  }
  return count;
}

TEST_P(Fork, TheChildInheritsNeitherDescriptorsNorSegments) {
  // What librdmacm opens for itself stays open for the process's life.
  { const Ia first(GetParam()); }
  const int before = sockets_and_the_like();
  Side server(GetParam());
  Side client(GetParam());
  Connection pair = connect_pair(server, client);
  ASSERT_GT(sockets_and_the_like(), before);
  EXPECT_TRUE(holds_in_child([&] {
    EXPECT_EQ(sockets_and_the_like(), before);
    EXPECT_EQ(lines_with("/proc/self/maps", "memfd:anydat"), 0);
    return true;
  }));
}

TEST_P(Fork, OldHandlesAreRefusedInTheChild) {
  Side side(GetParam());
  Side client(GetParam());
  Connection pair = connect_pair(side, client);
  const Srq srq(side.ia, side.pz, 16);
  const Lmr memory(side.ia, side.pz, 4096);
  const DAT_EP_HANDLE ep = pair.server.get();
  const DAT_EVD_HANDLE evd = side.recv.get();
  EXPECT_TRUE(holds_in_child([&] {
    const auto refused = HasType(DAT_INVALID_HANDLE);
    DAT_LMR_TRIPLET segment = memory.triplet();
    DAT_RMR_TRIPLET remote = memory.remote(0, 16);
    DAT_EVENT event;
    DAT_COUNT more = 0;
    DAT_EP_PARAM ep_param;
    DAT_IA_ATTR ia_attr;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    DAT_CONTEXT context{};
    EXPECT_THAT(dat_ep_post_send(ep, 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), refused);
    EXPECT_THAT(dat_ep_post_recv(ep, 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), refused);
    EXPECT_THAT(dat_ep_post_rdma_write(ep, 1, &segment, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG), refused);
    EXPECT_THAT(dat_ep_post_rdma_read(ep, 1, &segment, {}, &remote, DAT_COMPLETION_DEFAULT_FLAG), refused);
    EXPECT_THAT(dat_ep_query(ep, DAT_EP_FIELD_ALL, &ep_param), refused);
    EXPECT_THAT(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG), refused);
    EXPECT_THAT(dat_ep_reset(ep), refused);
    EXPECT_THAT(dat_ep_free(ep), refused);
    EXPECT_THAT(dat_srq_post_recv(srq.get(), 1, &segment, {}), refused);
    EXPECT_THAT(dat_srq_free(srq.get()), refused);
    EXPECT_THAT(dat_evd_dequeue(evd, &event), refused);
    const ANYDAT_EP_POST to_ep{1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG};
    const ANYDAT_SRQ_POST to_srq{1, &segment, {}};
    EXPECT_THAT(anydat_ep_post_sends(ep, 1, &to_ep, &more), refused);
    EXPECT_THAT(anydat_ep_post_recvs(ep, 1, &to_ep, &more), refused);
    EXPECT_THAT(anydat_srq_post_recvs(srq.get(), 1, &to_srq, &more), refused);
    EXPECT_THAT(anydat_evd_dequeue_many(evd, 1, &event, &more), refused);
    EXPECT_THAT(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more), refused);
    EXPECT_THAT(dat_evd_free(evd), refused);
    EXPECT_THAT(dat_lmr_free(memory.get()), refused);
    EXPECT_THAT(dat_psp_free(side.psp->get()), refused);
    EXPECT_THAT(dat_pz_create(side.ia.get(), &pz), refused);
    EXPECT_THAT(dat_pz_free(side.pz.get()), refused);
    EXPECT_THAT(dat_set_consumer_context(ep, context), refused);
    EXPECT_THAT(dat_ia_query(side.ia.get(), &async, DAT_IA_FIELD_ALL, &ia_attr, DAT_PROVIDER_FIELD_NONE, nullptr),
                refused);
    EXPECT_THAT(dat_ia_close(side.ia.get(), DAT_CLOSE_ABRUPT_FLAG), refused);
    // As programs that were built with the macros of older headers call.
    EXPECT_THAT(DAT_HANDLE_TO_PROVIDER(ep)->ep_disconnect_func(ep, DAT_CLOSE_ABRUPT_FLAG), refused);
    EXPECT_THAT(DAT_HANDLE_TO_PROVIDER(evd)->evd_dequeue_func(evd, &event), refused);
    return true;
  }));
}

// Sends one message from one side to the other.
void send_one(Side& server, const Ep& to, Side& client, const Ep& from, std::size_t bytes = 100) {
  Lmr sent(client.ia, client.pz, bytes);
  const Lmr received(server.ia, server.pz, bytes);
  std::fill(sent.bytes().begin(), sent.bytes().end(), std::byte{42});
  DAT_LMR_TRIPLET there = received.triplet();
  DAT_LMR_TRIPLET here = sent.triplet();
  require(dat_ep_post_recv(to.get(), 1, &there, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  require(dat_ep_post_send(from.get(), 1, &here, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  expect_completion(client.request.get());
  expect_completion(server.recv.get());
  EXPECT_TRUE(std::equal(sent.bytes().begin(), sent.bytes().end(), received.bytes().begin()));
}

bool work_from_the_start(const Wire& wire) {
  Side server(wire);
  Side client(wire);
  Connection pair = connect_pair(server, client);
  send_one(server, pair.server, client, pair.client);
  send_one(server, pair.server, client, pair.client, 300'000);
  return true;
}

TEST_P(Fork, TheChildBeginsAnewAndSoDoesItsChild) {
  Side server(GetParam());
  Side client(GetParam());
  Connection pair = connect_pair(server, client);
  EXPECT_TRUE(holds_in_child([&] {
    work_from_the_start(GetParam());
    return holds_in_child([&] { return work_from_the_start(GetParam()); });
  }));
  send_one(server, pair.server, client, pair.client);
}

TEST_P(Fork, TheChildReachesItsParent) {
  Side server(GetParam());
  const Ep server_ep(server);
  const DAT_CONN_QUAL qualifier = server.listen();
  std::thread acceptor([&] {
    const auto request = wait_event(server.requests.get());
    if (!request) return;
    require(dat_cr_accept(request->event_data.cr_arrival_event_data.cr_handle, server_ep.get(), 0, nullptr),
            "dat_cr_accept");
  });
  EXPECT_TRUE(holds_in_child([&] {
    Side client(GetParam());
    const Ep ep(client);
    connect(ep, client, qualifier);
    return event_ && event_->event_number == DAT_CONNECTION_EVENT_ESTABLISHED;
  }));
  acceptor.join();
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_TRUE(wait_event(server.connect.get())) << "the end of the child";
}

// ---- many threads

TEST_P(Fork, WhileOtherThreadsAreInsideTheLibraryTheChildDoesNotHang) {
  const ScopedEnv env(GetParam().env);  // what the threads set and restore at the same time stays as it is
  Side server(GetParam());
  Side client(GetParam());
  Connection pair = connect_pair(server, client);
  std::atomic<bool> over{false};
  std::vector<std::jthread> threads;
  threads.emplace_back([&] {
    while (!over) send_one(server, pair.server, client, pair.client);
  });
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!over) {
        const Ia ia(GetParam());
        const Pz pz(ia);
        void* memory = nullptr;
        require(anydat_alloc_shareable(100, &memory), "anydat_alloc_shareable");
        require(anydat_free_shareable(memory), "anydat_free_shareable");
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(holds_in_child([&] {
      const Ia ia(GetParam());
      const Pz pz(ia);
      void* memory = nullptr;
      return anydat_alloc_shareable(100, &memory) == DAT_SUCCESS && anydat_free_shareable(memory) == DAT_SUCCESS;
    }));
  }
  over = true;
}

// ---- what else starts processes

TEST_P(Fork, ProgramsThatAreStartedMeanwhileHarmNothing) {
  Side server(GetParam());
  Side client(GetParam());
  Connection pair = connect_pair(server, client);
  EXPECT_EQ(std::system("true"), 0);
  send_one(server, pair.server, client, pair.client);
  std::array<char, 5> name{"true"};
  std::array<char*, 2> arguments{name.data(), nullptr};
  pid_t child = -1;
  ASSERT_EQ(::posix_spawnp(&child, "true", nullptr, nullptr, arguments.data(), environ), 0);
  EXPECT_EQ(end_of(child), 0);
  send_one(server, pair.server, client, pair.client);
}

// ---- memory that the program shares

TEST(ForkMemory, ShareableMemoryIsTheChildsToo) {
  void* memory = nullptr;
  require(anydat_alloc_shareable(4096, &memory), "anydat_alloc_shareable");
  auto* const word = static_cast<volatile int*>(memory);
  EXPECT_TRUE(holds_in_child([&] {
    *word = 42;
    return anydat_free_shareable(memory) == DAT_SUCCESS;
  }));
  EXPECT_EQ(*word, 42);
  require(anydat_free_shareable(memory), "anydat_free_shareable");
}

INSTANTIATE_TEST_SUITE_P(Wires, Fork, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
