// SPDX-License-Identifier: BSD-3-Clause
// The requests of a queue pair that have not completed, under random use and beside a plain model: each completes once,
// in posting order and with the status that the rules give it, in whatever order the stream finishes them.
#include "nic/soft/pending_requests.h"

#include <gtest/gtest.h>

#include <deque>
#include <ostream>
#include <random>
#include <utility>
#include <vector>

namespace anydat::nic::soft {
namespace {

struct Done {
  std::uint64_t cookie;
  WorkStatus status;
  friend bool operator==(const Done&, const Done&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Done& done) {
    return out << done.cookie << " with status " << static_cast<int>(done.status);
  }
};

// Keeps what completes in its order, whichever way it comes: all by push() where the queue is watched, else most by the
// short way, whose ring is so small that a row may not fit.
class Completions final : public CompletionQueue {
 public:
  Completions(void* owner, bool watched) : owner_(owner) {
    set_watched(watched);
    os::Guard guard(lock_);
    EXPECT_TRUE(ring_.reserve(3));
  }
  std::size_t push(std::span<const Completion> completions) override {
    note_quiet_ones();
    if (!has_room) return 0;
    for (const Completion& completion : completions) {
      EXPECT_EQ(completion.owner, owner_);
      found_.push_back({completion.cookie, completion.status});
    }
    return completions.size();
  }
  std::vector<Done> take() {
    note_quiet_ones();
    return std::exchange(found_, {});
  }

  bool has_room = true;

 private:
  void note_quiet_ones() {
    os::Guard guard(lock_);
    for (; ring_.queued() > 0; ring_.drop_oldest()) {
      const Event& event = ring_.look_at_oldest()->event;
      EXPECT_EQ(event.object, owner_);
      found_.push_back({event.cookie, event.status});
    }
  }

  void* const owner_;
  std::vector<Done> found_;
};

struct Events final : QueuePairEvents {
  Events() { owner = this; }
  void on_established(std::span<const std::byte>) override {}
  void on_connect_failed(ConnectFailure, std::span<const std::byte>) override {}
  void on_accept_failed() override {}
  void on_closed(bool) override {}
  void on_soft_watermark() override {}
};

constexpr std::uint32_t kReadsOut = 2;

// Both, and what the send queue and a stream do to them.
struct Both {
  struct Expected {
    std::uint64_t cookie;
    WorkKind kind;
    WorkFlags flags;
    bool sent = false, finished = false;
    WorkStatus failure = WorkStatus::success;
  };

  Both(std::mt19937_64& its_random, bool watched, std::uint32_t its_depth)
      : random(its_random), completions(&events, watched), requests(events), depth(its_depth) {
    requests.set_queue(&completions);
    requests.set_limits({0, depth, 0, 1, 0, kReadsOut}, std::nullopt);
    EXPECT_TRUE(requests.make_room());
  }

  std::size_t reads_held() const {
    return static_cast<std::size_t>(std::count_if(
        model.begin(), model.end(), [](const Expected& it) { return it.sent && !it.finished && is_read(it.kind); }));
  }
  std::size_t sent() const {
    return static_cast<std::size_t>(
        std::count_if(model.begin(), model.end(), [](const Expected& it) { return it.sent; }));
  }

