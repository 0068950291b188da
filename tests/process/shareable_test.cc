// SPDX-License-Identifier: BSD-3-Clause
// RDMA on memory of another process that this one can map: copies in memory, with the rights and the end of the region
// as with any other memory.
#include <anydat/anydat.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr std::size_t kBytes = 3 * 1024 * 1024;  // several stretches of a copy
constexpr std::size_t kOffset = 3 * 4096 + 100;  // of the region in its file: RDMA must not confuse the two

std::byte* sealed_memory(int seals) {
  const int fd = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ::ftruncate(fd, kBytes + kOffset) != 0 || ::fcntl(fd, F_ADD_SEALS, seals) != 0) {
    throw std::runtime_error("no file to map");
  }
  void* memory = ::mmap(nullptr, kBytes + kOffset, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory");
  return static_cast<std::byte*>(memory);  // both live as long as the process
}

std::byte* make_memory(const std::string& kind) {
  if (kind == "heap") return new std::byte[kBytes + kOffset]{};
  if (kind == "sealed") return sealed_memory(F_SEAL_SHRINK);
  if (kind == "unsealed") return sealed_memory(F_SEAL_GROW);
  // "library", and "lost", whose descriptor the program has closed.
  void* memory = nullptr;
  require(anydat_alloc_shareable(kBytes + kOffset, &memory), "anydat_alloc_shareable");
  return static_cast<std::byte*>(memory);
}

DAT_EP_ATTR large_rdma() {
  DAT_EP_ATTR attr = default_ep_attr();
  attr.max_rdma_size = kBytes;
  return attr;
}

std::byte pattern(std::size_t i, int seed) {
  return static_cast<std::byte>(i * 7 + i / 251 + static_cast<std::size_t>(seed));
}

// The number of the library's descriptor of memory that it has allocated.
int number_of_allocation() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string file = std::filesystem::read_symlink(entry.path(), gone).string();
    if (file.find("anydat-memory") != std::string::npos) return std::stoi(entry.path().filename().string());
  }
  throw std::runtime_error("the library has no such descriptor");
}

// For as long as the process lives, or closes any descriptor of the file. By that number, whatever it was, if it is
// one.
void lock_file(const std::string& path, int number = -1) {
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd >= 0 && number >= 0) {
    const int low = std::exchange(fd, ::dup3(fd, number, O_CLOEXEC));
    ::close(low);
  }
  struct flock lock {};
  lock.l_type = F_WRLCK;
  if (fd < 0 || ::fcntl(fd, F_SETLK, &lock) != 0) throw std::runtime_error("no lock");
}

// Arguments: the kind of memory, the privileges, and perhaps a file to be locked. Offers a region to one client, and
// looks at it when told to.
void offer_region(RoleContext& context) {
  const std::string& kind = context.arguments.at(0);
  Side side(context.wire);
  const std::span<std::byte> memory(make_memory(kind) + kOffset, kBytes);
  if (context.arguments.size() > 2) {
    lock_file(context.arguments.at(2), kind == "lost" ? number_of_allocation() : -1);
  }
  const auto rights = static_cast<DAT_MEM_PRIV_FLAGS>(std::stoul(context.arguments.at(1)));
  Lmr region(side.ia, side.pz, memory, rights);
  const Ep ep(side);
  context.parent.say(
      fmt::format("{} {} {}", side.listen(), region.rmr_context(), reinterpret_cast<std::uintptr_t>(memory.data())));
  const auto request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
  // As long as the test goes on between two words: its end is heard of all the same.
  const auto hear = [&] { return context.parent.hear(40 * patience()); };
  for (std::string line; (line = hear()) != "end";) {
    if (line == "free") {
      require(region.free(), "dat_lmr_free");
      std::fill(memory.rbegin(), memory.rend(), std::byte{0xEE});  // what comes last of a Write comes first
      context.parent.say("freed");
    } else if (line == "untouched") {
      const bool good = std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == std::byte{0xEE}; });
      context.parent.say(good ? "yes" : "no");
    } else {  // a number: is this pattern there?
      const int seed = std::stoi(line);
      bool good = true;
      for (std::size_t i = 0; i < kBytes; ++i) good &= memory[i] == pattern(i, seed);
      context.parent.say(good ? "yes" : "no");
    }
  }
  dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG);
  if (region.get() != DAT_HANDLE_NULL) require(region.free(), "dat_lmr_free");
  context.parent.say("well");
}
const Role kTarget("shareable-target", offer_region);
// The same in a process whose first thread has ended.
const Role kTargetWithoutMain("shareable-target-without-main", [](RoleContext& context) {
  std::thread([&context] {
    const auto ended = [] {
      std::string words;
      std::getline(std::ifstream(fmt::format("/proc/self/task/{}/stat", ::getpid())), words);
      return words.find(") Z") != std::string::npos;
    };
    try {
      if (!eventually(ended)) throw std::runtime_error("the main thread does not end");
      offer_region(context);
    } catch (const std::exception& error) {
      context.parent.say(error.what());
    }
    ::_exit(0);
  }).detach();
  ::syscall(SYS_exit, 0);
});

