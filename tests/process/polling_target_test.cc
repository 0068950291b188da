// SPDX-License-Identifier: BSD-3-Clause
// RDMA on ordinary memory of another process, which may put short Writes in place itself if it is seen to poll: what it
// sees, and in which order, is the same whatever way each of them goes.
#include <anydat/anydat.h>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "seed.h"
#include "support/dat_fixture.h"
#include "support/peer_process.h"

namespace anydat::test {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kRegionBytes = 64 << 10;
constexpr std::size_t kMostOperations = 24;  // in a round
constexpr std::size_t kSlotBytes = 40'000;
constexpr std::uint64_t kSendCookie = 1000;
constexpr std::size_t kWriteRounds = 2000;

struct Operation {
  bool reads;
  std::size_t offset, bytes;
  std::byte value;
};

// What both sides know of a round without telling each other. Writes overlap, so that their order shows.
std::vector<Operation> operations_of(std::uint64_t seed) {
  Random random(seed);
  std::vector<Operation> all(1 + random.below(kMostOperations));
  for (Operation& one : all) {
    static constexpr std::array<std::size_t, 9> kSizes{1, 8, 8, 63, 500, 4096, 4097, 9000, 40000};
    const std::size_t bytes = kSizes[random.below(kSizes.size())];
    one = {random.chance(4), random.below(std::min<std::size_t>(kRegionBytes - bytes, 6000)), bytes,
           static_cast<std::byte>(random.number())};
  }
  return all;
}

void carry_out(const Operation& operation, std::span<std::byte> memory) {
  if (operation.reads) return;
  std::fill_n(memory.begin() + static_cast<std::ptrdiff_t>(operation.offset), operation.bytes, operation.value);
}

std::span<std::byte> heap_memory() {
  auto* const bytes = static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kRegionBytes));
  std::fill_n(bytes, kRegionBytes, std::byte{0});
  return {bytes, kRegionBytes};  // lives as long as the process
}

