// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/placement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "env/log.h"
#include "nic/soft/adapter.h"
#include "nic/soft/copy.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

namespace {

using Into = SegmentReader::Into;
using Step = SegmentReader::Step;

// From the moment at which the peer has hung up. As long as a peer that leaves in order waits for progress.
constexpr os::Nanoseconds kMemoryPatience = 2'000'000'000;

}  // namespace

Placement::Placement(TcpStream& stream) : stream_(stream), targets_(stream.fabric().adapter(), *this) {}

Placement::~Placement() {
  stream_.fabric().engine().cancel_timer(patience_);
}

void Placement::begin_write() {
  SegmentReader& reader = stream_.reader();
  // Of length 0 it may name any memory (RFC 5040, section 5.1).
  if (reader.payload_bytes() == 0) return;
  if (reader.header().tagged_offset + reader.payload_bytes() < reader.header().tagged_offset) {
    stream_.disconnection().refuse(ddp_error::kOffsetWraps, CloseReason::remote_access);
    return;
  }
  std::uint64_t where = 0;
  if (!may_write(reader.header().tagged_offset, reader.payload_bytes(), where)) return;
  reader.go_into(Into::memory);
}

bool Placement::may_write(std::uint64_t at, std::uint64_t length, std::uint64_t& where) {
  const RegionCheck check = stream_.fabric().adapter().regions().resolve(
      stream_.reader().header().stag, at, length, stream_.queue_pair().memory().user(), access::kRemoteWrite, where);
  if (check != RegionCheck::ok) stream_.disconnection().refuse(refusal_of(check, false), CloseReason::remote_access);
  return check == RegionCheck::ok;
}

std::size_t Placement::aim(std::span<iovec> pieces, std::size_t count) {
  const std::size_t used = find_target(pieces, count);
  return used == 0 || can_be_written(pieces.first(used)) ? used : 0;
}

std::size_t Placement::find_target(std::span<iovec> pieces, std::size_t count) {
  SegmentReader& reader = stream_.reader();
  const std::size_t skipped = reader.payload_bytes() - reader.payload_left();
  switch (reader.into()) {
    case Into::message:
      return stream_.messages().current()
                 ? stream_.queue_pair().receives().aim(*stream_.messages().current(), count, pieces)
                 : 0;
    case Into::read: {
      const std::optional<std::size_t> used = stream_.requester().aim(skipped, count, pieces);
      if (!used) {
        reader.go_into(Into::nothing);  // the rest of it is heard, and forgotten
        return 0;
      }
      if (*used == 0) stream_.disconnection().refuse(rdmap_error::kStreamCatastrophic);
      return *used;
    }
    case Into::memory: {
      // It may have been withdrawn since the segment began.
      std::uint64_t where = 0;
      if (!may_write(reader.header().tagged_offset + skipped, reader.payload_left(), where)) return 0;
      pieces[0] = {reinterpret_cast<void*>(where), count};
      return 1;
    }
    default:
      return 0;
  }
}

void Placement::landed(std::size_t count) {
  if (stream_.reader().into() == Into::message) stream_.messages().current()->placed += count;
  stream_.reader().go_past(count);
}

bool Placement::place(std::span<const std::byte> bytes) {
  std::array<iovec, kSegmentsMax> pieces;
  const std::size_t used = aim(pieces, bytes.size());
  if (awaits_memory_ || stream_.over()) return false;
  const std::size_t count = bytes.size();
  for (const iovec& piece : std::span(pieces).first(used)) {
    const std::size_t part = std::min(bytes.size(), piece.iov_len);
    if (stream_.reader().into() == Into::memory) {
      copy_ascending(static_cast<std::byte*>(piece.iov_base), bytes.data(), part);  // RDW-11
    } else {
      std::memcpy(piece.iov_base, bytes.data(), part);
    }
    bytes = bytes.subspan(part);
  }
  if (stream_.reader().into() == Into::message && stream_.messages().current())
    stream_.messages().current()->placed += count;
  return true;
}

