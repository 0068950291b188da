// SPDX-License-Identifier: BSD-3-Clause
// The ring of a segment: compared with a plain queue, under random use; and what it makes of a peer that lies.
#include "nic/soft/wire/shm/ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

namespace anydat::nic::soft::shm {
namespace {

struct Message {
  std::uint32_t number;
  std::uint32_t bytes;
};

// Each message tells its own bytes, so that the reader knows what to find.
std::byte byte_of(std::uint32_t number, std::size_t index) {
  return static_cast<std::byte>(number * 31 + index * 7);
}

class RingTest : public testing::Test {
 protected:
  void SetUp() override {
    os::UniqueFd fd;
    ours = Segment::create(fd);
    ASSERT_TRUE(ours);
    theirs = Segment::attach(fd.get());
    ASSERT_TRUE(theirs);
    writer.attach(theirs);
    reader.attach(ours);
  }

  bool write(std::uint32_t number, std::uint32_t bytes) {
    const std::uint32_t cells = cells_for(bytes);
    std::byte* const body = writer.begin(cells);
    if (!body) return false;
    for (std::size_t i = 0; i < bytes; ++i) body[i] = byte_of(number, i);
    writer.publish(body, CellKind::send, 0, cells, bytes, number, ~number);
    return true;
  }

  // The next message that is not padding; taken.
  ReadResult read(CellView& view) {
    for (;;) {
      const ReadResult result = reader.peek(view);
      if (result != ReadResult::message) return result;
      reader.take(view);
      if (view.kind != CellKind::pad) return result;
    }
  }

  void expect(const CellView& view, const Message& message) {
    EXPECT_EQ(view.kind, CellKind::send);
    EXPECT_EQ(view.length, message.bytes);
    EXPECT_EQ(view.connection, message.number);
    EXPECT_EQ(view.aux, ~message.number);
    ASSERT_GE(view.body_room, message.bytes);
    for (std::size_t i = 0; i < message.bytes; ++i) ASSERT_EQ(view.body[i], byte_of(message.number, i)) << i;
  }

  Segment ours, theirs;  // the same memory
  RingWriter writer;
  RingReader reader;
};

TEST_F(RingTest, IsEmptyAtFirst) {
  CellView view{};
  EXPECT_TRUE(reader.empty());
  EXPECT_EQ(reader.peek(view), ReadResult::empty);
}

TEST_F(RingTest, PeekingTakesNothing) {
  ASSERT_TRUE(write(1, 10));
  CellView view{};
  EXPECT_EQ(reader.peek(view), ReadResult::message);
  EXPECT_EQ(reader.peek(view), ReadResult::message);
  EXPECT_FALSE(reader.empty());
  reader.take(view);
  EXPECT_TRUE(reader.empty());
}

TEST_F(RingTest, TellsWhetherAMessageIsTheLast) {
  CellView view{};
  ASSERT_TRUE(write(1, kInlineBytesMax));
  ASSERT_EQ(reader.peek(view), ReadResult::message);
  EXPECT_TRUE(reader.is_last(view));
  ASSERT_TRUE(write(2, 10));
  EXPECT_FALSE(reader.is_last(view));
  reader.take(view);
  ASSERT_EQ(reader.peek(view), ReadResult::message);
  EXPECT_TRUE(reader.is_last(view));
}

// Whatever sizes, and whenever the reader says what it has taken: each message comes once, in order, whole.
TEST_F(RingTest, IsAQueue) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::deque<Message> written;
    std::uint32_t number = 0;
    for (int step = 0; step < 20'000 && !HasFailure(); ++step) {
      CellView view{};
      switch (random() % 5) {
        case 0:
        case 1: {
          const Message next{number, static_cast<std::uint32_t>(random() % 3 == 0 ? random() % (kInlineBytesMax + 1)
                                                                                  : random() % 200)};
          if (write(next.number, next.bytes)) {
            written.push_back(next);
            ++number;
          }
          break;
        }
        case 2:
        case 3:
          if (written.empty()) {
            ASSERT_EQ(read(view), ReadResult::empty);
          } else {
            ASSERT_EQ(read(view), ReadResult::message);
            expect(view, written.front());
            written.pop_front();
          }
          break;
        default:
          reader.publish();
      }
    }
    for (CellView view{}; !written.empty(); written.pop_front()) {
      ASSERT_EQ(read(view), ReadResult::message);
      expect(view, written.front());
    }
    reader.publish();
    EXPECT_TRUE(writer.sane());
  }
}

TEST_F(RingTest, IsFullUntilTheReaderSaysWhatItHasTaken) {
  std::uint32_t count = 0;
  while (write(count, 1)) ++count;
  EXPECT_EQ(count, kCellCount - 1);  // one cell stays free for the cleared word
  CellView view{};
  ASSERT_EQ(read(view), ReadResult::message);
  EXPECT_FALSE(write(count, 1));
  EXPECT_EQ(reader.unpublished(), 1u);
  reader.publish();
  EXPECT_EQ(reader.unpublished(), 0u);
  EXPECT_TRUE(write(count, 1));
  EXPECT_FALSE(write(count + 1, 1));
}

TEST_F(RingTest, ALargeMessageIsNotBrokenAtTheEnd) {
  const std::uint32_t large = kInlineBytesMax;
  std::uint32_t number = 0;
  // Twice around, with one small message that moves where the large ones begin.
  for (std::uint32_t cells = 0; cells < 2 * kCellCount; cells += cells_for(large)) {
    ASSERT_TRUE(write(number, large));
    CellView view{};
    ASSERT_EQ(read(view), ReadResult::message);
    expect(view, {number, large});
    reader.publish();
    ++number;
    if (number % 8 == 0) {
      ASSERT_TRUE(write(number, 0));
      ASSERT_EQ(read(view), ReadResult::message);
      expect(view, {number, 0});
      ++number;
    }
  }
}