// Polls without a pause: what has arrived, a number.
std::uint64_t poll_number(Side& side, const Ep& ep, Lmr& numbers) {
  for (;;) {
    DAT_EVENT event{};
    const DAT_RETURN rc = dat_evd_dequeue(side.recv.get(), &event);
    if (DAT_GET_TYPE(rc) == DAT_QUEUE_EMPTY) continue;
    require(rc, "dat_evd_dequeue");
    const DAT_DTO_COMPLETION_EVENT_DATA& dto = event.event_data.dto_completion_event_data;
    if (dto.status != DAT_DTO_SUCCESS) return 0;
    std::uint64_t number = 0;
    const std::size_t slot = dto.user_cookie.as_64;
    std::memcpy(&number, numbers.bytes().data() + slot * sizeof number, sizeof number);
    DAT_LMR_TRIPLET segment = numbers.triplet(slot * sizeof number, sizeof number);
    require(dat_ep_post_recv(ep.get(), 1, &segment, dto.user_cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
    return number;
  }
}

// Of this thread, in seconds.
double processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Offers a region, and then, by what it is told: "poll" until 0 has come as a message or the connection has ended,
// looking at the region whenever one has come; "stop" and, once it goes on, the same; "watch" the last byte of the
// region and nothing else until it is 255. Then it says how often the region was wrong, and which part of a processor
// it had.
const Role kTarget("polled-target", [](RoleContext& context) {
  Side side(context.wire);
  const std::span<std::byte> memory = heap_memory();
  Lmr region(side.ia, side.pz, memory);
  Lmr numbers(side.ia, side.pz, 8 * sizeof(std::uint64_t));
  const Ep ep(side);
  for (std::uint64_t slot = 0; slot < 8; ++slot) {
    DAT_LMR_TRIPLET segment = numbers.triplet(slot * 8, 8);
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = slot;
    require(dat_ep_post_recv(ep.get(), 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  }
  context.parent.say(
      fmt::format("{} {} {}", side.listen(), region.rmr_context(), reinterpret_cast<std::uintptr_t>(memory.data())));
  const auto request = expect_event(side.requests.get(), DAT_CONNECTION_REQUEST_EVENT);
  require(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep.get(), 0, nullptr), "dat_cr_accept");
  (void)expect_event(side.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  std::vector<std::byte> shadow(kRegionBytes);
  std::string line;
  while ((line = context.parent.hear(40 * patience())) != "end") {
    if (line == "free") region.reset();
    if (line == "forbid") {
      mprotect(memory.data() + kPageBytes, kPageBytes, PROT_READ);
      // A look at the memory holds for about a millisecond (docs/process-life.md), and the last one may just have been.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    context.parent.say("now");
    if (line == "stop") std::raise(SIGSTOP);
    std::size_t wrong = 0;
    const auto ran_before = processor_time();
    const auto began = std::chrono::steady_clock::now();
    if (line != "watch") {
      while (const std::uint64_t seed = poll_number(side, ep, numbers)) {
        for (const Operation& operation : operations_of(seed)) carry_out(operation, shadow);
        if (!std::equal(shadow.begin(), shadow.end(), memory.begin())) ++wrong;
        context.parent.say("seen");
      }
    } else {
      const std::atomic_ref<std::byte> last(memory.back());
      while (last.load(std::memory_order_acquire) != std::byte{255}) continue;
    }
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    context.parent.say(fmt::format("{} {:.2f}", wrong, (processor_time() - ran_before) / passed));
  }
  dat_ep_disconnect(ep.get(), DAT_CLOSE_ABRUPT_FLAG);
});

class PollingTarget : public testing::TestWithParam<Wire> {
 protected:
  void SetUp() override {
    target_.emplace("polled-target", GetParam());
    unsigned long long qualifier = 0, context = 0, address = 0;
    ASSERT_EQ(std::sscanf(target_->channel().hear().c_str(), "%llu %llu %llu", &qualifier, &context, &address), 3);
    context_ = static_cast<DAT_RMR_CONTEXT>(context);
    address_ = address;
    sockaddr_in loopback{};
    loopback.sin_family = AF_INET;
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(dat_ep_connect(ep_.get(), reinterpret_cast<DAT_IA_ADDRESS_PTR>(&loopback), qualifier, DAT_TIMEOUT_INFINITE,
                           0, nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
            "dat_ep_connect");
    (void)expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_ESTABLISHED);
  }
  void tell(const char* what) {
    target_->channel().say(what);
    ASSERT_EQ(target_->channel().hear(), "now");
  }
  // Which part of a processor the target had meanwhile.
  double end_of_phase() {
    std::size_t wrong = 0;
    double share = 0;
    const std::string said = target_->channel().hear();
    EXPECT_EQ(std::sscanf(said.c_str(), "%zu %lf", &wrong, &share), 2) << said;
    EXPECT_EQ(wrong, 0u) << "rounds";
    return share;
  }
  // Each has local memory of its own. The fence keeps it behind Reads.
  void post(const Operation& operation, std::size_t slot, bool fence) {
    require(try_post(operation, slot, fence, local_.triplet(slot * kSlotBytes, operation.bytes)), "dat_ep_post_rdma_*");
  }
  DAT_RETURN try_post(const Operation& operation, std::size_t slot, bool fence, DAT_LMR_TRIPLET local) {
    DAT_RMR_TRIPLET remote{};
    remote.rmr_context = context_;
    remote.target_address = address_ + operation.offset;
    remote.segment_length = operation.bytes;
    const DAT_COMPLETION_FLAGS flags = fence ? DAT_COMPLETION_BARRIER_FENCE_FLAG : DAT_COMPLETION_DEFAULT_FLAG;
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = slot;
    return operation.reads ? dat_ep_post_rdma_read(ep_.get(), 1, &local, cookie, &remote, flags)
                           : dat_ep_post_rdma_write(ep_.get(), 1, &local, cookie, &remote, flags);
  }
  std::span<std::byte> slot_of(std::size_t slot, std::size_t bytes) {
    return local_.bytes().subspan(slot * kSlotBytes, bytes);
  }
  void send(std::uint64_t number) {
    std::memcpy(number_.bytes().data(), &number, sizeof number);
    DAT_LMR_TRIPLET segment = number_.triplet();
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = kSendCookie;
    require(dat_ep_post_send(ep_.get(), 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  }
  void expect_completion(std::uint64_t cookie, DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS) {
    const DAT_EVENT event = expect_event(side_.request.get(), DAT_DTO_COMPLETION_EVENT);
    EXPECT_EQ(event.event_data.dto_completion_event_data.status, status);
    EXPECT_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
  }
  // Until the target is seen to poll, if it ever is: not on a machine that leaves it no processor.
  bool becomes_seen() {
    return eventually(
        [&] {
          for (int i = 0; i < 64; ++i) {
            post({false, 100, 8, std::byte{7}}, 0, false);
            expect_completion(0);
          }
          return put_in_place_by_the_target() >= 640;
        },
        GetParam().name == "shm" ? patience() / 5 : quiet_time());
  }
  // So that what is posted then comes to the target all at once, where it has a part in it.
  void let_it_gather() {
    const bool by_target = GetParam().name == "shm";
    tell(by_target ? "poll" : "stop");
    if (by_target) {
      becomes_seen();
    } else {
      target_->wait_until_stopped();
    }
  }
  void let_it_go_on() {
    if (GetParam().name != "shm") target_->resume();
  }
  std::uint64_t put_in_place_by_the_target() const {
    std::array<ANYDAT_COUNTER, 32> counters;
    DAT_COUNT count = 0;
    require(anydat_get_counters(ep_.get(), static_cast<DAT_COUNT>(counters.size()), counters.data(), &count),
            "anydat_get_counters");
    for (DAT_COUNT i = 0; i < count; ++i) {
      const ANYDAT_COUNTER& one = counters[static_cast<std::size_t>(i)];
      if (one.name == std::string_view("rdmas_by_peer")) return one.value;
    }
    throw std::runtime_error("no such counter");
  }

  Side side_{GetParam()};
  Ep ep_{side_};
  Lmr local_{side_.ia, side_.pz, kMostOperations* kSlotBytes};
  Lmr number_{side_.ia, side_.pz, sizeof(std::uint64_t)};
  std::optional<PeerProcess> target_;
  DAT_RMR_CONTEXT context_ = 0;
  DAT_VADDR address_ = 0;
};

// RDW-6, DTO-40: short and long Writes over each other, Reads among them, and a message behind them, after which all of
// it is there. All are under way at once, and complete in the order in which they were posted.
TEST_P(PollingTarget, SeesWritesReadsAndSendsInTheirOrder) {
  tell("poll");
  std::vector<std::byte> shadow(kRegionBytes);
  const std::uint64_t first = 1 + announced_seed() % 1'000'000;
  for (std::uint64_t round = first; round < first + kWriteRounds && !HasFailure(); ++round) {
    const std::vector<Operation> operations = operations_of(round);
    std::vector<std::vector<std::byte>> read(operations.size());
    bool fence = false;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const Operation& one = operations[i];
      std::ranges::fill(slot_of(i, one.bytes), one.value);
      carry_out(one, shadow);
      if (one.reads) {
        const auto begin = shadow.begin() + static_cast<std::ptrdiff_t>(one.offset);
        read[i].assign(begin, begin + static_cast<std::ptrdiff_t>(one.bytes));
      }
      post(one, i, fence);
      fence |= one.reads;
    }
    send(round);
    for (std::size_t i = 0; i < operations.size(); ++i) {
      expect_completion(i);
      if (operations[i].reads) {
        EXPECT_TRUE(std::ranges::equal(slot_of(i, operations[i].bytes), read[i]))
            << "operation " << i << " of " << round;
      }
    }
    expect_completion(kSendCookie);
    ASSERT_EQ(target_->channel().hear(), "seen");
  }
  send(0);
  expect_completion(kSendCookie);
  end_of_phase();
}

// A stream of short Writes to a target that polls: the kernel is asked for few of them.
TEST_P(PollingTarget, PutsShortWritesInPlaceItself) {
  tell("poll");
  const bool seen = becomes_seen();
  send(0);
  expect_completion(kSendCookie);
  const bool ran = end_of_phase() > 0.9;
  if (GetParam().name != "shm") {
    EXPECT_FALSE(seen) << "where it always has to, that is not counted";
  } else if (ran) {
    EXPECT_TRUE(seen);
  } else if (!seen) {
    GTEST_SKIP() << "the machine is busy: the target does not poll all the time";
  }
}

// A target that looks at its memory, and not at the library, is not waited for.
TEST_P(PollingTarget, IsNotSeenWhereItWatchesMemoryOnly) {
  tell("watch");
  if (GetParam().name == "shm") {
    for (int i = 0; i < 5000; ++i) {
      post({false, 100, 8, std::byte{7}}, 0, false);
      expect_completion(0);
    }
    EXPECT_EQ(put_in_place_by_the_target(), 0u);
  }
  slot_of(0, 1)[0] = std::byte{255};
  post({false, kRegionBytes - 1, 1, std::byte{255}}, 0, false);
  expect_completion(0);
  end_of_phase();
}

// RDW-8, DTO-40: what comes before it in the same moment has been put in place, and is not blamed.
TEST_P(PollingTarget, FailsTheWriteThatIsWrongAndNoneBeforeIt) {
  let_it_gather();
  constexpr std::size_t kGood = 20;
  for (std::size_t i = 0; i < kGood; ++i) post({false, 8 * i, 8, std::byte{7}}, i, false);
  post({false, kRegionBytes - 4, 8, std::byte{7}}, kGood, false);
  let_it_go_on();
  for (std::size_t i = 0; i < kGood; ++i) expect_completion(i);
  expect_completion(kGood, DAT_DTO_ERR_REMOTE_ACCESS);
  (void)expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

// RDW-6: that it cannot be written there is found by the target alone, behind Writes that it still has to do, and it
// goes on.
TEST_P(PollingTarget, RefusesWritesToAPageThatItMayNotWriteItself) {
  tell("poll");
  becomes_seen();
  send(0);
  expect_completion(kSendCookie);
  end_of_phase();
  tell("forbid");
  becomes_seen();
  for (std::size_t i = 0; i < 8; ++i) post({false, 8 * i, 8, std::byte{7}}, i, false);
  post({false, kPageBytes + 8, 8, std::byte{7}}, 8, false);
  for (std::size_t i = 0; i < 8; ++i) expect_completion(i);
  if (GetParam().name == "shm" || GetParam().name == "shm_ring") expect_completion(8, DAT_DTO_ERR_REMOTE_ACCESS);
  (void)expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  end_of_phase();
}

// DTO-40: nor are they if it is a message for which there is no room.
TEST_P(PollingTarget, HasPutInPlaceWhatComesBeforeAMessageThatIsTooLong) {
  let_it_gather();
  constexpr std::size_t kGood = 20;
  for (std::size_t i = 0; i < kGood; ++i) post({false, 8 * i, 8, std::byte{7}}, i, false);
  DAT_LMR_TRIPLET segment = local_.triplet(0, 64);
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = kSendCookie;
  require(dat_ep_post_send(ep_.get(), 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  // What comes behind it is not to blame, since the message has completed.
  post({false, 0, 8, std::byte{7}}, kGood, false);
  let_it_go_on();
  for (std::size_t i = 0; i < kGood; ++i) expect_completion(i);
  expect_completion(kSendCookie);
  const DAT_EVENT behind = expect_event(side_.request.get(), DAT_DTO_COMPLETION_EVENT);
  const DAT_DTO_COMPLETION_STATUS status = behind.event_data.dto_completion_event_data.status;
  EXPECT_TRUE(status == DAT_DTO_ERR_FLUSHED || (GetParam().name == "shm" && status == DAT_DTO_SUCCESS)) << status;
  (void)expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

// LMR-FREE-3: also by the short way that those before it went.
TEST_P(PollingTarget, GetsNothingFromMemoryThatHasBeenFreed) {
  tell("poll");
  becomes_seen();
  const DAT_LMR_TRIPLET local = local_.triplet(0, 8);
  local_.reset();
  EXPECT_EQ(DAT_GET_TYPE(try_post({false, 100, 8, std::byte{7}}, 0, false, local)), DAT_PRIVILEGES_VIOLATION);
  send(0);
  expect_completion(kSendCookie);
  end_of_phase();
}

// LMR-FREE-6: also by the short way that those before it went.
TEST_P(PollingTarget, PutsNothingIntoMemoryThatHasBeenFreed) {
  tell("poll");
  becomes_seen();
  send(0);
  expect_completion(kSendCookie);
  end_of_phase();
  tell("free");
  post({false, 100, 8, std::byte{9}}, 3, false);
  expect_completion(3, DAT_DTO_ERR_REMOTE_ACCESS);
  (void)expect_event(side_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
}

INSTANTIATE_TEST_SUITE_P(Wires, PollingTarget, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