std::uint64_t counter(DAT_EP_HANDLE ep, std::string_view name) {
  std::array<ANYDAT_COUNTER, 32> counters;
  DAT_COUNT count = 0;
  require(anydat_get_counters(ep, static_cast<DAT_COUNT>(counters.size()), counters.data(), &count),
          "anydat_get_counters");
  for (DAT_COUNT i = 0; i < count; ++i) {
    if (name == counters[static_cast<std::size_t>(i)].name) return counters[static_cast<std::size_t>(i)].value;
  }
  throw std::runtime_error("no such counter");
}

class Shareable : public testing::TestWithParam<Wire> {
 protected:
  void start(const std::string& kind, DAT_MEM_PRIV_FLAGS rights = DAT_MEM_PRIV_ALL_FLAG, const std::string& locked = {},
             const std::string& role = "shareable-target") {
    std::vector<std::string> arguments{kind, std::to_string(rights)};
    if (!locked.empty()) arguments.push_back(locked);
    target_.emplace(role, GetParam(), arguments);
    unsigned long long qualifier = 0, context = 0, address = 0;
    ASSERT_EQ(std::sscanf(target_->channel().hear().c_str(), "%llu %llu %llu", &qualifier, &context, &address), 3);
    remote_ = {};
    remote_.rmr_context = static_cast<DAT_RMR_CONTEXT>(context);
    remote_.target_address = address;
    remote_.segment_length = kBytes;
    connect(ep_, qualifier);
  }
  static void connect(const Ep& ep, DAT_CONN_QUAL qualifier) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(dat_ep_connect(ep.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), qualifier, DAT_TIMEOUT_INFINITE, 0,
                           nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
  }
  void established() { expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED); }

  void write(int seed) {
    for (std::size_t i = 0; i < kBytes; ++i) local_.bytes()[i] = pattern(i, seed);
    DAT_LMR_TRIPLET from = local_.triplet();
    require(dat_ep_post_rdma_write(ep_.get(), 1, &from, {}, &remote_, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_write");
  }
  void read() {
    std::fill(local_.bytes().begin(), local_.bytes().end(), std::byte{0});
    DAT_LMR_TRIPLET to = local_.triplet();
    require(dat_ep_post_rdma_read(ep_.get(), 1, &to, {}, &remote_, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_read");
  }
  std::string ask(const std::string& question) {
    target_->channel().say(question);
    return target_->channel().hear();
  }
  void write_and_read(int seed) {
    write(seed);
    expect_completion(side_.request.get());
    ASSERT_EQ(ask(std::to_string(seed)), "yes") << "write " << seed;
    read();
    expect_completion(side_.request.get());
    for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(local_.bytes()[i], pattern(i, seed)) << "read " << seed;
  }
  // Writes go on all the time; what the owner puts there after the free stays.
  void write_until_it_is_freed() {
    target_->channel().say("free");
    DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS;
    while (status == DAT_DTO_SUCCESS) {
      write(3);
      const auto event = wait_event(side_.request.get());
      ASSERT_TRUE(event);
      status = event->event_data.dto_completion_event_data.status;
    }
    EXPECT_EQ(status, DAT_DTO_ERR_REMOTE_ACCESS);
    ASSERT_EQ(target_->channel().hear(), "freed");
    EXPECT_EQ(ask("untouched"), "yes");
    EXPECT_EQ(ask("end"), "well");
  }
  // Writes to the end of the region.
  DAT_DTO_COMPLETION_STATUS write_to_the_end(std::size_t bytes) {
    DAT_LMR_TRIPLET from = local_.triplet(0, bytes);
    DAT_RMR_TRIPLET to = remote_;
    to.target_address += kBytes - bytes;
    to.segment_length = bytes;
    require(dat_ep_post_rdma_write(ep_.get(), 1, &from, {}, &to, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_rdma_write");
    return expect_event(side_.request.get(), DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data.status;
  }
  // Until the region is mapped here, which is no more than a matter of time.
  bool becomes_mapped() {
    int seed = 100;
    return eventually([&] {
      write_and_read(++seed);
      return counter(ep_.get(), "rdmas_in_memory") > 0;
    });
  }
  bool maps() const { return GetParam().name == std::string("shm"); }

  Side side_{GetParam()};
  Ep ep_{side_, large_rdma()};
  Lmr local_{side_.ia, side_.pz, kBytes};
  std::optional<PeerProcess> target_;
  DAT_RMR_TRIPLET remote_{};
};

TEST_P(Shareable, MemoryOfTheLibraryIsMapped) {
  // RDR-1, RDW-1
  start("library");
  established();
  for (int seed = 1; seed <= 4; ++seed) write_and_read(seed);
  if (maps()) {
    EXPECT_TRUE(becomes_mapped());
  } else {
    EXPECT_EQ(counter(ep_.get(), "rdmas_in_memory"), 0u);
  }
  EXPECT_EQ(ask("end"), "well");
}

TEST_P(Shareable, ASealedFileIsMapped) {
  start("sealed");
  established();
  if (maps()) {
    EXPECT_TRUE(becomes_mapped());
  }
  write_and_read(7);
  EXPECT_EQ(ask("end"), "well");
}

// As by pthread_exit() in main(): /proc/self shows neither files nor memory of such a process.
TEST_P(Shareable, ASealedFileIsMappedWhenTheMainThreadHasEnded) {
  start("sealed", DAT_MEM_PRIV_ALL_FLAG, {}, "shareable-target-without-main");
  established();
  if (maps()) {
    EXPECT_TRUE(becomes_mapped());
  }
  write_and_read(7);
  EXPECT_EQ(ask("end"), "well");
}

// A process that closes any descriptor of a file loses its record locks on it: a provider that looks for the file
// behind a region must not. A number at which it had a file of its own may be the program's by now.
TEST_P(Shareable, RecordLocksOfTheProgramStayWhereTheyAre) {
  std::string path = testing::TempDir() + "anydat-lock-XXXXXX";
  const int fd = ::mkstemp(path.data());
  ASSERT_GE(fd, 0);
  for (const std::string kind : {"sealed", "unsealed", "library", "lost"}) {
    SCOPED_TRACE(kind);
    ep_ = Ep(side_, large_rdma());
    start(kind, DAT_MEM_PRIV_ALL_FLAG, path);
    established();
    for (int i = 0; i < 20; ++i) ASSERT_EQ(write_to_the_end(8), DAT_DTO_SUCCESS);
    // What is done about the region is done by the time that this is answered, or soon.
    EXPECT_EQ(ask("1"), "no");
    if (maps() && (kind == "sealed" || kind == "library")) {
      EXPECT_TRUE(becomes_mapped());
    }
    struct flock lock {};
    lock.l_type = F_WRLCK;
    ASSERT_EQ(::fcntl(fd, F_GETLK, &lock), 0);
    EXPECT_EQ(lock.l_type, F_WRLCK) << "the lock is gone";
    EXPECT_EQ(ask("end"), "well");
    expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    target_.reset();
  }
  ::unlink(path.c_str());
  ::close(fd);
}

TEST_P(Shareable, AnythingElseIsCopiedAllTheSame) {
  // A file that could shrink would be a trap.
  for (const char* kind : {"heap", "unsealed"}) {
    SCOPED_TRACE(kind);
    ep_ = Ep(side_, large_rdma());
    start(kind);
    established();
    for (int seed = 1; seed <= 4; ++seed) write_and_read(seed);
    EXPECT_EQ(counter(ep_.get(), "rdmas_in_memory"), 0u);
    EXPECT_EQ(ask("end"), "well");
    expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  }
}

TEST_P(Shareable, IsOutOfReachOnceTheRegionIsFreed) {
  // LMR-FREE-6, LMR-FREE-8, PROT-8: also for who still has it mapped.
  start("library");
  established();
  write_and_read(1);
  if (maps()) {
    EXPECT_TRUE(becomes_mapped());
  }
  ASSERT_EQ(ask("free"), "freed");
  write(2);
  expect_completion(side_.request.get(), DAT_DTO_ERR_REMOTE_ACCESS);
  expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(ask("untouched"), "yes");
  EXPECT_EQ(ask("end"), "well");
}

TEST_P(Shareable, IsWrittenByNobodyWhileItIsFreed) {
  // LMR-FREE-7, LMR-FREE-8
  start("library");
  established();
  if (maps()) {
    EXPECT_TRUE(becomes_mapped());
  }
  write_until_it_is_freed();
}

TEST_P(Shareable, IsWrittenByNobodyWhileItIsFreedNotEvenByWhoHasLongUsedIt) {
  // LMR-FREE-7, LMR-FREE-8: a provider may have made that connection's way shorter.
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    ep_ = Ep(side_, large_rdma());
    start("library");
    established();
    if (maps()) {
      EXPECT_TRUE(becomes_mapped());
    }
    for (int i = 0; i < 1100; ++i) ASSERT_EQ(write_to_the_end(8), DAT_DTO_SUCCESS);
    target_->channel().say("free");
    DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS;
    while (status == DAT_DTO_SUCCESS) status = write_to_the_end(1 << 20);
    EXPECT_EQ(status, DAT_DTO_ERR_REMOTE_ACCESS);
    ASSERT_EQ(target_->channel().hear(), "freed");
    EXPECT_EQ(ask("untouched"), "yes");
    EXPECT_EQ(ask("end"), "well");
    expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  }
}

TEST_P(Shareable, OrdinaryMemoryIsWrittenByNobodyWhileItIsFreed) {
  // LMR-FREE-7, LMR-FREE-8
  start("heap");
  established();
  write_until_it_is_freed();
}

TEST_P(Shareable, IsReadOnlyWhereTheRegionIs) {
  // PROT-6, RDW-6
  start("library", static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
                                                   DAT_MEM_PRIV_REMOTE_READ_FLAG));
  established();
  for (int i = 0; i < 20; ++i) {
    read();
    expect_completion(side_.request.get());
  }
  write(1);
  expect_completion(side_.request.get(), DAT_DTO_ERR_REMOTE_ACCESS);
  EXPECT_EQ(ask("end"), "well");
}

TEST_P(Shareable, TheContextZeroIsNoTarget) {
  // RDW-6, RDR-6: also where others of the peer's regions are mapped.
  for (const bool reads : {false, true}) {
    SCOPED_TRACE(reads ? "read" : "write");
    ep_ = Ep(side_, large_rdma());
    start("library");
    established();
    if (maps()) {
      EXPECT_TRUE(becomes_mapped());
    }
    remote_.rmr_context = 0;
    if (reads) {
      read();
    } else {
      write(2);
    }
    expect_completion(side_.request.get(), DAT_DTO_ERR_REMOTE_ACCESS);
    expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    EXPECT_EQ(ask("end"), "well");
  }
}

TEST_P(Shareable, IsOpenToItsLastByteAndNotOneFurther) {
  // RDW-6, RDR-6, RDW-8: also where the bytes behind it are mapped with it, and when the same has succeeded before.
  for (const bool reads : {false, true}) {
    for (const std::size_t bytes : {8u, 5000u}) {
      for (const std::int64_t offset : {std::int64_t{-1}, static_cast<std::int64_t>(kBytes - bytes + 1)}) {
        SCOPED_TRACE(testing::Message() << (reads ? "read of " : "write of ") << bytes << " at " << offset);
        ep_ = Ep(side_, large_rdma());
        start("library");
        established();
        if (maps()) {
          EXPECT_TRUE(becomes_mapped());
        }
        write_and_read(1);
        const auto post = [&](std::uint64_t at) {
          DAT_LMR_TRIPLET local = local_.triplet(0, bytes);
          DAT_RMR_TRIPLET remote = remote_;
          remote.target_address += at;
          remote.segment_length = bytes;
          require((reads ? dat_ep_post_rdma_read : dat_ep_post_rdma_write)(ep_.get(), 1, &local, {}, &remote,
                                                                           DAT_COMPLETION_DEFAULT_FLAG),
                  "RDMA");
        };
        std::copy_n(local_.bytes().begin() + static_cast<std::ptrdiff_t>(kBytes - bytes), bytes,
                    local_.bytes().begin());
        post(kBytes - bytes);
        expect_completion(side_.request.get());
        post(static_cast<std::uint64_t>(offset));
        expect_completion(side_.request.get(), DAT_DTO_ERR_REMOTE_ACCESS);
        expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
        EXPECT_EQ(ask("1"), "yes") << "what lies in the region is as it was";
        EXPECT_EQ(ask("end"), "well");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, Shareable, testing::ValuesIn(all_wires()), wire_name);

TEST(ShareableMemory, IsGivenInPagesOfZeros) {
  void* memory = nullptr;
  ASSERT_EQ(anydat_alloc_shareable(5000, &memory), DAT_SUCCESS);
  auto* bytes = static_cast<std::byte*>(memory);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)), 0u);
  EXPECT_TRUE(std::all_of(bytes, bytes + 8192, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(anydat_free_shareable(memory), DAT_SUCCESS);
  EXPECT_EQ(DAT_GET_TYPE(anydat_free_shareable(memory)), static_cast<DAT_RETURN>(DAT_INVALID_PARAMETER));
  EXPECT_EQ(DAT_GET_TYPE(anydat_free_shareable(nullptr)), static_cast<DAT_RETURN>(DAT_INVALID_PARAMETER));
  EXPECT_EQ(DAT_GET_TYPE(anydat_alloc_shareable(0, &memory)), static_cast<DAT_RETURN>(DAT_INVALID_PARAMETER));
  EXPECT_EQ(DAT_GET_TYPE(anydat_alloc_shareable(1, nullptr)), static_cast<DAT_RETURN>(DAT_INVALID_PARAMETER));
  EXPECT_EQ(DAT_GET_TYPE(anydat_alloc_shareable(~DAT_VLEN{0}, &memory)),
            static_cast<DAT_RETURN>(DAT_INSUFFICIENT_RESOURCES));
}

}  // namespace
}  // namespace anydat::test
