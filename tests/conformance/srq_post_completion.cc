// SPDX-License-Identifier: BSD-3-Clause
// How a buffer posted to an SRQ completes: chapter 1.6 of the rules.
#include <algorithm>

#include "srq_fixture.h"
#include "support/properties.h"
#include "support/waiter.h"

namespace anydat::test {
namespace {

class SrqPostCompletion : public SrqTest {
 protected:
  // A connection whose server endpoint has a recv EVD of its own and these Recv Completion Flags.
  Connection connect_with_flags(const Srq& srq, const Evd& recv, DAT_COMPLETION_FLAGS flags) {
    DAT_EP_ATTR attr = default_srq_ep_attr();
    attr.recv_completion_flags = flags;
    const EpEvds evds{.recv = recv.get(), .request = server.request.get(), .connect = server.connect.get()};
    Connection connection{.server = Ep(server.ia, server.pz, evds, srq, attr), .client = Ep(client)};
    connect_pair(server, connection.server.get(), connection.client.get());
    return connection;
  }
};

TEST_P(SrqPostCompletion, SegmentsFillInVectorOrderAndTheRestIsLeftAlone) {
  // SRQ-POST-7, SRQ-POST-8
  const Srq srq(server.ia, server.pz, 4, 4);
  const Connection connection = connect_pair(server, srq, client);
  const auto memory = buffers.lmr().bytes().first(400);
  // In memory order 0..3 the vector uses 2, 0, 3, 1: order is that of the vector, not of the addresses.
  struct Part {
    std::size_t offset, length;
  };
  const std::vector<Part> parts{{.offset = 200, .length = 10},
                                {.offset = 0, .length = 20},
                                {.offset = 300, .length = 50},
                                {.offset = 100, .length = 30}};
  for (const std::size_t length : {0, 5, 10, 29, 30, 31, 79, 80, 81, 110}) {
    std::vector<DAT_LMR_TRIPLET> iov;
    for (const Part& part : parts) {
      iov.push_back(buffers.lmr().triplet(part.offset, part.length));
    }
    fill_pattern(memory, 1000);
    ASSERT_THAT(dat_srq_post_recv(srq.get(), 4, iov.data(), cookie(0)), Succeeds());
    ASSERT_EQ(pass_message(connection, 7, length).transfered_length, length);

    std::vector<std::byte> expected(memory.size());
    fill_pattern(expected, 1000);
    std::vector<std::byte> message(length);
    fill_pattern(message, 7);
    std::size_t done = 0;
    for (const Part& part : parts) {
      const std::size_t here = std::min(part.length, length - done);
      std::copy_n(message.begin() + static_cast<std::ptrdiff_t>(done), here,
                  expected.begin() + static_cast<std::ptrdiff_t>(part.offset));
      done += here;
    }
    EXPECT_TRUE(std::ranges::equal(memory, expected)) << "message of " << length << " bytes";
  }
}

TEST_P(SrqPostCompletion, SmallerMessageReportsItsOwnLength) {
  // SRQ-POST-11
  const Srq srq(server.ia, server.pz, 4);
  const Connection connection = connect_pair(server, srq, client);
  for (const std::size_t length : {0, 1, 255, 256}) {
    buffers.post(srq, 0, 1);
    fill_pattern(buffers[0], 99);
    EXPECT_EQ(pass_message(connection, 4, length).transfered_length, length);
    EXPECT_TRUE(has_pattern(buffers[0].first(length), 4));
  }
}

TEST_P(SrqPostCompletion, LargerMessageFailsTheBufferAndTheTakingEndpoint) {
  // SRQ-POST-12, SRQ-POST-25, SRQ-ST-6
  const Srq srq(server.ia, server.pz, 4);
  const Connection connection = connect_pair(server, srq, client);
  const Connection bystander = connect_pair(server, srq, client);
  fill_pattern(buffers.lmr().bytes(), 99);
  DAT_LMR_TRIPLET segment = buffers.lmr().triplet(kBytes, 16);
  ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &segment, cookie(1)), Succeeds());
  send(connection.client, 4, 17);
  const auto dto = expect_completion(server.recv.get(), DAT_DTO_ERR_LOCAL_LENGTH);
  EXPECT_EQ(dto.ep_handle, connection.server.get());
  EXPECT_EQ(dto.user_cookie.as_64, 1u);
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_EQ(connection.server.state(), DAT_EP_STATE_DISCONNECTED);
  // What the buffer holds is undefined; what lies around it is not.
  std::vector<std::byte> around(buffers.lmr().bytes().size());
  fill_pattern(around, 99);
  const auto memory = buffers.lmr().bytes();
  EXPECT_TRUE(std::ranges::equal(memory.first(kBytes), std::span(around).first(kBytes)));
  EXPECT_TRUE(std::ranges::equal(memory.subspan(kBytes + 16), std::span(around).subspan(kBytes + 16)));
  EXPECT_EQ(srq.query().srq_state, DAT_SRQ_STATE_OPERATIONAL);
  expect_event(client.request.get(), DAT_DTO_COMPLETION_EVENT);  // the failed Send, with whatever status
  buffers.post(srq, 0, 1);
  pass_message(bystander);
}

