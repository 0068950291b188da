// SPDX-License-Identifier: BSD-3-Clause
// A long walk of one SRQ: posts, messages, reaping, watermarks, resizes, regions that come and go and connections that
// end, chosen by chance, beside a model of what the rules promise. After every call both counts are the model's, no
// event is there that it does not expect, and completions come off the EVD in the order of the messages.
//
// ANYDAT_TEST_SEED: repeats a walk.
#include <algorithm>
#include <array>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "random_walk.h"
#include "srq_fixture.h"
#include "support/properties.h"

namespace anydat::test {
namespace {

class SrqWalk : public testing::TestWithParam<Wire> {
 protected:
  static constexpr std::size_t kPairs = 3;
  static constexpr std::size_t kSlots = 24;  // more than the queue ever has room for
  static constexpr DAT_COUNT kMostRoom = 16;
  static constexpr int kSteps = 4000;
  static constexpr std::size_t kSlotBytes = 12 * 1024;  // more than travels at once over shared memory

  // The memory of a buffer, and the region that it is posted through.
  struct Slot {
    std::vector<std::byte> memory = std::vector<std::byte>(kSlotBytes);
    std::optional<Lmr> region;
    DAT_LMR_TRIPLET last{};  // of the region, also of one that has gone
    bool in_use = false;     // posted, and not reaped
    bool stale = false;      // and the region that it was posted through has gone
  };
  struct Pair {
    Ep server;
    Ep client;
    bool connected = false;
  };
  struct Message {
    const Pair* pair;
    std::size_t length;
    DAT_UINT64 number;
  };

  SrqWalk() {
    for (Slot& slot : slots_) make_region(slot);
    for (Pair& pair : pairs_) pair = {.server = Ep(server_, srq_), .client = Ep(client_)};
  }

  void SetUp() override {
    if (!GetParam().ia_name.starts_with("soft")) {
      GTEST_SKIP() << "what a device makes of a region that goes under a posted buffer is its own affair";
    }
  }

  std::size_t below(std::size_t limit) { return walk_.below(limit); }
  DAT_COUNT count_up_to(DAT_COUNT most) { return static_cast<DAT_COUNT>(below(static_cast<std::size_t>(most) + 1)); }
  Slot& any_slot() { return slots_[below(kSlots)]; }
  Pair& any_pair() { return pairs_[below(kPairs)]; }

  // ---- the model

  DAT_COUNT outstanding() const { return available_ + static_cast<DAT_COUNT>(unreaped_.size()); }

  void make_region(Slot& slot) {
    slot.region.emplace(server_.ia, server_.pz, std::span(slot.memory));
    slot.last = slot.region->triplet();
  }

  // An endpoint takes a buffer: SRQ-LW-2, SRQ-LW-5.
  void take() {
    --available_;
    if (available_ >= armed_) return;
    armed_ = 0;
    expect_low_watermark(server_, srq_);
    ++fired_;
  }

  void expect_agreement() {
    const DAT_SRQ_PARAM param = srq_.query();
    EXPECT_EQ(param.available_dto_count, available_);
    EXPECT_EQ(param.outstanding_dto_count, outstanding());
    EXPECT_EQ(param.max_recv_dtos, room_);
    EXPECT_EQ(param.low_watermark, watermark_);
    for (const DAT_EVD_HANDLE evd : {server_.ia.async_evd(), server_.connect.get(), client_.connect.get()}) {
      if (const auto event = poll_event(evd)) ADD_FAILURE() << "nobody expected " << event_name(event->event_number);
    }
    EXPECT_TRUE(waiting_ || !poll_event(client_.request.get()));
    EXPECT_TRUE(!unreaped_.empty() || !poll_event(server_.recv.get()));
  }

  // ---- calls

  void post() {
    Slot& slot = any_slot();
    if (slot.in_use) return;
    DAT_LMR_TRIPLET segment = slot.last;
    const auto number = static_cast<DAT_UINT64>(&slot - slots_.data());
    const DAT_RETURN rc = dat_srq_post_recv(srq_.get(), 1, &segment, cookie(number));
    if (!slot.region) {
      EXPECT_THAT(rc, HasType(DAT_PRIVILEGES_VIOLATION));  // LMR-FREE-3
    } else if (outstanding() == room_) {
      EXPECT_THAT(rc, HasType(DAT_INSUFFICIENT_RESOURCES));  // SRQ-POST-16
    } else {
      ASSERT_THAT(rc, Succeeds());
      slot.in_use = true;
      ++available_;
      if (waiting_) deliver_waiting();
    }
  }

