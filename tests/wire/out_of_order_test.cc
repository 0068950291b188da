// SPDX-License-Identifier: BSD-3-Clause
// Messages whose segments overtake each other: what an endpoint holds for them, and that the program sees them once
// each, in the order in which they were sent.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "nic/soft/queue_pair.h"
#include "wire/out_of_order.h"

namespace anydat::test {

// For Google Test, which prints what differs.
inline std::ostream& operator<<(std::ostream& out, const nic::soft::iwarp::TerminateCode& code) {
  return out << nic::soft::iwarp::describe(code);
}

namespace {

using namespace nic::soft;
using iwarp::SegmentHeader;

// A message waits for a buffer there for a moment only.
class ImpatientOutOfOrder : public OutOfOrder {
 protected:
  ImpatientOutOfOrder() : OutOfOrder(impatient()) {}
  static Wire impatient() {
    Wire wire = local_wire();
    wire.env["DAT_RNR_TIMEOUT_MS"] = "20";
    return wire;
  }
};

// RECV-10: a later one, which has the last buffer, cannot complete before it, and is not waited for.
TEST_F(ImpatientOutOfOrder, AMessageWithoutABufferEndsTheConnectionAlsoWhereALaterOneHasIt) {
  begin(9);
  make_buffers(1);
  const Srq srq(server.ia, server.pz, 1);
  post_to_srq(srq, 0);
  const Connection pair = connect(srq);
  for (int number = 1; number <= 2; ++number) send(pair, 0, number, 40);
  network->deliver_where(is_message({2}));
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{1, 2}));
  network->deliver_where(is_message({1}));
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_completion(server.recv.get(), DAT_DTO_ERR_FLUSHED);
  network->run();
  EXPECT_TRUE(wait_event(client.connect.get()));
}

// EP-RQ-6, EP-RQ-7, EP-RQ-9: the example that the standard gives.
TEST_F(OutOfOrder, MessagesNineteenTwentyTwoAndTwentyThree) {
  begin(1);
  make_buffers(30);
  const Srq srq(server.ia, server.pz, 30);
  for (int i = 0; i < 30; ++i) post_to_srq(srq, i);
  const Connection pair = connect(srq);
  for (int number = 1; number <= 23; ++number) send(pair, 0, number, 100);

  network->deliver_where([](const SegmentHeader& header) { return header.sequence <= 18; });
  expect_messages(1, 18, 100);
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{0, 0}));
  EXPECT_EQ(srq.available(), 12);

  EXPECT_EQ(network->deliver_where(is_first_of({19, 22, 23})), 3u);
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{3, 5}));
  EXPECT_EQ(srq.available(), 9);
  EXPECT_EQ(srq.outstanding(), 12);

  // 22 and 23 are whole, and wait for 20 and 21, which have no buffer yet.
  network->deliver_where(is_message({22, 23}));
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{3, 5}));
  EXPECT_FALSE(poll_event(server.recv.get()));

  network->deliver_where(is_message({20, 21}));
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{5, 5}));
  EXPECT_FALSE(poll_event(server.recv.get()));

  network->deliver_where(is_message({19}));
  expect_messages(19, 23, 100);
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{0, 0}));
  disconnect(pair);
}

// EP-RQ-6: completion of the oldest makes the span shorter.
TEST_F(OutOfOrder, TheSpanBeginsBehindTheLastCompletion) {
  begin(2);
  make_buffers(10);
  const Srq srq(server.ia, server.pz, 10);
  for (int i = 0; i < 10; ++i) post_to_srq(srq, i);
  const Connection pair = connect(srq);
  for (int number = 1; number <= 6; ++number) send(pair, 0, number, 40);
  network->deliver_where(is_first_of({6}));
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{1, 6}));
  network->deliver_where(is_message({1, 2}));
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{1, 4}));
  network->deliver_where(is_message({4, 5}));
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{3, 4}));
  network->run();
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{0, 0}));
  expect_messages(1, 6, 40);
  disconnect(pair);
}

