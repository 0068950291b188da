// SPDX-License-Identifier: BSD-3-Clause
// Machines that have run out of something: descriptors, address space, /proc. Calls and connections fail in order, and
// work again when there is enough.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "footprint.h"
#include "payload.h"
#include "raw_peer.h"
#include "srq_server.h"
#include "support/dat_fixture.h"
#include "support/few_descriptors.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr std::size_t kContainedBytes = 100'000;

class Limits : public testing::TestWithParam<Wire> {};

// ---- a service point without descriptors

// PSP-ANY-3 is looked after with a descriptor more. Without one no qualifier is said to be another's.
TEST_P(Limits, NoQualifierIsTakenForAnothersForWantOfDescriptors) {
  const Side side(GetParam());
  for (int left = 0; left < 6; ++left) {
    const FewDescriptors few(left);
    DAT_CONN_QUAL qualifier = 0;
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    const DAT_RETURN rc =
        dat_psp_create_any(side.ia.get(), &qualifier, side.requests.get(), DAT_PSP_CONSUMER_FLAG, &psp);
    if (rc == DAT_SUCCESS) {
      require(dat_psp_free(psp), "dat_psp_free");
    } else {
      EXPECT_EQ(DAT_GET_TYPE(rc), static_cast<DAT_RETURN>(DAT_INSUFFICIENT_RESOURCES)) << left;
    }
  }
}

// ---- an adapter without descriptors

// IA-OPEN-25, and not IA-OPEN-23: its device's addresses are asked for with a descriptor.
TEST_P(Limits, AnAdapterIsNotSaidToBeNoneForWantOfDescriptors) {
  const ScopedEnv env(GetParam().env);
  std::string name = GetParam().ia_name;
  { const Ia first(GetParam()); }  // which makes what stays
  bool opened = false;
  for (int left = 0; left < 40 && !opened; ++left) {
    const FewDescriptors few(left);
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    const DAT_RETURN rc = dat_ia_open(name.data(), 4, &async, &ia);
    opened = rc == DAT_SUCCESS;
    if (opened) {
      require(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close");
    } else {
      EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES)) << "with " << left;
    }
  }
  EXPECT_TRUE(opened);
}

// The same for adapters of RDMA devices; with descriptors it is seen that there are none of that name.
TEST_P(Limits, AnRdmaAdapterIsNotSaidToBeNoneForWantOfDescriptors) {
  const ScopedEnv env(GetParam().env);
  { const Ia first(GetParam()); }
  std::string name = "verbs-of-no-host";
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  {
    const FewDescriptors none(0);
    EXPECT_THAT(dat_ia_open(name.data(), 4, &async, &ia), HasType(DAT_INSUFFICIENT_RESOURCES));
  }
  EXPECT_THAT(dat_ia_open(name.data(), 4, &async, &ia), HasType(DAT_PROVIDER_NOT_FOUND));
}

// What has nothing to do with devices of this host is what it always is: names of others, and the list.
TEST_P(Limits, OtherAdaptersAreFoundOrNotWithoutDescriptors) {
  const ScopedEnv env(GetParam().env);
  { const Ia first(GetParam()); }
  const FewDescriptors none(0);
  std::string name = "of-another-provider";
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  EXPECT_THAT(dat_ia_open(name.data(), 4, &async, &ia), HasType(DAT_PROVIDER_NOT_FOUND));  // IA-OPEN-23
  DAT_PROVIDER_INFO soft{};
  std::array<DAT_PROVIDER_INFO, 64> infos{};
  std::array<DAT_PROVIDER_INFO*, 64> room{};
  for (std::size_t i = 0; i < room.size(); ++i) room[i] = &infos[i];
  DAT_COUNT count = 0;
  ASSERT_EQ(dat_registry_list_providers(room.size(), &count, room.data()), DAT_SUCCESS);
  for (int i = 0; i < count; ++i) {
    if (std::string_view(infos[static_cast<std::size_t>(i)].ia_name) == "soft")
      soft = infos[static_cast<std::size_t>(i)];
  }
  EXPECT_STREQ(soft.ia_name, "soft");
}

// ---- a client without descriptors

Wire at_all_addresses(Wire wire) {
  if (wire.ia_name == "soft-lo") wire.ia_name = "soft";
  return wire;
}