  void send() {
    Pair& pair = any_pair();
    if (!pair.connected || waiting_ || (available_ == 0 && !messages_wait_)) return;
    // A buffer whose region has gone may be the one that is taken: then it matters what is on the EVD.
    const auto stale = [](const Slot& slot) { return slot.stale; };
    if (std::any_of(slots_.begin(), slots_.end(), stale)) reap_all();
    const bool may_fail = std::any_of(slots_.begin(), slots_.end(), stale);
    const Message message{&pair, below(4) == 0 ? below(kSlotBytes) + 1 : below(256) + 1, ++last_number_};
    fill_pattern(source_.bytes().first(message.length), message.number);
    DAT_LMR_TRIPLET segment = source_.triplet(0, message.length);
    ASSERT_THAT(dat_ep_post_send(pair.client.get(), 1, &segment, cookie(message.number), DAT_COMPLETION_DEFAULT_FLAG),
                Succeeds());
    ++sent_;
    if (available_ == 0) {
      waiting_ = message;
    } else if (may_fail) {
      meet_stale_buffers(pair, message);
    } else {
      delivered(message);
    }
  }

  void delivered(const Message& message) {
    EXPECT_EQ(expect_completion(client_.request.get()).user_cookie.as_64, message.number);
    ASSERT_TRUE(eventually([&] {
      return srq_.available() == available_ - 1 && holds_none(held(message.pair->server));
    })) << counts(srq_)
        << ", expected one less than " << available_ << " to be available";
    unreaped_.push_back(message);
    take();
  }

  // SRQ-POST-31: the post satisfies it.
  void deliver_waiting() {
    const Message message = *waiting_;
    waiting_.reset();
    delivered(message);
  }

  // SRQ-POST-18, LMR-FREE-5. Which of the buffers is taken no rule says.
  void meet_stale_buffers(Pair& pair, const Message& message) {
    const auto event = expect_event(server_.recv.get(), DAT_DTO_COMPLETION_EVENT);
    const auto dto = event.event_data.dto_completion_event_data;
    Slot& slot = slots_.at(dto.user_cookie.as_64);
    const bool refused = slot.stale;
    take();
    expect_event(client_.request.get(), DAT_DTO_COMPLETION_EVENT);  // it may have left in order
    if (!refused) return check(dto, message);
    EXPECT_EQ(dto.status, DAT_DTO_ERR_LOCAL_PROTECTION);
    slot.in_use = slot.stale = false;
    expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
    EXPECT_TRUE(wait_event(client_.connect.get()));
    reset(pair);
    ++broken_;
  }

  // SRQ-ORD-1, SRQ-POST-20, SRQ-POST-21
  void check(const DAT_DTO_COMPLETION_EVENT_DATA& dto, const Message& message) {
    Slot& slot = slots_.at(dto.user_cookie.as_64);
    EXPECT_TRUE(slot.in_use) << "a buffer that was not posted";
    EXPECT_EQ(dto.status, DAT_DTO_SUCCESS);
    EXPECT_EQ(dto.ep_handle, message.pair->server.get());
    EXPECT_EQ(dto.transfered_length, message.length);
    EXPECT_TRUE(has_pattern(std::span(slot.memory).first(message.length), message.number)) << message.number;
    slot.in_use = slot.stale = false;
  }

  void reap() {
    if (unreaped_.empty()) return;
    const auto dto = expect_completion(server_.recv.get());
    check(dto, unreaped_.front());
    unreaped_.pop_front();
  }
  void reap_all() {
    while (!unreaped_.empty()) reap();
  }

  void set_low_watermark() {
    const DAT_COUNT watermark = count_up_to(room_ + 2);
    const DAT_RETURN rc = dat_srq_set_lw(srq_.get(), watermark);
    if (watermark > room_) {
      EXPECT_THAT(rc, HasType(DAT_INVALID_PARAMETER));  // SRQ-LW-11
      return;
    }
    ASSERT_THAT(rc, Succeeds());
    watermark_ = armed_ = watermark;
    if (available_ >= watermark) return;
    armed_ = 0;
    expect_low_watermark(server_, srq_);  // SRQ-LW-3
    ++fired_;
  }

  void resize() {
    const DAT_COUNT wanted = 1 + count_up_to(kMostRoom - 1);
    const DAT_RETURN rc = dat_srq_resize(srq_.get(), wanted);
    if (wanted < outstanding() || wanted < watermark_) {
      EXPECT_THAT(rc, HasType(DAT_INVALID_STATE));  // SRQ-RESIZE-3, SRQ-RESIZE-5
      return;
    }
    ASSERT_THAT(rc, Succeeds());
    const DAT_COUNT before = room_;
    room_ = srq_.size();
    EXPECT_GE(room_, wanted);                    // SRQ-RESIZE-1
    EXPECT_LE(room_, std::max(before, wanted));  // SRQ-RESIZE-8
  }

