// SPDX-License-Identifier: BSD-3-Clause
// TCP has no frames: what a peer sends may come in pieces that end anywhere. A recorded stream of Sends, Writes and a
// Read is delivered in the same way wherever it is cut, and each message as soon as its last byte is there.
//
// ANYDAT_TEST_SEED: repeats the cuts that are made by chance.
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "nic/soft/queue_pair.h"
#include "nic/soft/wire/iwarp/stream.h"
#include "process/seed.h"
#include "wire/mpa_peer.h"
#include "wire/seam.h"
#include "wire/tcp_target.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;
namespace access = nic::access;

// Two peers' words would differ in their numbers, keys and addresses alone, which the peer has from the connection.
class Recording {
 public:
  struct Message {
    Bytes payload;
    bool solicited;
    std::size_t end;  // where in the stream its last frame is over
  };

  explicit Recording(const MpaPeer& peer, unsigned round) : peer_(peer), salt_(round * 41) {}

  // A Send in segments of at most that many bytes.
  void send(std::uint32_t sequence, std::size_t bytes, std::size_t segment_bytes, bool solicited = false) {
    const Bytes payload = payload_of(bytes);
    SegmentHeader header;
    header.opcode = solicited ? Opcode::send_solicited : Opcode::send;
    header.sequence = sequence;
    in_segments(header, payload, segment_bytes);
    sends_.push_back({payload, solicited, bytes_.size()});
  }
  Bytes write(std::uint32_t stag, std::uint64_t address, std::size_t bytes, std::size_t segment_bytes) {
    const Bytes payload = payload_of(bytes);
    SegmentHeader header;
    header.opcode = Opcode::write;
    header.stag = stag;
    header.tagged_offset = address;
    in_segments(header, payload, segment_bytes);
    return payload;
  }
  void ask_read(std::uint32_t sequence, const ReadRequest& request) {
    SegmentHeader header;
    header.opcode = Opcode::read_request;
    header.sequence = sequence;
    Bytes payload(kReadRequestBytes);
    write_read_request(request, payload);
    in_segments(header, payload, payload.size());
  }

  const Bytes& bytes() const { return bytes_; }
  const std::vector<Message>& sends() const { return sends_; }
  // Where a part of a frame begins.
  const std::set<std::size_t>& borders() const { return borders_; }

 private:
  Bytes payload_of(std::size_t bytes) {
    Bytes payload(bytes);
    for (std::byte& byte : payload) byte = static_cast<std::byte>(salt_ = salt_ * 1103515245 + 12345, salt_ >> 16);
    return payload;
  }
  void in_segments(SegmentHeader header, const Bytes& payload, std::size_t segment_bytes) {
    std::size_t at = 0;
    do {
      const std::size_t part = std::min(segment_bytes, payload.size() - at);
      header.last = at + part == payload.size();
      const auto begin = payload.begin() + static_cast<std::ptrdiff_t>(at);
      const Bytes frame =
          peer_.frame(MpaPeer::segment(header, Bytes(begin, begin + static_cast<std::ptrdiff_t>(part))));
      const std::size_t payload_at = bytes_.size() + kFrameLengthBytes + segment_header_bytes(header.opcode);
      borders_.insert({bytes_.size(), payload_at, payload_at + part, bytes_.size() + frame.size()});
      bytes_ = std::move(bytes_) + frame;
      at += part;
      header.offset += is_tagged(header.opcode) ? 0 : static_cast<std::uint32_t>(part);
      header.tagged_offset += is_tagged(header.opcode) ? part : 0;
    } while (at < payload.size());
  }

  const MpaPeer& peer_;
  unsigned salt_;
  Bytes bytes_;
  std::vector<Message> sends_;
  std::set<std::size_t> borders_;
};

// As <linux/tcp.h> goes on, which cannot be had beside <netinet/tcp.h>.
struct MoreOfTcp {
  tcp_info known;
  std::uint64_t pacing_rate;
  std::uint64_t max_pacing_rate;
  std::uint64_t bytes_acked;
  std::uint64_t bytes_received;
};
static_assert(offsetof(MoreOfTcp, bytes_received) == 128);

constexpr std::size_t kSlotBytes = 32 << 10;  // of a receive buffer
constexpr std::size_t kSlots = 8;
constexpr std::size_t kBytesOfMemory = 16 << 10;
constexpr std::size_t kReadAt = 40, kReadBytes = 10, kWrittenAt = 100;
constexpr std::uint32_t kSinkOfRead = 0x1234;
constexpr std::uint64_t kOffsetOfSink = 0x500;