  void post() {
    ASSERT_EQ(requests.full(), model.size() == depth);
    if (requests.full()) return;
    constexpr std::array kKinds{WorkKind::send, WorkKind::rdma_write, WorkKind::rdma_read, WorkKind::fetch_add};
    const WorkKind kind = kKinds[random() % kKinds.size()];
    const std::uint64_t bits = random();
    const WorkFlags flags(static_cast<std::uint8_t>(((bits & 3) == 0 ? WorkFlags::kSuppress : 0) |
                                                    ((bits & 12) == 0 ? WorkFlags::kUnsignalled : 0) |
                                                    ((bits & 48) == 0 ? WorkFlags::kFence : 0)));
    const std::uint64_t number = cookie++;
    const Segment segment{};
    if (model.empty() && random() % 2 == 0) {
      EXPECT_TRUE(requests.complete_at_once(number, 0, kind, flags));
      if (!flags.suppress()) expected.push_back({number, WorkStatus::success});
      return;
    }
    requests.append(SendRequest{number, {&segment, 1}, 0, flags, kind, {}});
    model.push_back({number, kind, flags});
  }
  // The stream takes the next one, unless it is kept back (DTO-33, RDR-10).
  void hand_over() {
    ASSERT_EQ(requests.all_sent(), sent() == model.size());
    if (requests.all_sent()) return;
    SendRing::Entry& entry = requests.at(requests.unsent());
    Expected& its = model[sent()];
    ASSERT_EQ(entry.cookie, its.cookie);
    const std::size_t held = reads_held();
    const bool kept_back = held > 0 && (its.flags.fence() || (is_read(its.kind) && held >= kReadsOut));
    ASSERT_EQ(requests.keeps_back(entry.request()), kept_back);
    ASSERT_EQ(requests.fences(its.flags), its.flags.fence() && held > 0);
    if (kept_back) return;
    if (is_read(its.kind)) requests.note_read_held();
    requests.mark_sent();
    its.sent = true;
  }
  void finish_one() {
    if (sent() == 0) return;
    const std::size_t which = random() % sent();
    Expected& its = model[which];
    if (its.finished) return;
    requests.finish(*requests.find(requests.first() + which));
    its.finished = true;
    retire();
  }
  // As many of one kind as there are, or more.
  void finish_oldest() {
    const bool reads = random() % 2 == 0;
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % 3);
    std::vector<Expected*> held;
    for (Expected& its : model) {
      if (its.sent && !its.finished && (reads ? is_read(its.kind) : is_write(its.kind))) held.push_back(&its);
    }
    ASSERT_EQ(requests.finish_oldest(reads ? is_read : is_write, count), held.size() >= count);
    held.resize(std::min<std::size_t>(held.size(), count));
    for (Expected* its : held) its->finished = true;
    retire();
  }
  void retire() {
    ASSERT_TRUE(requests.retire_finished());
    for (; !model.empty() && model.front().finished; model.pop_front()) {
      if (!model.front().flags.suppress()) expected.push_back({model.front().cookie, WorkStatus::success});
    }
  }
  // The end of a connection: one request at most is to blame, and all others are flushed, suppressed or not.
  void flush() {
    const WorkStatus first_status = random() % 2 == 0 ? WorkStatus::flushed : WorkStatus::transport;
    for (std::size_t i = 0; i < model.size(); ++i) {
      if (random() % 4 != 0) continue;
      model[i].failure = WorkStatus::remote_access;
      requests.at(requests.first() + i).rdma.progress.failure = WorkStatus::remote_access;
    }
    const auto failed = [](const Expected& its) { return !its.finished && its.failure != WorkStatus::success; };
    auto culprit = model.begin();
    if (first_status == WorkStatus::flushed) culprit = std::find_if(model.begin(), model.end(), failed);
    for (auto its = model.begin(); its != model.end(); ++its) {
      const WorkStatus own = failed(*its) ? its->failure : first_status;
      expected.push_back({its->cookie, its == culprit ? own : WorkStatus::flushed});
    }
    model.clear();
    EXPECT_TRUE(requests.flush(first_status));
    EXPECT_TRUE(requests.empty());
    const Segment segment{};
    const SendRequest fenced{0, {&segment, 1}, 0, WorkFlags(WorkFlags::kFence), WorkKind::send, {}};
    EXPECT_FALSE(requests.keeps_back(fenced)) << "nothing is held any more";
  }

