// SPDX-License-Identifier: BSD-3-Clause
// Windows that are taken back while a peer is in the middle of using them: who has to wait for it, and for how long.
// The peer stands still at a page of its own that does not come.
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>

#include "process/absent_memory.h"
#include "process/raw_peer.h"
#include "support/threads.h"
#include "wire/seam.h"

namespace anydat::test {
namespace {

using nic::Completion;
using nic::WorkKind;
using nic::WorkStatus;

constexpr std::uint64_t kBindTag = 9;
constexpr std::uint64_t kNextTag = 10;
constexpr std::size_t kPageBytes = 4096;

class WindowNotes final : public nic::WindowEvents {
 public:
  void on_bind(std::uint64_t tag, bool bound) override {
    EXPECT_TRUE(tag == kBindTag || tag == kNextTag) << tag;
    if (bound) bound_by = tag;
  }
  void on_unbound(std::uint64_t tag) override {
    EXPECT_EQ(tag, bound_by);
    bound_by = 0;
  }
  bool is_bound() const { return bound_by != 0; }
  std::atomic<std::uint64_t> bound_by = 0;
};

class TakenBack : public SeamTest {
 public:
  explicit TakenBack(nic::WindowScope its_scope = nic::WindowScope::queue_pair) : scope(its_scope) {}

 protected:
  void SetUp() override {
    // By the other ways the target copies for itself, or asks for the page first.
    if (GetParam().name != "shm") GTEST_SKIP() << "nobody copies behind the target's back";
    if (!AbsentMemory::possible()) GTEST_SKIP() << "this system makes no memory absent for the kernel (userfaultfd)";
    pair.emplace(GetParam());
    pair->join();
    opened.emplace(pair->server_nic, 64, kAllRights, kSeamZone);
    buffer.emplace(pair->server_nic, 64, kAllRights, kSeamZone);
    message.emplace(pair->client_nic, 64, kAllRights, kSeamZone);
    source.emplace(pair->client_nic, 3 * kPageBytes, kAllRights, kSeamZone);
    page = (kPageBytes - source->address() % kPageBytes) % kPageBytes;
    key = bind(scope);
  }
  void TearDown() override {
    if (pair) pair->server_nic.held([&] { window.reset(); });
  }
  std::uint32_t post_bind(std::uint64_t tag, const SeamMemory& memory) {
    std::uint32_t made = 0;
    pair->server_nic.held([&] {
      const nic::BindRequest request{1, nullptr, tag, window.get(), memory.segment(0, 64), nic::access::kRemoteWrite,
                                     {}};
      EXPECT_EQ(pair->server->post_bind(request, made), nic::Status::ok);
    });
    return made;
  }
  std::uint32_t bind(nic::WindowScope whose) {
    pair->server_nic.held([&] { window = pair->server_nic->create_window(kSeamZone, whose, notes); });
    const std::uint32_t made = post_bind(kBindTag, *opened);
    EXPECT_EQ(pair->server.sent.next().status, WorkStatus::success);
    EXPECT_TRUE(notes.is_bound());
    return made;
  }
  // The peer's Write, which stops in the middle until the page comes.
  void write() {
    const nic::Segment segment = source->segment(page, 8);
    nic::SendRequest request{};
    request.segments = {&segment, 1};
    request.length = 8;
    request.kind = WorkKind::rdma_write;
    request.remote = {opened->address(), key};
    EXPECT_EQ(pair->client->post_send(request), nic::Status::ok);
  }
  std::span<std::byte> its_page() { return {source->data() + page, kPageBytes}; }
  bool withdrawn() {
    return eventually([&] { return !pair->server_nic->regions().alive(key); });
  }

  const nic::WindowScope scope;
  WindowNotes notes;
  std::optional<SeamPair> pair;
  std::optional<SeamMemory> opened, buffer, message, source;
  std::size_t page = 0;
  std::unique_ptr<nic::Window> window;
  std::uint32_t key = 0;
};

// The peer's Write, stopped in the middle for as long as this is there.
class StoppedWrite {
 public:
  // What peers copy they look at first, and ask for what is not there; what has been seen within a millisecond they do
  // not look at. So a Write that is done comes before, and another try after one that came too late.
  StoppedWrite(std::span<std::byte> page, const std::function<void()>& write, SeamEnd& writer) {
    if (!eventually([&] { return stop(page, write, writer); })) throw std::runtime_error("no Write was stopped");
  }
  ~StoppedWrite() { absent_->fill(Bytes(kPageBytes, std::byte{0x3c})); }

