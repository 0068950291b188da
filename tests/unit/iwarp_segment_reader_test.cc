// SPDX-License-Identifier: BSD-3-Clause
// What a stream's bytes are taken for does not depend on where they are cut: every pair of places is tried.
#include "nic/soft/wire/iwarp/segment_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/big_endian.h"
#include "unit/hex.h"

namespace anydat::test {
namespace {

using namespace nic::soft::iwarp;

// What the reader has said of a frame.
struct FrameRead {
  bool empty = false;
  SegmentHeader header{};
  Bytes payload;
  bool damaged = false;
  TerminateCode wrong{};
  friend bool operator==(const FrameRead&, const FrameRead&) = default;
};

// Its owner, which has no queue pair: segments end up in a list, and whatever is wrong ends it.
class ReadersOwner {
 public:
  explicit ReadersOwner(bool crc) { reader_.use_crc(crc); }

  void take(std::span<const std::byte> bytes) {
    while (!bytes.empty() && !over_) {
      switch (reader_.step()) {
        case SegmentReader::Step::front:
          take_front(bytes);
          break;
        case SegmentReader::Step::payload: {
          const auto part = bytes.first(std::min(bytes.size(), reader_.payload_left()));
          frame_.payload.insert(frame_.payload.end(), part.begin(), part.end());
          reader_.sum(part);
          reader_.go_past(part.size());
          bytes = bytes.subspan(part.size());
          break;
        }
        case SegmentReader::Step::trailer:
          take_trailer(bytes);
          break;
      }
    }
  }
  const std::vector<FrameRead>& frames() const { return frames_; }
  bool between_frames() const { return reader_.between_frames(); }

 private:
  void take_front(std::span<const std::byte>& bytes) {
    TerminateCode wrong{};
    switch (reader_.take_front(bytes, wrong)) {
      case SegmentReader::Front::incomplete:
        EXPECT_TRUE(bytes.empty());
        return;
      case SegmentReader::Front::empty_frame:
        frame_.empty = true;
        return;
      case SegmentReader::Front::segment:
        frame_.header = reader_.header();
        reader_.enter_payload();
        return;
      case SegmentReader::Front::malformed:
        frame_.wrong = wrong;
        end_frame();
        over_ = true;
    }
  }
  void take_trailer(std::span<const std::byte>& bytes) {
    const SegmentReader::Trailer said = reader_.take_trailer(bytes);
    switch (said) {
      case SegmentReader::Trailer::incomplete:
        EXPECT_TRUE(bytes.empty());
        return;
      case SegmentReader::Trailer::damaged:
        frame_.damaged = true;
        end_frame();
        over_ = true;
        return;
      case SegmentReader::Trailer::empty_frame:
      case SegmentReader::Trailer::segment:
        EXPECT_EQ(said == SegmentReader::Trailer::empty_frame, frame_.empty);
        end_frame();
        reader_.end_frame();
    }
  }
  void end_frame() { frames_.push_back(std::exchange(frame_, {})); }

