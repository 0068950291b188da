// SPDX-License-Identifier: BSD-3-Clause
// Connections that end in order, at both sides, while what was sent waits for memory of the receiver: it is delivered.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "absent_buffers.h"
#include "absent_memory.h"
#include "support/dat_fixture.h"

namespace anydat::test {
namespace {

class AbsentEnds : public AbsentBuffersOfAnother {
 protected:
  static constexpr std::size_t kSmall = 64;
  static constexpr std::size_t kLarge = 16 * kPage;
  static constexpr std::size_t kElsewhere = kBytes / 2;

  void end_in_order(const Ep& ep) { ASSERT_THAT(dat_ep_disconnect(ep.get(), DAT_CLOSE_GRACEFUL_FLAG), Succeeds()); }
  // Something that this side has to send as long as the other one has no receive for it.
  void stay_busy() {
    DAT_LMR_TRIPLET source = here_->triplet(kElsewhere, kBytes / 4);
    require(dat_ep_post_send(connection_->server.get(), 1, &source, {}, DAT_COMPLETION_DEFAULT_FLAG),
            "dat_ep_post_send");
  }
  // A long one is not done at its sender, either, whose end waits for it.
  void lose_no_long_message(const Ep& first, const Ep& second) {
    AbsentMemory absent(memory_.first(kPage));
    post(*connection_, here_->triplet(0, kLarge), kLarge);
    expect_no_event(side_->recv.get());
    end_in_order(first);
    end_in_order(second);
    expect_no_event(side_->connect.get());
    absent.fill(there_->bytes().first(kPage));
    expect_messages_and_end(std::vector<std::size_t>{0}, kLarge);
    expect_completion(other_side_->request.get());
    expect_event(other_side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  }
  // An end that waited for what is sent when it has been asked for would come, too, but not before two seconds have
  // gone by (EP-DISC-18).
  void end_without(std::size_t later) {
    AbsentMemory absent(memory_.first(kPage));
    const AbsentMemory for_ever(memory_.subspan(kElsewhere, kPage));
    post(*connection_, here_->triplet(0, kLarge), kLarge);
    expect_no_event(side_->recv.get());
    end_in_order(connection_->server);
    post(*connection_, here_->triplet(kElsewhere, later), later);
    expect_no_event(side_->connect.get());
    const auto begun = std::chrono::steady_clock::now();
    absent.fill(there_->bytes().first(kPage));
    expect_messages_and_end(std::vector<std::size_t>{0}, kLarge);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
    expect_completion(side_->recv.get(), DAT_DTO_ERR_FLUSHED);
  }
  // All that was sent is there, and the end comes behind it.
  void expect_messages_and_end(std::span<const std::size_t> offsets, std::size_t bytes) {
    for (const std::size_t offset : offsets) {
      EXPECT_EQ(expect_completion(side_->recv.get()).transfered_length, bytes);
      EXPECT_TRUE(std::ranges::equal(memory_.subspan(offset, bytes), there_->bytes().first(bytes)));
    }
    expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  }
};

// EP-DISC-4, EP-DISC-17: the sender first.
TEST_P(AbsentEnds, OfTheSenderAndThenOfTheReceiverLoseNoMessage) {
  AbsentMemory absent(memory_.first(kPage));
  post(*connection_, here_->triplet(0, kSmall), kSmall);
  post(*connection_, here_->triplet(kElsewhere, kSmall), kSmall);
  for (int i = 0; i < 2; ++i) expect_completion(other_side_->request.get());
  end_in_order(connection_->client);
  expect_event(other_side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_no_event(side_->connect.get());
  end_in_order(connection_->server);
  EXPECT_EQ(connection_->server.state(), DAT_EP_STATE_DISCONNECT_PENDING);
  expect_no_event(side_->connect.get());
  absent.fill(there_->bytes().first(kPage));
  expect_messages_and_end(std::vector<std::size_t>{0, kElsewhere}, kSmall);
}

// The receiver has nothing to send, and its end waits for the messages all the same.
TEST_P(AbsentEnds, OfTheReceiverAndThenOfTheSenderLoseNoMessage) {
  AbsentMemory absent(memory_.first(kPage));
  post(*connection_, here_->triplet(0, kSmall), kSmall);
  post(*connection_, here_->triplet(kElsewhere, kSmall), kSmall);
  for (int i = 0; i < 2; ++i) expect_completion(other_side_->request.get());
  expect_no_event(side_->recv.get());
  end_in_order(connection_->server);
  EXPECT_EQ(connection_->server.state(), DAT_EP_STATE_DISCONNECT_PENDING);
  expect_no_event(side_->connect.get());
  end_in_order(connection_->client);
  expect_event(other_side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  absent.fill(there_->bytes().first(kPage));
  expect_messages_and_end(std::vector<std::size_t>{0, kElsewhere}, kSmall);
}

// What the receiver still has to send when the sender has gone is flushed.
TEST_P(AbsentEnds, OfAReceiverThatHasSomethingToSendLoseNoMessage) {
  AbsentMemory absent(memory_.first(kPage));
  post(*connection_, here_->triplet(0, kSmall), kSmall);
  expect_completion(other_side_->request.get());
  stay_busy();
  end_in_order(connection_->server);
  expect_no_event(side_->connect.get());
  end_in_order(connection_->client);
  expect_event(other_side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  const std::vector<std::byte> sent(there_->bytes().begin(), there_->bytes().begin() + kPage);
  expect_no_event(side_->connect.get());
  absent.fill(sent);
  expect_messages_and_end(std::vector<std::size_t>{0}, kSmall);
  expect_completion(side_->request.get(), DAT_DTO_ERR_FLUSHED);
}

TEST_P(AbsentEnds, OfTheSenderAndThenOfTheReceiverLoseNoLongMessage) {
  lose_no_long_message(connection_->client, connection_->server);
}

TEST_P(AbsentEnds, OfTheReceiverAndThenOfTheSenderLoseNoLongMessage) {
  lose_no_long_message(connection_->server, connection_->client);
}

// EP-DISC-18: nor do they wait for ever.
TEST_P(AbsentEnds, DoNotWaitForPagesThatNeverCome) {
  const AbsentMemory absent(memory_.first(kPage));
  post(*connection_, here_->triplet(0, kSmall), kSmall);
  expect_completion(other_side_->request.get());
  expect_no_event(side_->recv.get());
  end_in_order(connection_->server);
  expect_event(side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_completion(side_->recv.get(), DAT_DTO_ERR_FLUSHED);
  expect_event(other_side_->connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

// A peer that goes on sending does not hold the end up: what is awaited was there when it was asked for.
TEST_P(AbsentEnds, DoNotWaitForWhatIsSentLater) {
  end_without(kSmall);
}

TEST_P(AbsentEnds, DoNotWaitForWhatIsLongAndSentLater) {
  end_without(kLarge);
}

INSTANTIATE_TEST_SUITE_P(Wires, AbsentEnds, testing::ValuesIn(all_wires()), wire_name);

}  // namespace
}  // namespace anydat::test