TEST_P(SrqPostCompletion, MemoryFreedAfterThePostFailsWhenAMessageComes) {
  // SRQ-POST-18, LMR-FREE-5
  const Srq srq(server.ia, server.pz, 4);
  const Connection connection = connect_pair(server, srq, client);
  Lmr memory(server.ia, server.pz, kBytes);
  DAT_LMR_TRIPLET segment = memory.triplet();
  ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &segment, cookie(6)), Succeeds());
  ASSERT_THAT(memory.free(), Succeeds()) << "posted work does not keep an LMR in use";
  fill_pattern(memory.bytes(), 99);
  EXPECT_EQ(srq.available(), 1);
  send(connection.client, 4);
  const auto dto = expect_completion(server.recv.get(), DAT_DTO_ERR_LOCAL_PROTECTION);
  EXPECT_EQ(dto.user_cookie.as_64, 6u);
  EXPECT_EQ(dto.ep_handle, connection.server.get());
  expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  EXPECT_TRUE(has_pattern(memory.bytes(), 99)) << "freed memory was written to";
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 0}));
}

TEST_P(SrqPostCompletion, CookieComesBackWhateverItIs) {
  // SRQ-POST-19, TYPE-5
  const Srq srq(server.ia, server.pz, 8);
  const Connection connection = connect_pair(server, srq, client);
  const std::vector<DAT_UINT64> values{0, 5, 5, ~DAT_UINT64{0}, 0x8000000000000001u, 0x0123456789ABCDEFu};
  DAT_LMR_TRIPLET segment = buffers.triplet(0);
  for (const DAT_UINT64 value : values) {
    ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &segment, cookie(value)), Succeeds());
  }
  std::vector<DAT_UINT64> returned;
  for (std::size_t i = 0; i < values.size(); ++i) {
    returned.push_back(pass_message(connection).user_cookie.as_64);
  }
  EXPECT_THAT(returned, testing::UnorderedElementsAreArray(values));
}

TEST_P(SrqPostCompletion, EventIsADtoCompletionOfTheTakingEndpoint) {
  // SRQ-POST-20
  const Srq srq(server.ia, server.pz, 4);
  const Evd recv(server.ia, DAT_EVD_DTO_FLAG);
  const Connection other = connect_pair(server, srq, client);
  const Connection taking = connect_with_flags(srq, recv, DAT_COMPLETION_DEFAULT_FLAG);
  buffers.post(srq, 3, 1);
  send_and_wait(taking.client, 1);
  const DAT_EVENT event = expect_event(recv.get(), DAT_DTO_COMPLETION_EVENT);
  EXPECT_EQ(event.evd_handle, recv.get());
  EXPECT_EQ(event.event_data.dto_completion_event_data.ep_handle, taking.server.get());
  EXPECT_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
  expect_no_event(server.recv.get());
}

TEST_P(SrqPostCompletion, EachBufferCompletesOnce) {
  // SRQ-POST-21, INV-3
  const Srq srq(server.ia, server.pz, 20);
  const Connection first = connect_pair(server, srq, client);
  const Connection second = connect_pair(server, srq, client);
  buffers.post(srq, 0, 20);
  std::vector<DAT_UINT64> returned;
  for (int i = 0; i < 10; ++i) {
    returned.push_back(pass_message(first).user_cookie.as_64);
    returned.push_back(pass_message(second).user_cookie.as_64);
  }
  std::ranges::sort(returned);
  for (DAT_UINT64 i = 0; i < 20; ++i) {
    EXPECT_EQ(returned[i], i);
  }
  expect_no_event(server.recv.get());
}

TEST_P(SrqPostCompletion, NotifiesUnderUnsignalledThresholdAndDefaultFlags) {
  // SRQ-POST-22, SRQ-POST-23, EP-CSRQ-21
  for (const DAT_COMPLETION_FLAGS flags :
       {DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG}) {
    const Srq srq(server.ia, server.pz, 4);
    const Evd recv(server.ia, DAT_EVD_DTO_FLAG);
    const Connection connection = connect_with_flags(srq, recv, flags);
    buffers.post(srq, 0, 1);
    Waiter waiter(recv.get());
    send_and_wait(connection.client, 1);
    const auto result = waiter.result();
    EXPECT_THAT(result.rc, Succeeds()) << "flags " << flags;
    EXPECT_EQ(result.event.event_number, DAT_DTO_COMPLETION_EVENT);
  }
}

