// SPDX-License-Identifier: BSD-3-Clause
// What opening an adapter takes of the process's limits, and what comes of limits that leave no room for it.
#include <anydat/anydat.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "forked.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

Wire wire_of_choice(const std::string& choice) {
  return {.name = choice, .ia_name = "soft", .env = {{"DAT_WIRE", choice}}};
}

// One message from one side of this process to the other.
bool a_message_crosses(const Wire& wire) {
  Side server(wire);
  Side client(wire);
  Connection pair = connect_pair(server, client);
  Lmr sent(client.ia, client.pz, 10'000);
  const Lmr received(server.ia, server.pz, 10'000);
  std::fill(sent.bytes().begin(), sent.bytes().end(), std::byte{42});
  DAT_LMR_TRIPLET there = received.triplet();
  DAT_LMR_TRIPLET here = sent.triplet();
  require(dat_ep_post_recv(pair.server.get(), 1, &there, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  require(dat_ep_post_send(pair.client.get(), 1, &here, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  expect_completion(client.request.get());
  expect_completion(server.recv.get());
  return std::equal(sent.bytes().begin(), sent.bytes().end(), received.bytes().begin());
}

DAT_RETURN open_and_close(const Wire& wire) {
  const ScopedEnv env(wire.env);
  std::string name = wire.ia_name;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  const DAT_RETURN rc = dat_ia_open(name.data(), 8, &async, &ia);
  if (rc == DAT_SUCCESS) require(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
  return rc;
}

void set_limit(__rlimit_resource resource, rlim_t value) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  limit.rlim_cur = std::min(value, limit.rlim_max);
  ASSERT_EQ(::setrlimit(resource, &limit), 0);
}

TEST(OpenCost, WithoutLeaveForFilesNothingIsKilledAndTcpServes) {
  EXPECT_TRUE(holds_in_child([] {
    ::signal(SIGXFSZ, SIG_DFL);
    set_limit(RLIMIT_FSIZE, 0);
    void* memory = nullptr;
    EXPECT_THAT(anydat_alloc_shareable(100, &memory), HasType(DAT_INSUFFICIENT_RESOURCES));
    EXPECT_THAT(open_and_close(wire_of_choice("shm")), HasType(DAT_INSUFFICIENT_RESOURCES));
    return a_message_crosses(wire_of_choice("auto"));
  }));
}

// CR-HO-2, CR-HO-3: the other instance is found although no memory is shared.
TEST(OpenCost, WithoutLeaveForFilesRequestsAreHandedOff) {
  EXPECT_TRUE(holds_in_child([] {
    ::signal(SIGXFSZ, SIG_DFL);
    set_limit(RLIMIT_FSIZE, 0);
    for (const char* wire : {"auto", "tcp"}) {
      Side first(wire_of_choice(wire));
      Side second(wire_of_choice(wire));
      const Side client(wire_of_choice(wire));
      const Ep active(client);
      const Ep passive(second);
      require(dat_ep_connect(active.get(), loopback(), first.listen(), DAT_TIMEOUT_INFINITE, 0, nullptr,
                             DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
              "dat_ep_connect");
      const auto request_at = [](const Side& side) {
        return expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT)
            .event_data.cr_arrival_event_data.cr_handle;
      };
      const DAT_CONN_QUAL there = second.listen();
      require(dat_cr_handoff(request_at(first), there), "dat_cr_handoff");
      require(dat_cr_accept(request_at(second), passive.get(), 0, nullptr), "dat_cr_accept");
      expect_event(client.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
      expect_event(second.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
    }
    return true;
  }));
}

TEST(OpenCost, FilesThatMayBeSmallLeaveTcp) {
  EXPECT_TRUE(holds_in_child([] {
    ::signal(SIGXFSZ, SIG_DFL);
    set_limit(RLIMIT_FSIZE, 2u << 20);
    return a_message_crosses(wire_of_choice("auto"));
  }));
}

long status_kib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long value = 0;
    if (word == field + ":" && status >> value) return value;
  }
  return -1;
}

// What the system has to have memory for, in KiB: of mappings, those that it counts; of files, what they hold.
long committed_kib() {
  std::ifstream maps("/proc/self/smaps");
  long total = 0;
  long size = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "Size:") words >> size;
    if (word != "VmFlags:") continue;
    while (words >> word) {
      if (word == "ac") total += size;
    }
  }
  return total;
}

struct Files {
  std::int64_t largest = 0;
  std::int64_t held = 0;
};

// Of the library's files in memory.
Files files_of_ours() {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string name = std::filesystem::read_symlink(entry.path(), error).string();
    struct stat status {};
    if (error || name.find("/memfd:anydat") == std::string::npos || ::stat(entry.path().c_str(), &status) != 0)
      continue;
    files.largest = std::max<std::int64_t>(files.largest, status.st_size);
    files.held += status.st_blocks * 512;
  }
  return files;
}

constexpr const char* kNoLeaveToLock = "there is no leave to lock memory";

TEST(OpenCost, OfMemoryIsNotThatOfAllHandlesAndRegions) {
  if (built_with_sanitizer()) GTEST_SKIP() << "a sanitizer has its own memory";
  EXPECT_TRUE(holds_in_child([] {
    const long before = committed_kib();
    const Ia ia(wire_of_choice("auto"));
    const Files files = files_of_ours();
    EXPECT_LT(committed_kib() - before + files.held / 1024, 4 << 10);
    EXPECT_LT(files.largest, 1 << 20);
    return true;
  }));
}

TEST(OpenCost, OfLockedMemoryIsNotThatOfAllHandlesAndRegions) {
  if (built_with_sanitizer()) GTEST_SKIP() << "a sanitizer has its own memory";
  if (!holds_in_child([] { return ::mlockall(MCL_FUTURE) == 0; })) GTEST_SKIP() << kNoLeaveToLock;
  EXPECT_TRUE(holds_in_child([] {
    if (::mlockall(MCL_FUTURE) != 0) return false;
    const long before = status_kib("VmLck");
    const Ia ia(wire_of_choice("auto"));
    EXPECT_LT(status_kib("VmLck") - before, 4 << 10);
    return true;
  }));
}

// The library's files in memory that this process maps, by their inodes, and how many bytes of each the farthest
// mapping reaches.
std::map<std::string, std::uint64_t> mapped_files_of_ours() {
  std::map<std::string, std::uint64_t> files;
  std::ifstream maps("/proc/thread-self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:anydat") == std::string::npos) continue;
    std::istringstream words(line);
    std::uint64_t begin = 0, end = 0, offset = 0;
    char dash = 0;
    std::string rights, device, inode;
    words >> std::hex >> begin >> dash >> end >> rights >> offset >> device >> inode;
    files[inode] = std::max(files[inode], offset + end - begin);
  }
  return files;
}

// What a link adds, which is one for each two adapters. Both are of this process, which has the mappings of both.
TEST(OpenCost, OfALinkIsTwoFilesThatBothSidesMap) {
  if (built_with_sanitizer()) GTEST_SKIP() << "a sanitizer has its own memory";
  // There is leave for more than it takes. The superuser of a namespace may have none.
  const bool locks = holds_in_child([] {
    constexpr std::size_t kEnough = std::size_t{64} << 20;
    void* const memory = ::mmap(nullptr, kEnough, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED && ::mlock(memory, kEnough) == 0 && ::mlockall(MCL_FUTURE) == 0;
  });
  EXPECT_TRUE(holds_in_child([locks] {
    constexpr std::uint64_t kFile = (std::uint64_t{43} << 20) / 10;  // 4.3 MiB
    ::mallopt(M_ARENA_MAX, 1);                                       // one for another thread would count, too
    if (locks && ::mlockall(MCL_FUTURE) != 0) return false;
    Side server(wire_of_choice("shm"));
    Side client(wire_of_choice("shm"));
    const auto before = mapped_files_of_ours();
    const long locked = status_kib("VmLck");
    const Connection first = connect_pair(server, client);
    const long locked_with_link = status_kib("VmLck");
    const auto with_link = mapped_files_of_ours();
    const Connection second = connect_pair(server, client);
    EXPECT_EQ(mapped_files_of_ours(), with_link) << "another connection has a link of its own";
    EXPECT_EQ(with_link.size(), before.size() + 2);
    for (const auto& [inode, bytes] : with_link) {
      if (before.contains(inode)) continue;
      EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(kFile), kFile / 50.0);
    }
    // Each of them is mapped twice.
    EXPECT_NEAR(static_cast<double>(locked_with_link - locked), locks ? 4.0 * kFile / 1024 : 0.0, 512.0);
    return true;
  }));
}

// All that comes is to be locked, and little may be: false if the system gives no leave for it. The program's own
// memory has been seen to before.
bool lock_all_within_a_mebibyte() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_ARENA_MAX, 1);
  void* volatile heap = ::malloc(64u << 20);
  ::free(heap);
  if (::mlockall(MCL_FUTURE) != 0) return false;
  set_limit(RLIMIT_MEMLOCK, 1u << 20);
  return ::geteuid() != 0 || ::setresuid(65534, 65534, 65534) == 0;  // limits do not apply to root
}

