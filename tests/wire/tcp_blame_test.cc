// SPDX-License-Identifier: BSD-3-Clause
// A host ends the connection and names a segment: the status of its refusal is that of the request which sent it, and
// of no other. DTO-40, STAT-9.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "wire/tcp_test.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

class TcpBlame : public TcpTest {
 protected:
  static constexpr std::size_t kBytes = 16;

  void begin(const MpaPeer::Greeting& greeting) {
    peer_.emplace(target.port());
    ep_ = meet(*peer_, greeting);
    peer_->send_message(hex("'now you may send'"));
    target.expect_message(ep_);
  }
  // One that says how many Reads it takes is asked after each Write whether it was good.
  void begin() { begin({.revision = 2, .enhanced = Enhanced{.ird = 8, .ord = 8}}); }

  void post(DAT_RETURN (*call)(DAT_EP_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET*, DAT_DTO_COOKIE, const DAT_RMR_TRIPLET*,
                               DAT_COMPLETION_FLAGS),
            std::uint64_t number) {
    DAT_LMR_TRIPLET local = memory_.triplet(0, kBytes);
    DAT_RMR_TRIPLET remote{};
    remote.rmr_context = 5;
    remote.target_address = number * kBytes;
    remote.segment_length = kBytes;
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = number;
    require(call(ep_.get(), 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG), "the post");
  }
  void write(std::uint64_t number) { post(&TcpBlame::rdma_write, number); }
  void read(std::uint64_t number) { post(&TcpBlame::rdma_read, number); }
  static DAT_RETURN rdma_write(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET* local, DAT_DTO_COOKIE cookie,
                               const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
    return dat_ep_post_rdma_write(ep, count, local, cookie, remote, flags);
  }
  static DAT_RETURN rdma_read(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET* local, DAT_DTO_COOKIE cookie,
                              const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
    return dat_ep_post_rdma_read(ep, count, local, cookie, remote, flags);
  }

  std::optional<SegmentHeader> hear(Opcode opcode) {
    while (const auto segment = peer_->hear_segment()) {
      if (segment->header.opcode == opcode) return segment->header;
    }
    ADD_FAILURE() << "it has not come";
    return std::nullopt;
  }

  void refuse(const SegmentHeader& offender) {
    std::array<std::byte, kSegmentHeaderBytesMax> bytes;
    const std::size_t count = write_segment_header(offender, bytes);
    Terminate message;
    message.code = rdmap_error::kAccessRights;
    message.segment_header = std::span(bytes).first(count);
    Bytes words(kTerminateBytesMax);
    words.resize(write_terminate(message, words));
    peer_->send_terminate(words);
  }

  void expect_statuses(const std::vector<DAT_DTO_COMPLETION_STATUS>& statuses) {
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      SCOPED_TRACE(i + 1);
      EXPECT_EQ(expect_completion(target.side().request.get(), statuses[i]).user_cookie.as_64, i + 1);
    }
    EXPECT_EQ(target.expect_end(ep_), DAT_CONNECTION_EVENT_BROKEN);
  }

  std::optional<MpaPeer> peer_;
  Ep ep_;
  Lmr memory_{target.side().ia, target.side().pz, kBytes};
};

TEST_F(TcpBlame, IsOfTheReadThatIsNamed) {
  begin();
  write(1);
  const auto own = hear(Opcode::read_request);
  write(2);
  read(3);
  read(4);
  hear(Opcode::read_request);
  const auto last = hear(Opcode::read_request);
  ASSERT_TRUE(own && last);
  refuse(*last);
  expect_statuses({DAT_DTO_SUCCESS, DAT_DTO_SUCCESS, DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_REMOTE_ACCESS});
}

TEST_F(TcpBlame, IsOfTheWriteThatIsNamed) {
  begin();
  read(1);
  write(2);
  write(3);
  hear(Opcode::write);
  const auto second = hear(Opcode::write);
  ASSERT_TRUE(second);
  refuse(*second);
  expect_statuses({DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_REMOTE_ACCESS});
}

// The Read of length 0 behind a Write is none of the program's; what it was to tell of is not known to be done.
TEST_F(TcpBlame, IsOfNobodyIfAReadOfTheLibraryIsNamed) {
  begin();
  write(1);
  const auto own = hear(Opcode::read_request);
  write(2);
  read(3);
  hear(Opcode::read_request);
  ASSERT_TRUE(own);
  refuse(*own);
  expect_statuses({DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_FLUSHED});
}

TEST_F(TcpBlame, IsOfTheOldestIfNothingIsNamedThatThereIs) {
  begin();
  read(1);
  read(2);
  hear(Opcode::read_request);
  auto second = hear(Opcode::read_request);
  ASSERT_TRUE(second);
  second->sequence += 70;
  refuse(*second);
  expect_statuses({DAT_DTO_ERR_REMOTE_ACCESS, DAT_DTO_ERR_FLUSHED});
}

// A host of the older kind is not asked whether a Write was good.
TEST_F(TcpBlame, IsOfNobodyIfTheWriteThatIsNamedHasCompleted) {
  begin({});
  write(1);
  read(2);
  const auto first = hear(Opcode::write);
  hear(Opcode::read_request);
  ASSERT_TRUE(first);
  refuse(*first);
  expect_statuses({DAT_DTO_SUCCESS, DAT_DTO_ERR_FLUSHED});
}

}  // namespace
}  // namespace anydat::test