  std::mt19937_64& random;
  Events events;
  Completions completions;
  PendingRequests requests;
  const std::uint32_t depth;
  std::deque<Expected> model;
  std::vector<Done> expected;
  std::uint64_t cookie = 0;
};

// DTO-33, DTO-40, RDR-10
TEST(PendingRequests, CompleteOnceAndInPostingOrder) {
  for (std::uint64_t seed = 1; seed <= 40 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Both both(random, seed % 2 == 0, 1 + static_cast<std::uint32_t>(random() % 12));
    for (int step = 0; step < 2'000 && !testing::Test::HasFailure(); ++step) {
      switch (random() % 16) {
        case 0:
          if (random() % 16 == 0) both.flush();
          break;
        case 1:
        case 2:
          both.finish_oldest();
          break;
        case 3:
        case 4:
        case 5:
          both.finish_one();
          break;
        case 6:
        case 7:
        case 8:
        case 9:
          both.hand_over();
          break;
        default:
          both.post();
      }
      EXPECT_EQ(both.completions.take(), std::exchange(both.expected, {}));
      EXPECT_EQ(both.requests.size(), both.model.size());
    }
  }
}

// EVM-54: a completion that finds no room is told of, wherever it completes; of what has failed anyway it is not.
TEST(PendingRequests, TellOfACompletionThatFoundNoRoom) {
  std::mt19937_64 random(1);
  Both both(random, true, 4);
  both.completions.has_room = false;
  const Segment segment{};
  EXPECT_FALSE(both.requests.complete_at_once(1, 0, WorkKind::send, {}));
  EXPECT_TRUE(both.requests.complete_at_once(2, 0, WorkKind::send, WorkFlags(WorkFlags::kSuppress)));
  for (const std::uint64_t cookie : {3, 4}) {
    both.requests.append(SendRequest{cookie, {&segment, 1}, 0, {}, WorkKind::send, {}});
  }
  both.requests.mark_sent();
  both.requests.finish(both.requests.at(both.requests.first()));
  EXPECT_FALSE(both.requests.retire_finished());
  EXPECT_EQ(both.requests.size(), 1U);
  EXPECT_TRUE(both.requests.flush(WorkStatus::flushed));
  EXPECT_TRUE(both.requests.empty());
}

// A peer that refuses a request has done what it must have done before: Writes before a refused Write or Read, and all
// messages before a refused one.
TEST(PendingRequests, WhatComesBeforeARefusedOneIsDone) {
  const auto posted = [](Both& both, std::initializer_list<WorkKind> kinds) {
    const Segment segment{};
    std::uint64_t cookie = 0;
    for (const WorkKind kind : kinds) {
      both.requests.append(SendRequest{++cookie, {&segment, 1}, 0, {}, kind, {}});
      both.requests.mark_sent();
    }
  };
  const auto ended = [](Both& both) {
    EXPECT_TRUE(both.requests.retire_finished());
    EXPECT_TRUE(both.requests.flush(WorkStatus::flushed));
    return both.completions.take();
  };
  std::mt19937_64 random(1);
  Both of_a_write(random, true, 8);
  posted(of_a_write, {WorkKind::rdma_write, WorkKind::rdma_read, WorkKind::rdma_write, WorkKind::send});
  EXPECT_TRUE(of_a_write.requests.refuse([](const SendRing::Entry& entry) { return entry.cookie == 3; },
                                         WorkStatus::remote_access));
  EXPECT_EQ(ended(of_a_write), (std::vector<Done>{{1, WorkStatus::success},
                                                  {2, WorkStatus::flushed},
                                                  {3, WorkStatus::remote_access},
                                                  {4, WorkStatus::flushed}}));

  Both of_a_message(random, true, 8);
  posted(of_a_message, {WorkKind::send, WorkKind::rdma_write, WorkKind::send, WorkKind::send});
  of_a_message.requests.refuse_message(2, WorkStatus::remote_responder);
  EXPECT_EQ(ended(of_a_message), (std::vector<Done>{{1, WorkStatus::success},
                                                    {2, WorkStatus::success},
                                                    {3, WorkStatus::remote_responder},
                                                    {4, WorkStatus::flushed}}));

  Both of_one_that_has_completed(random, true, 8);
  posted(of_one_that_has_completed, {WorkKind::send, WorkKind::send});
  of_one_that_has_completed.requests.refuse_message(3, WorkStatus::remote_responder);
  EXPECT_EQ(ended(of_one_that_has_completed), (std::vector<Done>{{1, WorkStatus::flushed}, {2, WorkStatus::flushed}}));

  Both of_a_read(random, true, 8);
  posted(of_a_read, {WorkKind::rdma_read, WorkKind::rdma_write, WorkKind::rdma_read});
  EXPECT_TRUE(of_a_read.requests.refuse(is_read, 1, WorkStatus::remote_access));
  EXPECT_FALSE(of_a_read.requests.refuse(is_read, 2, WorkStatus::remote_access)) << "there are two";
  EXPECT_EQ(ended(of_a_read),
            (std::vector<Done>{{1, WorkStatus::flushed}, {2, WorkStatus::flushed}, {3, WorkStatus::remote_access}}));
}

}  // namespace
}  // namespace anydat::nic::soft