 private:
  bool stop(std::span<std::byte> page, const std::function<void()>& write, SeamEnd& writer) {
    write();
    EXPECT_EQ(writer.sent.next().status, WorkStatus::success);
    absent_.emplace(page);
    thread_.emplace(write);
    try {
      thread_->wait_until_asleep();
      return true;
    } catch (const std::exception&) {
      absent_->fill(Bytes(kPageBytes, std::byte{0x3c}));
      thread_.reset();
      EXPECT_EQ(writer.sent.next().status, WorkStatus::success);
      absent_.reset();
      return false;
    }
  }

  std::optional<AbsentMemory> absent_;
  std::optional<WatchedThread> thread_;  // which waits for that
};

// D2-SENDINV-3, D2-RMR-10.
TEST_P(TakenBack, AReceiveThatInvalidatesWaitsForThePeer) {
  const nic::Segment segment = message->segment(0, 32);
  nic::ExtendedRequest send{};
  send.segments = {&segment, 1};
  send.length = 32;
  send.kind = WorkKind::send_invalidate;
  send.remote.key = key;
  ASSERT_EQ(pair->client->post_extended(send), nic::Status::ok);
  EXPECT_EQ(pair->client.sent.next().kind, WorkKind::send_invalidate);
  nic::SendRequest behind{};
  behind.segments = {&segment, 1};
  behind.length = 32;
  ASSERT_EQ(pair->client->post_send(behind), nic::Status::ok);
  EXPECT_EQ(pair->client.sent.next().kind, WorkKind::send);
  {
    const StoppedWrite stopped(
        its_page(), [this] { write(); }, pair->client);
    pair->server.post_recv(buffer->segment(0, 64));
    pair->server.post_recv(buffer->segment(0, 64));
    EXPECT_TRUE(withdrawn()) << "nobody else may begin";
    EXPECT_FALSE(pair->server.received.poll());
    EXPECT_TRUE(notes.is_bound());
  }
  const Completion told = pair->server.received.next();
  EXPECT_EQ(told.status, WorkStatus::success);
  EXPECT_EQ(told.kind, WorkKind::recv_invalidate);
  EXPECT_EQ(told.value, key);
  EXPECT_EQ(told.length, 32u);
  EXPECT_FALSE(notes.is_bound());
  EXPECT_EQ(opened->as<std::uint8_t>(), 0x3c) << "what was under way has been done";
  EXPECT_EQ(pair->server.received.next().kind, WorkKind::recv) << "those behind it follow";
  EXPECT_EQ(pair->client.sent.next().status, WorkStatus::success);
}

// D2-RMR-4, D2-RMR-10.
TEST_P(TakenBack, TheEndOfTheConnectionWaitsForThePeer) {
  {
    const StoppedWrite stopped(
        its_page(), [this] { write(); }, pair->client);
    pair->server_nic.held([&] { pair->server->disconnect(false); });
    EXPECT_TRUE(withdrawn());
    EXPECT_TRUE(notes.is_bound());
    EXPECT_EQ(pair->server.closed, SeamEnd::Closed::no);
  }
  EXPECT_TRUE(pair->server.expect_closed(false));
  EXPECT_FALSE(notes.is_bound());
}

// D2-RMR-4: it is not theirs, whatever they write.
TEST_P(TakenBack, OtherPeersAreNotWaitedFor) {
  RawPeer stranger(raw_service_name(pair->service.qual()));
  ASSERT_TRUE(stranger.shake_hands());
  stranger.outbound().header().rdma_uses[0].store(key);
  pair->server_nic.held([&] { pair->server->disconnect(false); });
  EXPECT_TRUE(pair->server.expect_closed(false));
  EXPECT_FALSE(notes.is_bound());
  EXPECT_FALSE(stranger.cut(std::chrono::milliseconds(0))) << "it was given half a second to let go";
}

// A window of a zone: a bind that has begun to take away what it showed waits for the peer.
class BegunBind : public TakenBack {
 public:
  BegunBind() : TakenBack(nic::WindowScope::zone) {}
};

// RMR-BIND-14, RMR-BIND-15: its region goes, so nothing comes in the place of what it has taken away.
TEST_P(BegunBind, ThatFailsLeavesItsWindowBoundToNothing) {
  SeamMemory next(pair->server_nic, 64, kAllRights, kSeamZone);
  {
    const StoppedWrite stopped(
        its_page(), [this] { write(); }, pair->client);
    post_bind(kNextTag, next);
    EXPECT_TRUE(withdrawn());
    pair->server_nic.held([&] { pair->server_nic->remove_region(next.key()); });
    EXPECT_EQ(notes.bound_by, kBindTag) << "the peer still writes there";
  }
  EXPECT_EQ(pair->server.sent.next().status, WorkStatus::bind_failed);
  EXPECT_TRUE(pair->server.expect_closed(true));
  EXPECT_FALSE(notes.is_bound());
}

// RMR-BIND-13: what is flushed changes nothing, and this has.
TEST_P(BegunBind, IsDoneThoughTheConnectionEnds) {
  const SeamMemory next(pair->server_nic, 64, kAllRights, kSeamZone);
  std::uint32_t made = 0;
  {
    const StoppedWrite stopped(
        its_page(), [this] { write(); }, pair->client);
    made = post_bind(kNextTag, next);
    EXPECT_TRUE(withdrawn());
    pair->server_nic.held([&] { pair->server->disconnect(false); });
    EXPECT_EQ(notes.bound_by, kBindTag);
    EXPECT_EQ(pair->server.closed, SeamEnd::Closed::no);
  }
  EXPECT_EQ(pair->server.sent.next().status, WorkStatus::success);
  EXPECT_TRUE(pair->server.expect_closed(false));
  EXPECT_EQ(notes.bound_by, kNextTag);
  EXPECT_TRUE(pair->server_nic->regions().alive(made));
}

// RMR-FREE-2: it is closed when no request is in the middle of using it.
// RMR-BIND-13: flushed would say that the window is as it was.
TEST_P(BegunBind, IsDoneThoughARequestBeforeItIsFlushed) {
  const SeamMemory long_message(pair->server_nic, 3 * kPageBytes, kAllRights, kSeamZone);
  const nic::Segment segment = long_message.segment(0, 3 * kPageBytes);  // the peer has no buffer for it
  nic::SendRequest send{};
  send.segments = {&segment, 1};
  send.length = segment.length;
  ASSERT_EQ(pair->server->post_send(send), nic::Status::ok);
  post_bind(kNextTag, *buffer);
  ASSERT_TRUE(eventually([&] { return notes.bound_by == kNextTag; }));
  pair->server_nic.held([&] { pair->server->disconnect(false); });
  EXPECT_TRUE(pair->server.expect_closed(false));
  EXPECT_EQ(pair->server.sent.next().status, WorkStatus::flushed);
  const Completion bound = pair->server.sent.next();
  EXPECT_EQ(bound.kind, WorkKind::bind);
  EXPECT_EQ(bound.status, WorkStatus::success);
  EXPECT_EQ(notes.bound_by, kNextTag);
}

TEST_P(BegunBind, AClosedWindowHasNoUser) {
  const auto close = [this] {
    bool closed = false;
    pair->server_nic.held([&] { closed = window->close(); });
    return closed;
  };
  {
    const StoppedWrite stopped(
        its_page(), [this] { write(); }, pair->client);
    EXPECT_FALSE(close());
    EXPECT_FALSE(pair->server_nic->regions().alive(key));
  }
  EXPECT_TRUE(eventually(close));
}

INSTANTIATE_TEST_SUITE_P(Wires, BegunBind, testing::ValuesIn(seam_wires()), seam_wire_name);
INSTANTIATE_TEST_SUITE_P(Wires, TakenBack, testing::ValuesIn(seam_wires()), seam_wire_name);

}  // namespace
}  // namespace anydat::test