class TcpSplits : public testing::TestWithParam<bool> {
 protected:
  TcpSplits() {
    peer_.greet({.crc = GetParam()});
    EXPECT_TRUE(service_.answer([this](nic::ConnectionRequest& request) { request.accept(*end_, {}); }));
    EXPECT_TRUE(end_.wait_for([this] { return end_.established; }));
    EXPECT_TRUE(peer_.hear_answer());
    for (std::size_t i = 0; i < kBytesOfMemory; ++i) memory_.data()[i] = static_cast<std::byte>(i * 5 + 3);
    for (std::size_t i = 0; i < kSlots; ++i) post(i);
  }

  // Sends of nothing, of less than a word, and in segments; a Write, and a Read, among them.
  Recording small(unsigned round) {
    Recording recording(peer_, round);
    recording.send(next_send_++, 5, kSegmentBytesMax);
    recording.send(next_send_++, 0, kSegmentBytesMax);
    written_ = recording.write(memory_.remote_key(), memory_.address() + kWrittenAt, 37, 20);
    recording.send(next_send_++, 30, 11, true);
    recording.send(next_send_++, 64, kSegmentBytesMax);
    recording.ask_read(next_read_++,
                       {kSinkOfRead, kOffsetOfSink, kReadBytes, memory_.remote_key(), memory_.address() + kReadAt});
    recording.send(next_send_++, 1, kSegmentBytesMax, true);
    recording.send(next_send_++, 70, 50);
    return recording;
  }
  // Those whose payload is read straight to its place, and others behind them.
  Recording large(unsigned round) {
    Recording recording(peer_, round);
    recording.send(next_send_++, 20'000, 9'001);
    written_ = recording.write(memory_.remote_key(), memory_.address() + kWrittenAt, 9'500, 9'500);
    recording.send(next_send_++, 3, kSegmentBytesMax);
    recording.ask_read(next_read_++,
                       {kSinkOfRead, kOffsetOfSink, kReadBytes, memory_.remote_key(), memory_.address() + kReadAt});
    recording.send(next_send_++, 8'300, 8'300, true);
    return recording;
  }

  // The parts begin at those places, and each is read before the next one comes.
  void expect_delivered(const Recording& recording, std::vector<std::size_t> cuts) {
    SCOPED_TRACE(testing::Message() << "cut at " << testing::PrintToString(cuts) << " of " << recording.bytes().size());
    cuts.push_back(recording.bytes().size());
    std::size_t sent = 0;
    auto next = recording.sends().begin();
    for (const std::size_t cut : cuts) {
      const std::span<const std::byte> all = recording.bytes();
      peer_.send(all.subspan(sent, cut - sent));
      sent_ += cut - sent;
      sent = cut;
      ASSERT_TRUE(eventually([this] { return has_been_read(); })) << "the library does not read on";
      for (; next != recording.sends().end() && next->end <= cut; ++next) {
        ASSERT_NO_FATAL_FAILURE(expect_next(*next));
      }
      ASSERT_FALSE(end_.received.poll()) << "a message of which a part is missing";
    }
    const auto answer = peer_.hear_segment();
    ASSERT_TRUE(answer) << "the Read is not answered";
    EXPECT_EQ(answer->header,
              (SegmentHeader{
                  .opcode = Opcode::read_response, .last = true, .stag = kSinkOfRead, .tagged_offset = kOffsetOfSink}));
    EXPECT_EQ(answer->payload, Bytes(memory_.data() + kReadAt, memory_.data() + kReadAt + kReadBytes));
    EXPECT_EQ(written_, Bytes(memory_.data() + kWrittenAt, memory_.data() + kWrittenAt + written_.size()));
    EXPECT_EQ(end_.closed, SeamEnd::Closed::no);
  }