// ---- memory that is not there

bool Placement::can_be_written(std::span<const iovec> pieces) {
  if (targets_.there(pieces, read_at_)) [[likely]]
    return true;
  awaits_memory_ = true;
  if (stream_.disconnection().hung_up()) limit_wait();
  return false;
}

bool Placement::next_buffer_surely_there(std::size_t bytes) {
  const Segment* const only = stream_.queue_pair().receives().buffers().next_piece();
  return only && targets_.surely_there(only->address, std::min<std::uint64_t>(bytes, only->length), true, read_at_);
}

bool Placement::next_buffer_there(std::size_t bytes) {
  if (next_buffer_surely_there(bytes)) [[likely]]
    return true;
  std::array<iovec, kSegmentsMax> pieces;
  const std::size_t used = stream_.queue_pair().receives().buffers().aim_next(bytes, pieces);
  return used == 0 || can_be_written(std::span(pieces).first(used));
}

bool Placement::result_there() {
  std::array<iovec, kSegmentsMax> pieces;
  const std::size_t used = stream_.queue_pair().outcomes().aim_atomic(pieces);
  return used == 0 || can_be_written(std::span(pieces).first(used));
}

void Placement::wants_pages() {
  stream_.fabric().schedule_turn(stream_.reading_turn());
}

// What waits looks again, and meets what the memory has become.
void Placement::pages_brought(const OwnPages&, const OwnPages::Brought& news) {
  if (stream_.over() || !std::exchange(awaits_memory_, false)) return;
  stream_.fabric().engine().cancel_timer(patience_);
  if (news.there) {
    stream_.waiting().resume();
    stream_.reading_turn().want();
    return;
  }
  SegmentReader& reader = stream_.reader();
  const bool in_payload = reader.step() == Step::payload;
  env::log(env::LogLevel::warn, "a connection over TCP is cut: memory for what arrives cannot be written any more");
  if (Incoming* const begun = stream_.waiting().begun()) {
    stream_.waiting().set_begun(nullptr);
    stream_.queue_pair().receives().fail(*begun, WorkStatus::local_protection);
  } else if (in_payload && reader.into() == Into::memory) {
    stream_.disconnection().refuse(ddp_error::kBaseOrBounds, CloseReason::remote_access);
  } else if (in_payload && reader.into() == Into::read) {
    reader.go_into(Into::nothing);
    stream_.requester().read_failed();
    if (stream_.over()) return;
    stream_.reading_turn().want();
  } else if (in_payload && reader.header().opcode == Opcode::atomic_response) {
    stream_.requester().atomic_failed();
    if (stream_.over()) return;
    stream_.reading_turn().want();
  } else if (stream_.messages().current()) {
    stream_.queue_pair().receives().fail(*stream_.messages().current(), WorkStatus::local_protection);
  } else {
    // It is that of the receive for the next message, which is flushed with the others.
    stream_.disconnection().prepare_terminate_on_message(rdmap_error::kStreamCatastrophic);
    stream_.queue_pair().connection().break_off(WorkStatus::flushed, CloseReason::local_error);
  }
}

void Placement::limit_wait() {
  if (awaits_memory_ && !patience_.pending()) {
    stream_.fabric().engine().set_timer(patience_, os::now_ns() + kMemoryPatience);
  }
}

// What arrives is lost, and with it the connection; but the peer may have said how it ends.
void Placement::give_up() {
  if (stream_.over() || !std::exchange(awaits_memory_, false)) return;
  env::log(env::LogLevel::warn,
           "the peer of a connection over TCP has gone, and memory for what it sent has not come in time");
  stream_.disconnection().discard();
  stream_.reader().go_into(Into::nothing);
  stream_.waiting().set_begun(nullptr);
  stream_.waiting().backlog().clear();
  stream_.reading_turn().want();
}

}  // namespace anydat::nic::soft::iwarp