// Whatever the program asks to be locked, links are made of memory that is not, and connections go as usual.
TEST(OpenCost, WithLittleLeaveToLockMemoryAllWiresServe) {
  if (built_with_sanitizer()) GTEST_SKIP() << "a sanitizer has its own memory";
  if (!holds_in_child(lock_all_within_a_mebibyte)) GTEST_SKIP() << kNoLeaveToLock;
  for (const std::string wire : {"auto", "shm", "tcp"}) {
    SCOPED_TRACE(wire);
    EXPECT_TRUE(
        holds_in_child([&] { return lock_all_within_a_mebibyte() && a_message_crosses(wire_of_choice(wire)); }));
  }
}

TEST(OpenCost, WithLittleLeaveToLockMemoryAdaptersCanBeOpened) {
  if (built_with_sanitizer()) GTEST_SKIP() << "a sanitizer has its own memory";
  if (!holds_in_child(lock_all_within_a_mebibyte)) GTEST_SKIP() << kNoLeaveToLock;
  EXPECT_TRUE(holds_in_child([] {
    if (!lock_all_within_a_mebibyte()) return false;
    std::vector<std::unique_ptr<Ia>> adapters;
    for (int i = 0; i < 8; ++i) adapters.push_back(std::make_unique<Ia>(wire_of_choice("auto")));
    return true;
  }));
}