  SegmentReader reader_;
  FrameRead frame_;
  std::vector<FrameRead> frames_;
  bool over_ = false;
};

Bytes framed(const Bytes& segment, bool crc) {
  Bytes frame(kFrameLengthBytes);
  base::store_big(frame.data(), static_cast<std::uint16_t>(segment.size()));
  frame = frame + segment + repeat(frame_padding(segment.size()));
  const std::uint32_t sum = crc ? crc32c(0, frame) : 0;
  frame.resize(frame.size() + kCrcBytes);
  store_crc(&frame[frame.size() - kCrcBytes], sum);
  return frame;
}

const char* const kSegments[] = {
    "",                                                   // a frame of its own
    "41 43 00000000 00000000 00000001 00000000",          // a Send of nothing
    "c1 40 01020304 1122334455667788 'write'",            // the last of a Write
    "01 45 00000000 00000000 00000002 00000000 'a Sen'",  // one in two segments
    "41 45 00000000 00000000 00000002 00000005 'd'",
    "81 42 01020304 0000000000000010 'ab'",  // of a Read Response
};
// As the last one of a stream.
const char* const kMalformed[] = {
    "41",                                         // ends within its header
    "41 43 00000000 00000000 00000001 000000",    // as well
    "c2 40 01020304 1122334455667788 'version'",  // of DDP
};

class IwarpSegmentReader : public testing::TestWithParam<bool> {
 protected:
  static Bytes stream() {
    Bytes bytes;
    for (const char* segment : kSegments) bytes = std::move(bytes) + framed(hex(segment), GetParam());
    return bytes;
  }
  static std::vector<FrameRead> read(const Bytes& stream, std::size_t first = 0, std::size_t second = 0) {
    ReadersOwner owner(GetParam());
    const std::span<const std::byte> all(stream);
    owner.take(all.first(first));
    owner.take(all.subspan(first, second - first));
    owner.take(all.subspan(second));
    return owner.frames();
  }
  static void expect_the_same_however_cut(const Bytes& stream, const std::vector<FrameRead>& frames) {
    for (std::size_t first = 0; first <= stream.size(); ++first) {
      for (std::size_t second = first; second <= stream.size(); ++second) {
        ASSERT_TRUE(read(stream, first, second) == frames) << "cut at " << first << " and " << second;
      }
    }
  }
};

TEST_P(IwarpSegmentReader, ReadsTheSameFramesWhereverAStreamIsCut) {
  const Bytes bytes = stream();
  const std::vector<FrameRead> frames = read(bytes);
  ASSERT_EQ(frames.size(), std::size(kSegments));
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const Bytes segment = hex(kSegments[i]);
    EXPECT_EQ(frames[i].empty, segment.empty());
    if (segment.empty()) continue;
    FrameRead expected;
    ASSERT_EQ(parse_segment_header(segment, expected.header), std::nullopt);
    const std::size_t header_bytes = segment_header_bytes(expected.header.opcode);
    expected.payload.assign(segment.begin() + static_cast<std::ptrdiff_t>(header_bytes), segment.end());
    EXPECT_EQ(frames[i], expected) << kSegments[i];
  }
  expect_the_same_however_cut(bytes, frames);
}

// No frame is told of before its last byte is there, and each is then.
TEST_P(IwarpSegmentReader, TellsOfAFrameWithItsLastByte) {
  ReadersOwner owner(GetParam());
  for (std::size_t i = 0; i < std::size(kSegments); ++i) {
    for (const std::byte byte : framed(hex(kSegments[i]), GetParam())) {
      EXPECT_EQ(owner.frames().size(), i);
      owner.take({&byte, 1});
    }
    EXPECT_EQ(owner.frames().size(), i + 1);
    EXPECT_TRUE(owner.between_frames());
  }
}

TEST_P(IwarpSegmentReader, FindsTheSameFaultWhereverAStreamIsCut) {
  for (const char* malformed : kMalformed) {
    const Bytes bytes = stream() + framed(hex(malformed), GetParam()) + framed(hex(kSegments[1]), GetParam());
    const std::vector<FrameRead> frames = read(bytes);
    ASSERT_EQ(frames.size(), std::size(kSegments) + 1) << malformed;
    SegmentHeader header;
    EXPECT_EQ(frames.back().wrong, parse_segment_header(hex(malformed), header)) << malformed;
    expect_the_same_however_cut(bytes, frames);
  }
}

// One bit of each byte but those of lengths, which say where all that follows is.
TEST_P(IwarpSegmentReader, FindsDamageWhereverAStreamIsCut) {
  const Bytes good = framed(hex(kSegments[3]), GetParam());
  const Bytes behind = framed(hex(kSegments[1]), GetParam());
  for (std::size_t at = kFrameLengthBytes; at < good.size(); ++at) {
    Bytes bytes = good;
    bytes[at] ^= std::byte{0x20};
    bytes = std::move(bytes) + behind;
    const std::vector<FrameRead> frames = read(bytes);
    if (GetParam()) {  // without a CRC no reader sees it
      ASSERT_EQ(frames.size(), 1u) << "damaged at " << at;
      EXPECT_TRUE(frames[0].damaged || frames[0].wrong != TerminateCode{}) << "damaged at " << at;
    }
    expect_the_same_however_cut(bytes, frames);
  }
}

std::string name_of_crc(const testing::TestParamInfo<bool>& info) {
  return info.param ? "crc" : "plain";
}

INSTANTIATE_TEST_SUITE_P(Crcs, IwarpSegmentReader, testing::Bool(), name_of_crc);

}  // namespace
}  // namespace anydat::test