// EP-RQ-2, EP-RQ-9, EP-RQ-17: of an endpoint's own receives, each belongs to one message from the start.
TEST_F(OutOfOrder, AMessageComesIntoTheReceiveThatWasPostedForIt) {
  begin(3);
  make_buffers(8);
  const Connection pair = connect_plain();
  for (int i = 0; i < 8; ++i) post_to_ep(pair.server, i);
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{8, 8}));
  for (int number = 1; number <= 5; ++number) send(pair, 0, number, 60);
  network->deliver_where(is_message({4, 5}));
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{8, 8}));
  EXPECT_FALSE(poll_event(server.recv.get()));
  network->run();
  for (int number = 1; number <= 5; ++number) {
    const DAT_DTO_COMPLETION_EVENT_DATA dto = expect_completion(server.recv.get());
    EXPECT_EQ(dto.user_cookie.as_64, static_cast<DAT_UINT64>(number - 1));  // DTO-40
    EXPECT_TRUE(holds(dto.user_cookie, 0, number, 60));
  }
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{3, 3}));
  disconnect(pair);
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{0, 0}));  // EP-RQ-16
  expect_completions(server.recv.get(), 3, DAT_DTO_ERR_FLUSHED);
}

// SRQ-ARR-1, SRQ-ARR-3: those that came first may hold all buffers; the others wait, and go on with the next post.
TEST_F(OutOfOrder, MessagesThatFindTheQueueEmptyWait) {
  begin(4);
  make_buffers(4);
  const Srq srq(server.ia, server.pz, 4);
  post_to_srq(srq, 0);
  post_to_srq(srq, 1);
  const Connection pair = connect(srq);
  for (int number = 1; number <= 4; ++number) send(pair, 0, number, 50);
  network->deliver_where(is_message({3, 4}));
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{2, 4}));
  network->run();
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{2, 4}));
  EXPECT_FALSE(poll_event(server.recv.get()));
  post_to_srq(srq, 2);
  expect_messages(1, 1, 50);
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{2, 3}));
  post_to_srq(srq, 3);
  expect_messages(2, 4, 50);
  disconnect(pair);
}

TEST_F(OutOfOrder, AMessageOfNoBytesTakesItsTurn) {
  begin(5);
  make_buffers(3);
  const Srq srq(server.ia, server.pz, 3);
  for (int i = 0; i < 3; ++i) post_to_srq(srq, i);
  const Connection pair = connect(srq);
  send(pair, 0, 1, 20);
  send(pair, 0, 2, 0);
  send(pair, 0, 3, 20);
  network->deliver_where(is_message({2, 3}));
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{2, 3}));
  EXPECT_FALSE(poll_event(server.recv.get()));
  network->run();
  for (const std::size_t length : {20u, 0u, 20u}) {
    EXPECT_EQ(expect_completion(server.recv.get()).transfered_length, length);
  }
  disconnect(pair);
}

// EP-RQ-8: a peer that sends only high numbers takes a buffer with each, until the hard watermark (EP-WM-8) ends it.
TEST_F(OutOfOrder, TheHardWatermarkEndsAPeerThatTakesBuffersAndFinishesNothing) {
  begin(6);
  make_buffers(20);
  const Srq srq(server.ia, server.pz, 20);
  for (int i = 0; i < 20; ++i) post_to_srq(srq, i);
  const Connection hostile = connect(srq);
  const Connection other = connect(srq);
  require(dat_ep_set_watermark(hostile.server.get(), DAT_WATERMARK_INFINITE, 4), "dat_ep_set_watermark");
  for (int number = 1; number <= 10; ++number) send(hostile, 0, number, 50);
  network->deliver_where([](const SegmentHeader& header) { return header.sequence > 1 && header.sequence <= 5; });
  EXPECT_EQ(recv_query(hostile.server), (RecvInfo{4, 5}));
  network->deliver_where(is_first_of({9}));
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(recv_query(hostile.server), (RecvInfo{0, 0}));
  expect_completions(server.recv.get(), 5, DAT_DTO_ERR_FLUSHED);
  network->run();
  EXPECT_TRUE(wait_event(client.connect.get()));
  send(other, 0, 1, 50);
  network->run();
  expect_messages(1, 1, 50);
  disconnect(other);
}