// Arguments: qualifier, and "loopback" or "own", at which address. Tries to connect with 0, 1, ... descriptors left,
// until it works.
void play_starved_client(RoleContext& context) {
  const DAT_CONN_QUAL qualifier = std::stoull(context.arguments.at(0));
  Side side(at_all_addresses(context.wire));
  DAT_IA_ATTR attr{};
  require(dat_ia_query(side.ia.get(), nullptr, DAT_IA_ALL, &attr, 0, nullptr), "dat_ia_query");
  const DAT_IA_ADDRESS_PTR server = context.arguments.at(1) == "own" ? attr.ia_address_ptr : loopback();
  const Ep ep(side);
  const Footprint before = Footprint::here();
  for (int left = 0; left < 20 && !testing::Test::HasFailure(); ++left) {
    bool established = false;
    {
      const FewDescriptors few(left);
      const DAT_RETURN rc = dat_ep_connect(ep.get(), server, qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr,
                                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
      if (rc != DAT_SUCCESS) {
        EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));
        EXPECT_EQ(ep.state(), DAT_EP_STATE_UNCONNECTED);
        continue;
      }
      const auto event = wait_event(side.connect.get());
      ASSERT_TRUE(event) << "with " << left << " descriptors left the attempt does not end";
      established = event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED;
      if (!established) {
        EXPECT_EQ(event->event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED) << event_name(event->event_number);
      }
    }
    if (established) {
      require(dat_ep_disconnect(ep.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
      expect_event(side.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
      require(dat_ep_reset(ep.get()), "dat_ep_reset");
      expect_back_to(before);
      context.parent.say(fmt::format("{}", left));
      return;
    }
    require(dat_ep_reset(ep.get()), "dat_ep_reset");
    expect_back_to(before);
  }
  throw std::runtime_error("it never works");
}

const Role kStarvedClient("starved_client", play_starved_client);

// EP-CONN-21. Whose address it is needs a descriptor to ask, but for that of the loopback: without one it may be
// anybody's.
TEST_P(Limits, AClientWithoutDescriptorsIsToldSo) {
  SrqServer server(at_all_addresses(GetParam()), 16, 1024);
  server.qualifier();
  const Footprint before = Footprint::here();
  for (const std::string address : {"loopback", "own"}) {
    SCOPED_TRACE(address);
    PeerProcess client("starved_client", GetParam(), {std::to_string(server.qualifier()), address});
    ServerEnd& end = server.welcome(1);
    expect_event(end.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    fmt::print("at the {} address a client needs {} descriptors to connect\n", address, client.channel().hear());
    EXPECT_EQ(client.wait_exit(), 0);
    server.drop(end);
  }
  expect_back_to(before);
}

// ---- a server without descriptors

// Takes "starve N", "feed" and "accept".
void play_starved_server(RoleContext& context) {
  SrqServer server(context.wire, 16, 1024);
  context.parent.say(std::to_string(server.qualifier()));
  const Footprint before = Footprint::here();
  std::optional<FewDescriptors> few;
  while (true) {
    const std::string line = context.parent.hear(std::chrono::hours(1));
    if (line.starts_with("starve ")) {
      few.emplace(std::stoi(line.substr(7)));
    } else if (line == "feed") {
      few.reset();
      expect_back_to(before);
    } else if (line == "processor time") {
      context.parent.say(std::to_string(processor_time().count()));
      continue;
    } else if (line == "accept") {
      ServerEnd& end = server.welcome(1);
      server.receive(end, 1);
      expect_event(end.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
      server.drop(end);
    } else {
      return;
    }
    context.parent.say("ok");
  }
}

const Role kStarvedServer("starved_server", play_starved_server);

TEST_P(Limits, AServerWithoutDescriptorsTurnsClientsAway) {
  PeerProcess server("starved_server", GetParam());
  LineChannel& channel = server.channel();
  const DAT_CONN_QUAL qualifier = std::stoull(channel.hear());
  const auto tell = [&](const std::string& line) {
    channel.say(line);
    return channel.hear();
  };
  Side side(GetParam());
  const Ep ep(side);
  const Footprint before = Footprint::here();
  const auto connect = [&] {
    require(dat_ep_connect(ep.get(), loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
  };
  // With none left it cannot even take the call; with a few it gets further, and with enough it works. Over TCP one is
  // enough.
  const int most = GetParam().name == "tcp" ? 1 : 3;
  for (int left = 0; left < most; ++left) {
    SCOPED_TRACE(fmt::format("{} left", left));
    ASSERT_EQ(tell(fmt::format("starve {}", left)), "ok");
    connect();
    const auto event = wait_event(side.connect.get());
    if (!event) {
      ADD_FAILURE() << "the attempt does not end";
      require(dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
      expect_event(side.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    } else if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
      FAIL() << "nobody has accepted";
    } else {
      EXPECT_EQ(event->event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED) << event_name(event->event_number);
    }
    require(dat_ep_reset(ep.get()), "dat_ep_reset");
    const long before_us = std::stol(tell("processor time"));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the time over which it is measured
    EXPECT_LT(std::stol(tell("processor time")) - before_us, built_with_sanitizer() ? 50'000 : 10'000) << "it spins";
    ASSERT_EQ(tell("feed"), "ok");
  }
  connect();
  channel.say("accept");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  const Lmr memory(side.ia, side.pz, 1);
  DAT_LMR_TRIPLET segment = memory.triplet(0, 0);
  require(dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  expect_completion(side.request.get());
  require(dat_ep_disconnect(ep.get(), DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_EQ(channel.hear(), "ok");
  channel.say("finish");
  EXPECT_EQ(server.wait_exit(), 0);
  require(dat_ep_reset(ep.get()), "dat_ep_reset");
  expect_back_to(before);
}

// ---- no address space

rlim_t address_space() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return static_cast<rlim_t>(pages) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

// Every call either works or says that resources are short; then everything made is freed.
void use_what_there_is(const Wire& wire, DAT_CONN_QUAL qualifier, std::string& reached) {
  const ScopedEnv env(wire.env);
  std::string name = wire.ia_name;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  const auto works = [&](DAT_RETURN rc, const char* what) {
    reached = what;
    if (rc != DAT_SUCCESS) {
      EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES)) << what;
    }
    return rc == DAT_SUCCESS;
  };
  if (!works(dat_ia_open(name.data(), 1024, &async, &ia), "dat_ia_open")) {
    return;
  }
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  const auto flags = static_cast<DAT_EVD_FLAGS>(DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG);
  DAT_EP_ATTR ep_attr = default_srq_ep_attr();
  DAT_SRQ_ATTR srq_attr{.max_recv_dtos = 100'000, .max_recv_iov = 16, .low_watermark = DAT_SRQ_LW_DEFAULT};
  if (works(dat_pz_create(ia, &pz), "dat_pz_create") &&
      works(dat_evd_create(ia, 65'536, DAT_HANDLE_NULL, flags, &evd), "dat_evd_create") &&
      works(dat_srq_create(ia, pz, &srq_attr, &srq), "dat_srq_create") &&
      works(dat_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &ep_attr, &ep), "dat_ep_create_with_srq") &&
      works(dat_ep_connect(ep, loopback(), qualifier, DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                           DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect")) {
    const auto event = wait_event(evd);
    EXPECT_TRUE(event) << "the attempt does not end";
    if (event && event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
      reached = "everything";
    }
  }
  EXPECT_THAT(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), Succeeds());
}

// Argument: qualifier.
void play_cramped_client(RoleContext& context) {
  const DAT_CONN_QUAL qualifier = std::stoull(context.arguments.at(0));
  rlimit before{};
  ::getrlimit(RLIMIT_AS, &before);
  std::string reached;
  for (rlim_t room = 0; reached != "everything" && room < rlim_t{1} << 30; room += rlim_t{256} << 10) {
    std::string last = reached;
    rlimit limit = before;
    limit.rlim_cur = address_space() + room;
    ::setrlimit(RLIMIT_AS, &limit);
    use_what_there_is(context.wire, qualifier, reached);
    ::setrlimit(RLIMIT_AS, &before);
    if (reached != last) {
      context.parent.say(fmt::format("{} KiB: {}", room >> 10, reached));
    }
  }
  context.parent.say(reached == "everything" && !testing::Test::HasFailure() ? "well" : "badly");
}

const Role kCrampedClient("cramped_client", play_cramped_client);

TEST_P(Limits, AddressSpaceThatRunsOutIsAnErrorAndNoCrash) {
  if (built_with_sanitizer()) {
    GTEST_SKIP() << "a sanitizer needs all the address space there is";
  }
  SrqServer server(GetParam(), 16, 1024);
  PeerProcess client("cramped_client", GetParam(), {std::to_string(server.qualifier())});
  std::atomic<bool> over{false};
  std::thread acceptor([&] {
    while (!over) {
      if (const auto event = wait_event(server.side().requests.get(), std::chrono::milliseconds(20))) {
        server.accept(event->event_data.cr_arrival_event_data.cr_handle, 1);
      }
    }
  });
  std::string line;
  try {
    while (line != "well" && line != "badly") {
      line = client.channel().hear();
      fmt::print("{}\n", line);
    }
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  over = true;
  acceptor.join();
  EXPECT_EQ(line, "well");
  EXPECT_EQ(client.wait_exit(), 0);
}

// ---- no /proc

// Argument: qualifier.
void play_client_without_proc(RoleContext& context) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::umount2("/proc", MNT_DETACH) != 0) {
    context.parent.say("not permitted");
    return;
  }
  Side side(context.wire);
  const Ep ep(side);
  require(dat_ep_connect(ep.get(), loopback(), std::stoull(context.arguments.at(0)), DAT_TIMEOUT_INFINITE, 0, nullptr,
                         DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  context.parent.say("asked");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  Lmr memory(side.ia, side.pz, 100'000);
  fill_message(memory.bytes(), 1, 0);
  DAT_LMR_TRIPLET segment = memory.triplet();
  require(dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  expect_completion(side.request.get());
}

const Role kClientWithoutProc("client_without_proc", play_client_without_proc);

TEST_P(Limits, ProcNeedNotBeMounted) {
  SrqServer server(GetParam(), 4, 100'000);
  PeerProcess client("client_without_proc", GetParam(), {std::to_string(server.qualifier())});
  if (client.channel().hear() == "not permitted") {
    GTEST_SKIP() << "unmounting /proc needs more rights than this user has";
  }
  EXPECT_TRUE(server.receive(server.welcome(1), 1));
  EXPECT_EQ(client.wait_exit(), 0);
}

// ---- no copying from process to process

// As container run-times and hardened kernels do it. False if even that is forbidden.
bool forbid_cross_process_copy() {
  std::array filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Argument: qualifier. Sends ten messages and takes ten, all large.
void play_contained_client(RoleContext& context) {
  if (!forbid_cross_process_copy()) {
    context.parent.say("not permitted");
    return;
  }
  Side side(context.wire);
  const Ep ep(side);
  require(dat_ep_connect(ep.get(), loopback(), std::stoull(context.arguments.at(0)), DAT_TIMEOUT_INFINITE, 0, nullptr,
                         DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
          "dat_ep_connect");
  context.parent.say("asked");
  expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  Lmr memory(side.ia, side.pz, 10 * kContainedBytes);
  Lmr incoming(side.ia, side.pz, 10 * kContainedBytes);
  for (std::size_t i = 0; i < 10; ++i) {
    DAT_LMR_TRIPLET segment = incoming.triplet(i * kContainedBytes, kContainedBytes);
    require(dat_ep_post_recv(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  }
  for (std::size_t i = 0; i < 10; ++i) {
    fill_message(memory.bytes().subspan(i * kContainedBytes, kContainedBytes), 1, i);
    DAT_LMR_TRIPLET segment = memory.triplet(i * kContainedBytes, kContainedBytes);
    require(dat_ep_post_send(ep.get(), 1, &segment, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  }
  context.parent.say("posted");
  expect_completions(side.request.get(), 10);
  expect_completions(side.recv.get(), 10);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(is_message(incoming.bytes().subspan(i * kContainedBytes, kContainedBytes), 1, i)) << "message " << i;
  }
}

const Role kContainedClient("contained_client", play_contained_client);

TEST_P(Limits, ProcessesNeedNotBeAbleToReachEachOthersMemory) {
  SrqServer server(GetParam(), 10, 10 * kContainedBytes);
  PeerProcess client("contained_client", GetParam(), {std::to_string(server.qualifier())});
  if (client.channel().hear() == "not permitted") {
    GTEST_SKIP() << "this process may not filter its system calls";
  }
  ServerEnd& end = server.welcome(1);
  ASSERT_EQ(client.channel().hear(), "posted");
  server.send(end, 10, kContainedBytes);
  EXPECT_TRUE(server.receive(end, 10));
  expect_completions(end.request.get(), 10);
  EXPECT_EQ(client.wait_exit(), 0);
}

INSTANTIATE_TEST_SUITE_P(Wires, Limits, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