// The thread that calls agents has the stack of a program's thread where it can be had, and else one of the library's.
TEST(OpenCost, WithLittleLeaveToLockMemoryAgentsAreCalled) {
  if (built_with_sanitizer()) GTEST_SKIP() << "a sanitizer has its own memory";
  if (!holds_in_child(lock_all_within_a_mebibyte)) GTEST_SKIP() << kNoLeaveToLock;
  EXPECT_TRUE(holds_in_child([] {
    if (!lock_all_within_a_mebibyte()) return false;
    const Ia ia(wire_of_choice("auto"));
    std::atomic<int> calls{0};
    const DAT_OS_WAIT_PROXY_AGENT agent{
        &calls, [](DAT_PVOID count, DAT_EVD_HANDLE) { ++*static_cast<std::atomic<int>*>(count); }};
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    require(dat_cno_create(ia.get(), agent, &cno), "dat_cno_create");
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    require(dat_evd_create(ia.get(), 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd), "dat_evd_create");
    DAT_EVENT event{};
    event.event_number = DAT_SOFTWARE_EVENT;
    event.evd_handle = evd;
    require(dat_evd_post_se(evd, &event), "dat_evd_post_se");
    EXPECT_TRUE(eventually([&] { return calls > 0; }));
    require(dat_evd_free(evd), "dat_evd_free");
    require(dat_cno_free(cno), "dat_cno_free");
    return true;
  }));
}

// Handles are in memory of their own, which grows with them: at addresses that the system chooses, and where those are
// taken at others.
TEST(OpenCost, WithLittleLeaveToLockMemoryThereIsRoomForManyObjects) {
  if (built_with_sanitizer()) GTEST_SKIP() << "a sanitizer has its own memory";
  if (!holds_in_child(lock_all_within_a_mebibyte)) GTEST_SKIP() << kNoLeaveToLock;
  EXPECT_TRUE(holds_in_child([] {
    if (!lock_all_within_a_mebibyte()) return false;
    const Ia ia(wire_of_choice("auto"));
    std::vector<Pz> zones;
    for (int i = 0; i < 50'000; ++i) zones.emplace_back(ia);
    return true;
  }));
}

// The table of regions cannot grow then: what does not fit is refused, and fits when others have gone.
TEST(OpenCost, WithoutLeaveForLongFilesThereAreFewerRegions) {
  if (built_with_sanitizer()) GTEST_SKIP() << "a sanitizer has its own memory";
  EXPECT_TRUE(holds_in_child([] {
    ::signal(SIGXFSZ, SIG_DFL);
    set_limit(RLIMIT_FSIZE, 600u << 10);
    const Side side(wire_of_choice("auto"));
    std::array<std::byte, 64> memory{};
    DAT_REGION_DESCRIPTION where;
    where.for_va = memory.data();
    std::vector<DAT_LMR_HANDLE> regions;
    const auto add = [&] {
      DAT_LMR_HANDLE region = DAT_HANDLE_NULL;
      DAT_LMR_CONTEXT context = 0;
      const DAT_RETURN rc = dat_lmr_create(side.ia.get(), DAT_MEM_TYPE_VIRTUAL, where, memory.size(), side.pz.get(),
                                           DAT_MEM_PRIV_ALL_FLAG, &region, &context, nullptr, nullptr, nullptr);
      if (rc == DAT_SUCCESS) regions.push_back(region);
      return rc;
    };
    DAT_RETURN rc = DAT_SUCCESS;
    while (rc == DAT_SUCCESS && regions.size() < 100'000) rc = add();
    EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));
    EXPECT_GT(regions.size(), 10'000u);
    require(dat_lmr_free(regions.back()), "dat_lmr_free");
    regions.pop_back();
    EXPECT_THAT(add(), Succeeds());
    for (const DAT_LMR_HANDLE region : regions) require(dat_lmr_free(region), "dat_lmr_free");
    return true;
  }));
}

}  // namespace
}  // namespace anydat::test