// DTO-17 and its like: a message too long for its buffer fails, and what was sent before it is flushed first.
TEST_F(OutOfOrder, AMessageThatIsTooLongEndsTheConnectionBehindThoseBeforeIt) {
  begin(7, 64);
  make_buffers(4);
  const Srq srq(server.ia, server.pz, 4);
  for (int i = 0; i < 4; ++i) post_to_srq(srq, i);
  const Connection pair = connect(srq);
  for (int number = 1; number <= 3; ++number) send(pair, 0, number, 100);
  network->deliver_where(is_first_of({1, 3}));
  // More of message 2 than there is room for.
  SegmentHeader header;
  header.sequence = 2;
  header.offset = kBytes - 1;
  std::vector<std::byte> bytes(iwarp::kUntaggedHeaderBytes + 2);
  iwarp::write_segment_header(header, bytes);
  network->forge(queue_pair_of(pair.server), bytes);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_completion(server.recv.get(), DAT_DTO_ERR_FLUSHED);
  expect_completion(server.recv.get(), DAT_DTO_ERR_LOCAL_LENGTH);
  expect_completion(server.recv.get(), DAT_DTO_ERR_FLUSHED);
  network->run();
  EXPECT_TRUE(wait_event(client.connect.get()));
}

// ---- what no sender does

struct Forgery {
  const char* name;
  std::uint32_t sequence;
  std::uint32_t offset;
  std::size_t bytes;
  bool last;
  iwarp::TerminateCode answer;
};
std::ostream& operator<<(std::ostream& out, const Forgery& forgery) {
  return out << forgery.name;
}

class OutOfOrderForgery : public OutOfOrder, public testing::WithParamInterface<Forgery> {};

// Messages 1 and 2 are done; of 3 there are bytes 10 to 19 and 30 to 39, of 4 the last ten of forty.
TEST_P(OutOfOrderForgery, EndsItsConnectionAndNoOther) {
  begin(8);
  make_buffers(20);
  const Srq srq(server.ia, server.pz, 20);
  for (int i = 0; i < 20; ++i) post_to_srq(srq, i);
  const Connection hostile = connect(srq);
  const Connection other = connect(srq);
  SoftQueuePair& target = queue_pair_of(hostile.server);
  const auto forge = [&](std::uint32_t sequence, std::uint32_t offset, std::size_t count, bool last) {
    SegmentHeader header;
    header.sequence = sequence;
    header.offset = offset;
    header.last = last;
    std::vector<std::byte> bytes(iwarp::kUntaggedHeaderBytes + count);
    iwarp::write_segment_header(header, bytes);
    network->forge(target, bytes);
  };
  forge(1, 0, 10, true);
  forge(2, 0, 0, true);
  expect_completions(server.recv.get(), 2);
  forge(3, 10, 10, false);
  forge(3, 30, 10, false);
  forge(4, 30, 10, true);
  ASSERT_EQ(recv_query(hostile.server), (RecvInfo{2, 2}));
  ASSERT_FALSE(network->refusal(target));

  const Forgery& forgery = GetParam();
  forge(forgery.sequence, forgery.offset, forgery.bytes, forgery.last);
  EXPECT_EQ(network->refusal(target), forgery.answer);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(recv_query(hostile.server), (RecvInfo{0, 0}));
  while (const auto event = wait_event(server.recv.get(), quiet_time())) {
    EXPECT_EQ(event->event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
  }
  network->run();
  EXPECT_TRUE(wait_event(client.connect.get()));
  send(other, 0, 1, 50);
  network->run();
  expect_messages(1, 1, 50);
  disconnect(other);
}

constexpr std::uint32_t kAhead = 1024;
const Forgery kForgeries[] = {
    {"NumberZero", 0, 0, 1, true, iwarp::ddp_error::kSequenceRange},
    {"NumberThatIsDone", 2, 0, 1, true, iwarp::ddp_error::kSequenceRange},
    {"NumberTooFarAhead", 2 + kAhead + 1, 0, 1, false, iwarp::ddp_error::kSequenceRange},
    {"NumberFarBehind", 0x80000003, 0, 1, false, iwarp::ddp_error::kSequenceRange},
    {"SegmentThatCameBefore", 3, 10, 10, false, iwarp::ddp_error::kInvalidOffset},
    {"FirstByteThatCameBefore", 3, 19, 5, false, iwarp::ddp_error::kInvalidOffset},
    {"LastByteThatCameBefore", 3, 5, 6, false, iwarp::ddp_error::kInvalidOffset},
    {"SegmentAroundOneThatCame", 3, 5, 20, false, iwarp::ddp_error::kInvalidOffset},
    {"SegmentWithinOneThatCame", 3, 12, 3, false, iwarp::ddp_error::kInvalidOffset},
    {"SegmentOverTwoThatCame", 3, 15, 20, false, iwarp::ddp_error::kInvalidOffset},
    {"EndBeforeWhatCame", 3, 20, 5, true, iwarp::ddp_error::kInvalidOffset},
    {"SegmentBehindTheEnd", 4, 40, 1, false, iwarp::ddp_error::kInvalidOffset},
    {"SegmentOverTheEnd", 4, 25, 20, false, iwarp::ddp_error::kInvalidOffset},
    {"SecondEnd", 4, 0, 10, true, iwarp::ddp_error::kInvalidOffset},
    {"SecondEndOfNoBytes", 4, 40, 0, true, iwarp::ddp_error::kInvalidOffset},
};

std::string forgery_name(const testing::TestParamInfo<Forgery>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Segments, OutOfOrderForgery, testing::ValuesIn(kForgeries), forgery_name);

TEST_F(OutOfOrder, ACutGivesEveryBufferBackOnce) {
  begin(9);
  make_buffers(10);
  const Srq srq(server.ia, server.pz, 10);
  for (int i = 0; i < 10; ++i) post_to_srq(srq, i);
  const Connection pair = connect(srq);
  for (int number = 1; number <= 8; ++number) send(pair, 0, number, 50);
  network->deliver_where(is_first_of({2, 5, 8}));
  network->deliver_where(is_message({1}));
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{3, 7}));
  network->cut(queue_pair_of(pair.server));
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_completion(server.recv.get());
  expect_completions(server.recv.get(), 3, DAT_DTO_ERR_FLUSHED);
  EXPECT_FALSE(poll_event(server.recv.get()));
  EXPECT_EQ(recv_query(pair.server), (RecvInfo{0, 0}));
  EXPECT_EQ(srq.available(), 6);
  EXPECT_EQ(srq.outstanding(), 6);
}

