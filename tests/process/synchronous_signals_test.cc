// SPDX-License-Identifier: BSD-3-Clause
// A program that mends its own faults, as garbage collectors and checkpointing do, is also given those that a thread of
// the library meets in the program's memory.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

// A page that is taken away, and given back by the handler of the fault.
class MendedPage {
 public:
  MendedPage() {
    page_ = ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(page_, 0, size());
    struct sigaction action {};
    action.sa_sigaction = &MendedPage::mend;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &before_);
  }
  ~MendedPage() {
    ::sigaction(SIGSEGV, &before_, nullptr);
    ::munmap(page_, size());
  }
  MendedPage(const MendedPage&) = delete;
  MendedPage& operator=(const MendedPage&) = delete;

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(page_), size()}; }
  void take_away() const { ::mprotect(page_, size(), PROT_NONE); }
  static int mended() { return mended_.load(); }
  static pid_t mender() { return mender_.load(); }

 private:
  static std::size_t size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
  static void mend(int, siginfo_t* info, void*) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const auto page = reinterpret_cast<std::uintptr_t>(page_);
    if (address < page || address >= page + size()) ::_exit(99);
    ::mprotect(page_, size(), PROT_READ | PROT_WRITE);
    mender_.store(::gettid());
    mended_.fetch_add(1);
  }

  static inline void* page_ = nullptr;
  static inline std::atomic<int> mended_{0};
  static inline std::atomic<pid_t> mender_{0};
  struct sigaction before_ {};
};

// Receives one message into the page while no thread of the program looks, so that the library's own thread does.
void play_mender(RoleContext& context) {
  const MendedPage page;
  Side server(context.wire), client(context.wire);
  const Lmr sink(server.ia, server.pz, page.bytes());
  const Lmr source(client.ia, client.pz, 64);
  const Connection connection = connect_pair(server, client);
  DAT_LMR_TRIPLET to = sink.triplet();
  require(dat_ep_post_recv(connection.server.get(), 1, &to, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  page.take_away();
  std::memset(source.bytes().data(), 0x5a, 64);
  DAT_LMR_TRIPLET from = source.triplet();
  require(dat_ep_post_send(connection.client.get(), 1, &from, {}, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  EXPECT_TRUE(eventually([] { return MendedPage::mended() > 0; }));
  EXPECT_NE(MendedPage::mender(), ::gettid());
  EXPECT_EQ(expect_completion(server.recv.get()).transfered_length, 64u);
  expect_completion(client.request.get());
  EXPECT_EQ(page.bytes()[63], std::byte{0x5a});
}

const Role kMender("mender", play_mender);

// In a process of its own, which a fault in a thread that blocks its signal would end.
TEST(SynchronousSignals, AFaultOfOurThreadIsTheProgramsToMend) {
  PeerProcess mender("mender", wire_by_name("shm"));
  EXPECT_EQ(mender.wait_exit(), 0);
}

}  // namespace
}  // namespace anydat::test