TEST_F(RingTest, TwoThreadsPassEverythingOn) {
  constexpr std::uint32_t kMessages = 50'000;
  const auto size_of = [](std::uint32_t number) { return number % 97 == 0 ? 5000 : number % 150; };
  std::jthread sender([&] {
    for (std::uint32_t number = 0; number < kMessages;) {
      if (write(number, size_of(number))) {
        ++number;
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (std::uint32_t number = 0; number < kMessages && !HasFatalFailure();) {
    CellView view{};
    const ReadResult result = read(view);
    if (result == ReadResult::empty) {
      reader.publish();
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(result, ReadResult::message);
    expect(view, {number, size_of(number)});
    ++number;
    if (reader.unpublished() > 256) reader.publish();
  }
}

// ---- bulk bytes

TEST_F(RingTest, BulkBytesLieTogetherAndAreNotOverwrittenBeforeTheyAreTaken) {
  std::mt19937_64 random(1);
  struct Piece {
    std::uint64_t position;
    std::size_t bytes;
    std::byte mark;
  };
  std::deque<Piece> written;
  int refused = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 2 == 0) {
      const std::size_t bytes = 1 + random() % 65'536;
      std::uint64_t position = 0;
      std::byte* const to = writer.begin_bulk(bytes, position);
      if (!to) {
        ++refused;
      } else {
        ASSERT_LE((position & (kBulkBytes - 1)) + bytes, kBulkBytes);
        const auto mark = static_cast<std::byte>(step);
        to[0] = to[bytes - 1] = mark;
        writer.commit_bulk(bytes, position);
        written.push_back({position, bytes, mark});
      }
    } else if (!written.empty()) {
      const Piece piece = written.front();
      written.pop_front();
      const std::byte* const from = reader.bulk(piece.position, piece.bytes);
      ASSERT_NE(from, nullptr);
      EXPECT_EQ(from[0], piece.mark);
      EXPECT_EQ(from[piece.bytes - 1], piece.mark);
      reader.take_bulk(piece.position, piece.bytes);
      if (random() % 4 == 0) reader.publish();
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_TRUE(writer.sane());
}

TEST_F(RingTest, BytesBeyondTheEndOfTheBulkRingAreNone) {
  EXPECT_NE(reader.bulk(kBulkBytes - 64, 64), nullptr);
  EXPECT_EQ(reader.bulk(kBulkBytes - 64, 65), nullptr);
  EXPECT_EQ(reader.bulk(0, kBulkBytes + 1), nullptr);
  EXPECT_NE(reader.bulk(~std::uint64_t{0} - 63, 64), nullptr);
}

// ---- a peer that lies

TEST_F(RingTest, ImpossibleHeadersAreMalformed) {
  struct Header {
    std::uint32_t kind, cells;
  };
  const auto last = std::uint32_t{kCellKindLast};
  for (const Header& header : {Header{0, 1}, Header{last + 1, 1}, Header{255, 1}, Header{1, 0},
                               Header{1, kCellCount + 1}, Header{1, 0xffff}}) {
    reinterpret_cast<CellHeader*>(theirs.cells())->ready.store(header.kind | header.cells << 16);
    CellView view{};
    const ReadResult expected = header.kind == 0 && header.cells == 0 ? ReadResult::empty : ReadResult::malformed;
    EXPECT_EQ(reader.peek(view), expected) << header.kind << ' ' << header.cells;
  }
}

TEST_F(RingTest, AMessageBeyondTheEndIsMalformed) {
  for (std::uint32_t i = 0; i < kCellCount - 1; ++i) {
    ASSERT_TRUE(write(i, 1));
    CellView view{};
    ASSERT_EQ(read(view), ReadResult::message);
    reader.publish();
  }
  auto* const end = reinterpret_cast<CellHeader*>(theirs.cells() + (kCellCount - 1) * kCellBytes);
  end->ready.store(pack_ready(CellKind::send, 0, 2));
  CellView view{};
  EXPECT_EQ(reader.peek(view), ReadResult::malformed);
  end->ready.store(pack_ready(CellKind::send, 0, 1));
  EXPECT_EQ(reader.peek(view), ReadResult::message);
}

TEST_F(RingTest, AReaderThatClaimsTheImpossibleIsNotBelieved) {
  struct Claim {
    const char* name;
    std::uint64_t cells, bulk;
  };
  for (const Claim& claim : {Claim{"more cells than were written", kCellCount, 0},
                             Claim{"more bytes than were written", 1, 1}, Claim{"for ever", ~std::uint64_t{0}, 0}}) {
    SCOPED_TRACE(claim.name);
    SetUp();
    writer = RingWriter();
    writer.attach(theirs);
    while (write(0, 1)) {
    }
    theirs.header().cells_consumed.store(claim.cells);
    theirs.header().bulk_consumed.store(claim.bulk);
    EXPECT_FALSE(write(0, 1));
    EXPECT_FALSE(writer.sane());
  }
}

TEST_F(RingTest, AReaderThatTakesBackWhatItHadTakenIsNotBelieved) {
  while (write(0, 1)) {
  }
  theirs.header().cells_consumed.store(10);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(write(0, 1)) << i;
  theirs.header().cells_consumed.store(9);
  EXPECT_FALSE(write(0, 1));
  EXPECT_FALSE(writer.sane());
}

}  // namespace
}  // namespace anydat::nic::soft::shm