TEST_F(OutOfOrder, ReceivesComeBackInTheirOrderWhicheverMessagesHadBegun) {
  // DTO-41
  begin(11);
  make_buffers(6);
  const Connection pair = connect_plain();
  for (int i = 0; i < 6; ++i) post_to_ep(pair.server, i);
  for (int number = 1; number <= 4; ++number) send(pair, 0, number, 50);
  network->deliver_where(is_first_of({4, 2}));
  network->cut(queue_pair_of(pair.server));
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  for (DAT_UINT64 i = 0; i < 6; ++i) {
    EXPECT_EQ(expect_completion(server.recv.get(), DAT_DTO_ERR_FLUSHED).user_cookie.as_64, i);
  }
  EXPECT_FALSE(poll_event(server.recv.get()));
}

TEST_F(OutOfOrder, APeerThatHasLeftInOrderAndIsLostThenHasNotBrokenTheConnection) {
  // EP-DISC-4, EVT-24
  begin(12);
  make_buffers(1);
  const Srq srq(server.ia, server.pz, 1);  // and no buffer on it, so that the message keeps the connection up
  const Connection pair = connect(srq);
  send(pair, 0, 1, 50);
  network->run();
  ASSERT_EQ(dat_ep_disconnect(pair.client.get(), DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
  network->run();
  EXPECT_EQ(pair.server.state(), DAT_EP_STATE_CONNECTED);
  network->cut(queue_pair_of(pair.server));
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_event(client.connect.get(), DAT_CONNECTION_EVENT_DISCONNECTED);
}

TEST_F(OutOfOrder, WritesComeInAnyOrder) {
  begin(10, 3);
  make_buffers(1);
  const Connection pair = connect_plain();
  for (std::size_t i = 0; i < kBytes; ++i) outgoing.bytes()[i] = byte_of(1, 2, i);
  DAT_LMR_TRIPLET from = outgoing.triplet();
  DAT_RMR_TRIPLET to = memory->remote(0, kBytes);
  require(dat_ep_post_rdma_write(pair.client.get(), 1, &from, {}, &to, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_rdma_write");
  network->run();
  EXPECT_TRUE(std::ranges::equal(memory->bytes(), outgoing.bytes()));
  disconnect(pair);
}

}  // namespace
}  // namespace anydat::test