TEST_P(SrqPostCompletion, UnderSolicitedWaitTheSenderDecidesWhoIsNotified) {
  ANYDAT_NEEDS_SOLICITED(server.ia)
  // SRQ-POST-23, EP-CSRQ-29
  const Srq srq(server.ia, server.pz, 4);
  const Evd recv(server.ia, DAT_EVD_DTO_FLAG);
  const Connection connection = connect_with_flags(srq, recv, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  buffers.post(srq, 0, 2);
  Waiter waiter(recv.get());
  send(connection.client, 1);
  expect_completed(srq, connection.server, 1);
  EXPECT_TRUE(waiter.stays_blocked()) << "woken by a Send without the flag";
  send(connection.client, 2, 32, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
  const auto result = waiter.result();
  ASSERT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.more, 1) << "both completions are on the EVD by then";
  EXPECT_TRUE(has_pattern(
      buffers[static_cast<int>(result.event.event_data.dto_completion_event_data.user_cookie.as_64)].first(32), 1));
}

TEST_P(SrqPostCompletion, UnderThresholdTheWaiterDecidesWhenItWakes) {
  // SRQ-POST-24, EP-CSRQ-29
  const Srq srq(server.ia, server.pz, 4);
  const Evd recv(server.ia, DAT_EVD_DTO_FLAG);
  const Connection connection = connect_with_flags(srq, recv, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
  buffers.post(srq, 0, 3);
  Waiter waiter(recv.get(), 3);
  send(connection.client, 1);
  send(connection.client, 2);
  expect_completed(srq, connection.server, 1);
  EXPECT_TRUE(waiter.stays_blocked()) << "two events are not three";
  send(connection.client, 3);
  const auto result = waiter.result();
  ASSERT_THAT(result.rc, Succeeds());
  EXPECT_EQ(result.more, 2);
  EXPECT_EQ(counts(srq), (Counts{.available = 0, .outstanding = 2})) << "one event was reaped";
}

TEST_P(SrqPostCompletion, AnyAlignmentAndLengthWorks) {
  // SRQ-POST-29
  EXPECT_EQ(DAT_OPTIMAL_ALIGNMENT % server.ia.provider().optimal_buffer_alignment, 0);
  const Srq srq(server.ia, server.pz, 4);
  const Connection connection = connect_pair(server, srq, client);
  for (const std::size_t offset : {0, 1, 2, 3, 5, 7, 63, 65}) {
    for (const std::size_t length : {1, 2, 3, 7, 63, 64, 65, 191}) {
      DAT_LMR_TRIPLET segment = buffers.lmr().triplet(offset, length);
      ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &segment, cookie(0)), Succeeds());
      const DAT_UINT64 number = offset * 256 + length;
      pass_message(connection, number, length);
      EXPECT_TRUE(has_pattern(buffers.lmr().bytes().subspan(offset, length), number)) << offset << ", " << length;
    }
  }
}

TEST_P(SrqPostCompletion, CompletesAsABufferOfAPlainEndpointDoes) {
  // SRQ-POST-32
  const Srq srq(server.ia, server.pz, 4);
  const Connection with_srq = connect_pair(server, srq, client);
  const Connection plain = connect_pair(server, client);
  for (const std::size_t length : {0, 32, 256}) {
    buffers.post(srq, 1, 1);
    buffers.post(plain.server, 1, 1);
    send_and_wait(with_srq.client, 8, length);
    const DAT_EVENT a = expect_event(server.recv.get(), DAT_DTO_COMPLETION_EVENT);
    send_and_wait(plain.client, 8, length);
    const DAT_EVENT b = expect_event(server.recv.get(), DAT_DTO_COMPLETION_EVENT);
    const auto& of_srq = a.event_data.dto_completion_event_data;
    const auto& of_plain = b.event_data.dto_completion_event_data;
    EXPECT_EQ(of_srq.status, of_plain.status);
    EXPECT_EQ(of_srq.transfered_length, of_plain.transfered_length);
    EXPECT_EQ(of_srq.user_cookie.as_64, of_plain.user_cookie.as_64);
  }
  // And a message too long for either.
  for (const bool use_srq : {true, false}) {
    DAT_LMR_TRIPLET tiny = buffers.lmr().triplet(0, 4);
    if (use_srq) {
      ASSERT_THAT(dat_srq_post_recv(srq.get(), 1, &tiny, cookie(2)), Succeeds());
    } else {
      ASSERT_THAT(dat_ep_post_recv(plain.server.get(), 1, &tiny, cookie(2), DAT_COMPLETION_DEFAULT_FLAG), Succeeds());
    }
    send(use_srq ? with_srq.client : plain.client, 9, 8);
    EXPECT_EQ(expect_completion(server.recv.get(), DAT_DTO_ERR_LOCAL_LENGTH).user_cookie.as_64, 2u);
    expect_event(server.connect.get(), DAT_CONNECTION_EVENT_BROKEN);
  }
}

ANYDAT_OVER_ALL_WIRES(SrqPostCompletion);

}  // namespace
}  // namespace anydat::test
