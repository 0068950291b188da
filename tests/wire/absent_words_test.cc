// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations on words that are not there, and results for which there is no memory yet: what needs them waits,
// and nothing else does. Over each wire.
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>

#include "process/absent_memory.h"
#include "wire/seam.h"

namespace anydat::test {
namespace {

using nic::Completion;
using nic::WorkKind;
using nic::WorkStatus;

constexpr std::size_t kPage = 4096;

// A page whose word is 40, registered for all that a peer may do.
class Page {
 public:
  explicit Page(SeamNic& nic) : nic_(nic), page_(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, kFlags, -1, 0)) {
    const std::uint32_t rights = kAllRights | nic::access::kRemoteAtomic;
    if (page_ == MAP_FAILED || nic_->add_region({address(), kPage, kSeamZone, rights}, keys_) != nic::Status::ok) {
      throw std::runtime_error("no page");
    }
    word() = 40;
  }
  ~Page() {
    for (bool quiet = false; !quiet; nic_->await_quiet()) {
      quiet = nic_.held([&] {
        for (const std::uint32_t key : {keys_.local, keys_.remote}) nic_->remove_region(key);
        return nic_->quiesce(keys_.local, true) && nic_->quiesce(keys_.remote, true);
      });
    }
    ::munmap(page_, kPage);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  std::span<std::byte> bytes() { return {static_cast<std::byte*>(page_), kPage}; }
  std::uint64_t& word() { return *static_cast<std::uint64_t*>(page_); }
  nic::RemoteSegment remote() const { return {address(), keys_.remote}; }
  nic::Segment segment() const { return {keys_.local, 0, address(), 8}; }

 private:
  static constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(page_); }

  SeamNic& nic_;
  void* page_;
  nic::RegionKeys keys_;
};

class AbsentWords : public SeamTest {
 protected:
  void SetUp() override {
    if (!AbsentMemory::possible()) GTEST_SKIP() << "this system makes no memory absent for the kernel (userfaultfd)";
    pair_.emplace(GetParam());
    pair_->join();
    other_.emplace(*pair_);
    target_.emplace(pair_->server_nic);
    result_.emplace(pair_->client_nic);
  }

  // A second connection of both adapters.
  struct Other {
    explicit Other(SeamPair& of)
        : service(of.server_nic),
          server(of.server_nic),
          client(of.client_nic),
          there(of.server_nic, 64, kAllRights, kSeamZone),
          here(of.client_nic, 64, kAllRights, kSeamZone) {
      seam_join(client, service, server);
    }
    SeamServer service;
    SeamEnd server;
    SeamEnd client;
    SeamMemory there;
    SeamMemory here;
  };
  static bool pass(SeamEnd& from, SeamMemory& source, SeamEnd& to, SeamMemory& target) {
    to.post_recv(target.segment(0, 64));
    const nic::Segment segment = source.segment(0, 64);
    nic::SendRequest request{};
    request.segments = {&segment, 1};
    request.length = 64;
    request.kind = WorkKind::send;
    return from->post_send(request) == nic::Status::ok && to.received.next().status == WorkStatus::success &&
           from.sent.next().status == WorkStatus::success;
  }
  bool others_go_on() {
    for (int i = 0; i < 5; ++i) {
      if (!pass(other_->client, other_->here, other_->server, other_->there)) return false;
      if (!pass(other_->server, other_->there, other_->client, other_->here)) return false;
    }
    return true;
  }

  void add_two() {
    const nic::Segment segment = result_->segment();
    nic::ExtendedRequest request{};
    request.segments = {&segment, 1};
    request.length = 8;
    request.kind = WorkKind::fetch_add;
    request.remote = target_->remote();
    request.operand = 2;
    ASSERT_EQ(pair_->client->post_extended(request), nic::Status::ok);
  }
  static std::array<std::byte, kPage> page_of(std::uint64_t word) {
    std::array<std::byte, kPage> page{};
    std::memcpy(page.data(), &word, sizeof word);
    return page;
  }
  void expect_done(std::uint64_t was) {
    const Completion done = pair_->client.sent.next();
    EXPECT_EQ(done.status, WorkStatus::success);
    EXPECT_EQ(done.kind, WorkKind::fetch_add);
    EXPECT_EQ(result_->word(), was);
    EXPECT_EQ(target_->word(), was + 2);
  }

  std::optional<SeamPair> pair_;
  std::optional<Other> other_;
  std::optional<Page> target_;
  std::optional<Page> result_;
};

TEST_P(AbsentWords, AreWaitedForByTheirConnectionAlone) {
  // D2-ATOM-1: the word of the peer.
  AbsentMemory absent(target_->bytes());
  add_two();
  ASSERT_TRUE(others_go_on());
  EXPECT_FALSE(pair_->client.sent.poll());
  absent.fill(page_of(7));
  expect_done(7);
}

TEST_P(AbsentWords, TheResultWaitsForItsMemory) {
  // D2-ATOM-6: what the word was has no place yet.
  AbsentMemory absent(result_->bytes());
  add_two();
  ASSERT_TRUE(others_go_on());
  EXPECT_FALSE(pair_->client.sent.poll());
  absent.fill(page_of(0));
  expect_done(40);
  add_two();
  expect_done(42);
}

TEST_P(AbsentWords, MemoryForTheResultThatGoesBeforeItHasComeIsAStatus) {
  if (GetParam().name.starts_with("shm"))
    GTEST_SKIP() << "there the memory is looked at before the operation is asked for";
  AbsentMemory absent(result_->bytes());
  add_two();
  ASSERT_TRUE(others_go_on());
  ASSERT_EQ(::mprotect(result_->bytes().data(), kPage, PROT_READ), 0);
  absent.fill(page_of(0));
  EXPECT_EQ(pair_->client.sent.next().status, WorkStatus::local_protection);
  pair_->client.expect_closed(true);
  ASSERT_TRUE(others_go_on());
}

TEST_P(AbsentWords, LetTheirConnectionEnd) {
  AbsentMemory absent(target_->bytes());
  add_two();
  ASSERT_TRUE(others_go_on());
  pair_->client_nic.held([&] { pair_->client->disconnect(false); });
  pair_->client.expect_closed(false);
  EXPECT_EQ(pair_->client.sent.next().status, WorkStatus::flushed);
  ASSERT_TRUE(others_go_on());
}

INSTANTIATE_TEST_SUITE_P(Wires, AbsentWords, testing::ValuesIn(seam_wires()), seam_wire_name);

}  // namespace
}  // namespace anydat::test