 private:
  // With the engine held nothing that has been read is still to be looked at.
  bool has_been_read() {
    nic_->engine().poll();
    return nic_.held([this] {
      auto* const stream = static_cast<nic::soft::SoftQueuePair&>(*end_).connection().stream();
      if (stream == nullptr) return false;
      const int socket = static_cast<TcpStream*>(stream)->socket();
      MoreOfTcp info{};
      socklen_t size = sizeof info;
      int unread = -1;
      return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
             ::ioctl(socket, FIONREAD, &unread) == 0 && info.bytes_received == sent_ && unread == 0;
    });
  }
  void expect_next(const Recording::Message& message) {
    const nic::Completion done = end_.received.next();
    ASSERT_EQ(done.status, nic::WorkStatus::success);
    ASSERT_EQ(done.length, message.payload.size());
    EXPECT_EQ(done.solicited, message.solicited);
    EXPECT_EQ(done.cookie, next_slot_) << "the buffers are taken in their order";
    next_slot_ = (next_slot_ + 1) % kSlots;
    const std::byte* const slot = buffers_.data() + done.cookie * kSlotBytes;
    EXPECT_TRUE(std::equal(message.payload.begin(), message.payload.end(), slot));
    EXPECT_TRUE(
        std::all_of(slot + message.payload.size(), slot + kSlotBytes, [](std::byte byte) { return byte == kBlank; }));
    post(done.cookie);
  }
  void post(std::uint64_t slot) {
    std::fill_n(buffers_.data() + slot * kSlotBytes, kSlotBytes, kBlank);
    end_.post_recv(buffers_.segment(slot * kSlotBytes, kSlotBytes), slot);
  }

  static constexpr std::byte kBlank{0xb1};

  SeamNic nic_{tcp_wire()};
  SeamMemory buffers_{nic_, kSlots* kSlotBytes, kAllRights, kSeamZone};
  SeamMemory memory_{nic_, kBytesOfMemory, kAllRights, kSeamZone};
  SeamServer service_{nic_};
  SeamEnd end_{nic_};
  MpaPeer peer_{service_.qual()};
  std::uint64_t sent_ = MpaPeer::request({.crc = GetParam()}).size();
  std::uint32_t next_send_ = kFirstSequence;
  std::uint32_t next_read_ = kFirstSequence;
  std::uint64_t next_slot_ = 0;
  Bytes written_;
};

TEST_P(TcpSplits, IntoTwoPartsAtEveryByteChangeNothing) {
  std::size_t cut = 0;
  std::size_t end = 0;
  do {
    const Recording recording = small(static_cast<unsigned>(cut));
    end = recording.bytes().size();
    ASSERT_NO_FATAL_FAILURE(expect_delivered(recording, {cut}));
    ASSERT_FALSE(HasFailure());
  } while (++cut <= end);
  RecordProperty("places", static_cast<int>(cut));
}

TEST_P(TcpSplits, IntoThreePartsChangeNothing) {
  Random random(announced_seed());
  for (unsigned round = 0; round < 2000; ++round) {
    const Recording recording = small(round);
    std::vector<std::size_t> cuts(2);
    for (std::size_t& cut : cuts) cut = random.below(recording.bytes().size() + 1);
    std::ranges::sort(cuts);
    ASSERT_NO_FATAL_FAILURE(expect_delivered(recording, cuts));
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(TcpSplits, IntoSingleBytesChangeNothing) {
  const Recording recording = small(0);
  std::vector<std::size_t> cuts(recording.bytes().size() - 1);
  std::iota(cuts.begin(), cuts.end(), std::size_t{1});
  expect_delivered(recording, cuts);
}

// Near each border of a part of a frame, and by chance: each place would take long.
TEST_P(TcpSplits, OfLargeSegmentsChangeNothing) {
  constexpr std::size_t kNear = 4;
  Random random(announced_seed());
  std::set<std::size_t> places;
  unsigned round = 0;
  for (;; ++round) {
    const Recording recording = large(round);
    const std::size_t end = recording.bytes().size();
    if (round == 0) {
      for (const std::size_t border : recording.borders()) {
        for (std::size_t at = border - std::min(border, kNear); at <= std::min(end, border + kNear); ++at)
          places.insert(at);
      }
      for (int i = 0; i < 100; ++i) places.insert(random.below(end));
    }
    const std::size_t cut = *places.begin();
    const std::size_t another = cut + random.below(end - cut + 1);
    ASSERT_NO_FATAL_FAILURE(expect_delivered(recording, round % 2 == 0 ? std::vector{cut} : std::vector{cut, another}));
    ASSERT_FALSE(HasFailure());
    places.erase(places.begin());
    if (places.empty()) break;
  }
}

std::string crc_name(const testing::TestParamInfo<bool>& info) {
  return info.param ? "crc" : "plain";
}

INSTANTIATE_TEST_SUITE_P(Crcs, TcpSplits, testing::Bool(), crc_name);

}  // namespace
}  // namespace anydat::test