  void free_region() {
    Slot& slot = any_slot();
    if (!slot.region) return;
    ASSERT_THAT(slot.region->free(), Succeeds()) << "posted work does not keep an LMR in use";
    slot.region.reset();
    slot.stale = slot.in_use;
  }

  void register_again() {
    Slot& slot = any_slot();
    if (!slot.region) make_region(slot);
  }

  void connect() {
    Pair& pair = any_pair();
    if (pair.connected) return;
    connect_pair(server_, pair.server.get(), pair.client.get());
    pair.connected = true;
  }

  void disconnect() {
    Pair& pair = any_pair();
    if (!pair.connected || (waiting_ && waiting_->pair == &pair)) return;
    const Ep& ep = below(2) == 0 ? pair.server : pair.client;
    ASSERT_THAT(dat_ep_disconnect(ep.get(), below(2) == 0 ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG),
                Succeeds());
    expect_event(server_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    expect_event(client_.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
    // What has been received stays on the EVD, and what is on the queue stays there (SRQ-FLUSH-5). A reset may drop
    // the former (EP-RESET-2), so that is reaped before.
    reap_all();
    reset(pair);
  }

  static void reset(Pair& pair) {
    require(dat_ep_reset(pair.server.get()), "dat_ep_reset");
    require(dat_ep_reset(pair.client.get()), "dat_ep_reset");
    pair.connected = false;
  }

  void walk() {
    const std::initializer_list<RandomWalk::Call<SrqWalk>> calls = {
        {&SrqWalk::post, "post", 24},
        {&SrqWalk::send, "send", 16},
        {&SrqWalk::reap, "reap", 10},
        {&SrqWalk::set_low_watermark, "set low watermark", 4},
        {&SrqWalk::resize, "resize", 3},
        {&SrqWalk::free_region, "free region", 1},
        {&SrqWalk::register_again, "register again", 3},
        {&SrqWalk::connect, "connect", 4},
        {&SrqWalk::disconnect, "disconnect", 1},
    };
    walk_.go(*this, kSteps, calls, &SrqWalk::expect_agreement);
  }

  Side server_{GetParam()};
  Side client_{GetParam()};
  const bool messages_wait_ = messages_wait(server_.ia);
  const Lmr source_{client_.ia, client_.pz, kSlotBytes};
  std::array<Slot, kSlots> slots_;  // before the queue: it has gone when their memory goes
  Srq srq_{server_.ia, server_.pz, kMostRoom};
  std::array<Pair, kPairs> pairs_;

  DAT_COUNT room_ = srq_.size();
  DAT_COUNT available_ = 0;
  DAT_COUNT watermark_ = 0;  // as it was set last
  DAT_COUNT armed_ = 0;      // 0 once it has fired
  std::deque<Message> unreaped_;
  std::optional<Message> waiting_;  // for a buffer
  DAT_UINT64 last_number_ = 0;
  int sent_ = 0;
  int fired_ = 0;
  int broken_ = 0;
  RandomWalk walk_;
};

TEST_P(SrqWalk, EveryCallDoesWhatTheRulesSay) {
  // INV-1, INV-3, SRQ-ACC-4, SRQ-ACC-5, SRQ-ACC-6, SRQ-ACC-7, SRQ-ACC-9, SRQ-LW-2, SRQ-LW-3, SRQ-LW-4, SRQ-LW-5,
  // SRQ-LW-9, SRQ-LW-11, SRQ-RESIZE-2, SRQ-RESIZE-3, SRQ-RESIZE-4, SRQ-RESIZE-5, SRQ-RESIZE-13, SRQ-POST-15,
  // SRQ-POST-16, SRQ-POST-18, SRQ-POST-21, SRQ-POST-30, SRQ-POST-31, SRQ-ORD-1, SRQ-FLUSH-5, LMR-FREE-3, LMR-FREE-5
  SCOPED_TRACE(walk_.how_to_repeat());
  walk();
  RecordProperty("broken connections", broken_);
  if (HasFailure()) return;
  EXPECT_GT(sent_, 50) << "the walk has not come far";
  EXPECT_GT(fired_, 5);
}

ANYDAT_OVER_ALL_WIRES(SrqWalk);

}  // namespace
}  // namespace anydat::test
