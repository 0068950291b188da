// SPDX-License-Identifier: BSD-3-Clause
#include "nic/soft/wire/iwarp/read_responder.h"

#include <algorithm>
#include <array>

#include "nic/budget.h"
#include "nic/soft/adapter.h"
#include "nic/soft/atomic_word.h"
#include "nic/soft/wire/iwarp/stream.h"

namespace anydat::nic::soft::iwarp {

ReadResponder::ReadResponder(TcpStream& stream) : stream_(stream), sources_(stream.fabric().adapter(), *this) {}

std::optional<TerminateCode> ReadResponder::read_asked(std::span<const std::byte> payload) {
  const std::uint32_t sequence = expected_++;
  const ReadRequest request = parse_read_request(payload.first(kReadRequestBytes));
  // And what we said we would take (RFC 6581, section 6).
  if ((request.bytes > 0 && !serves_more()) || served_.size() > stream_.queue_pair().reads_in()) {
    return ddp_error::kNoBuffer;
  }
  served_.push_back({request, sequence, 0});
  serve();
  return std::nullopt;
}

std::optional<TerminateCode> ReadResponder::atomic_asked(std::span<const std::byte> payload) {
  const std::uint32_t sequence = expected_++;
  AtomicRequest request;
  if ((stream_.queue_pair().takes() & ability::kAtomics) == 0 || !parse_atomic_request(payload, request)) {
    return rdmap_error::kUnexpectedOpcode;
  }
  if (!serves_more()) return ddp_error::kNoBuffer;
  served_.push_back({{}, sequence, 0, request});
  serve();
  return std::nullopt;
}

// Whether the peer may have another Read or atomic operation under way. One of our kind keeps the last of those that
// were offered for Reads of length 0, and has as many as the endpoint takes (RDR-11). Any other may use all of them for
// what it likes, unless the endpoint takes none (RDR-12).
bool ReadResponder::serves_more() const {
  if (!stream_.negotiation().peer_is_ours()) return stream_.queue_pair().reads_in() > 0;
  const auto consumers =
      std::count_if(served_.begin(), served_.end(), [](const Served& read) { return read.is_consumers(); });
  return static_cast<std::size_t>(consumers) < stream_.queue_pair().reads_in();
}

bool ReadResponder::serve() {
  OutgoingHalf& outgoing = stream_.outgoing();
  bool moved = false;
  while (!stream_.over() && !served_.empty()) {
    Served& read = served_.front();
    if (read.atomic) {
      if (!serve_atomic(read)) return moved;
      moved = true;
      served_.erase(served_.begin());
      continue;
    }
    const ReadRequest& request = read.request;
    std::uint64_t where = 0;
    if (request.bytes > 0) {
      if (const RegionCheck check = source_of(read, where); check != RegionCheck::ok) {
        refuse(read, check);
        return true;
      }
    }
    SegmentHeader first;
    first.opcode = Opcode::read_response;
    first.stag = request.sink_stag;
    first.tagged_offset = request.sink_offset;
    bool whole = false;
    bool memory_is_gone = false;
    {
      os::Guard guard(outgoing.lock());
      Transmitter& line = outgoing.line();
      if (line.blocked() || line.broken()) return moved;  // the stream's turn comes again
      const Segment source{0, 0, where, request.bytes};
      const std::size_t payload_max = line.ulpdu_max() - kTaggedHeaderBytes;
      const std::uint64_t left = request.bytes - read.offset;
      const std::uint64_t next = std::min<std::uint64_t>(left, budget::kSentPerTurn + payload_max);
      if (!sources_.there(std::span(&source, 1), {read.offset, next}, left, false)) return moved;
      if (request.bytes <= std::min<std::size_t>(OutgoingHalf::kSmallMax, payload_max)) {
        first.last = true;
        whole = line.append(first, {&source, 1}, request.bytes);
        if (whole) outgoing.push_out();
      } else {
        const std::uint64_t limit = outgoing.share_of_pass();
        const std::uint64_t offset =
            limit > 0 ? line.send({first, {&source, 1}, request.bytes}, read.offset, limit) : read.offset;
        moved |= offset != read.offset;
        outgoing.has_sent(offset - read.offset);
        read.offset = static_cast<std::uint32_t>(offset);
        whole = offset == request.bytes;
        memory_is_gone = line.memory_is_gone();
      }
      if (!whole && (!line.blocked() || line.broken())) outgoing.schedule_turn();
    }
    if (memory_is_gone) [[unlikely]] {
      refuse(read, RegionCheck::out_of_bounds);
      return true;
    }
    if (!whole) return moved;
    moved = true;
    served_.erase(served_.begin());
  }
  return moved;
}

RegionCheck ReadResponder::source_of(const Served& served, std::uint64_t& where) {
  const RegionTable& regions = stream_.fabric().adapter().regions();
  if (!served.atomic) {
    const ReadRequest& read = served.request;
    return regions.resolve(read.source_stag, read.source_offset, read.bytes, stream_.queue_pair().memory().user(),
                           access::kRemoteRead, where);
  }
  const AtomicRequest& atomic = *served.atomic;
  return regions.resolve(atomic.stag, atomic.offset, kAtomicBytes, stream_.queue_pair().memory().user(),
                         access::kRemoteAtomic, where);
}

// Once, however often its answer finds no room. False: not yet, or the connection has just ended.
bool ReadResponder::serve_atomic(Served& served) {
  const AtomicRequest& request = *served.atomic;
  if (!served.was) {
    std::uint64_t where = 0;
    RegionCheck check = source_of(served, where);
    if (check == RegionCheck::ok && where % kAtomicBytes != 0) check = RegionCheck::out_of_bounds;
    if (check != RegionCheck::ok) {
      refuse(served, check);
      return false;
    }
    const Segment word{0, 0, where, kAtomicBytes};
    if (!sources_.there(std::span(&word, 1), {0, kAtomicBytes}, kAtomicBytes, true)) return false;
    served.was = carry_out(
        request.operation == AtomicRequest::Operation::fetch_add ? WorkKind::fetch_add : WorkKind::compare_swap, where,
        request.operand, request.compare);
  }
  SegmentHeader header;
  header.opcode = Opcode::atomic_response;
  header.last = true;
  std::array<std::byte, kAtomicResponseBytes> payload;
  write_atomic_response({request.id, *served.was}, payload);
  OutgoingHalf& outgoing = stream_.outgoing();
  os::Guard guard(outgoing.lock());
  Transmitter& line = outgoing.line();
  if (line.blocked() || line.broken()) return false;  // the stream's turn comes again
  header.sequence = response_sequence_;
  if (!line.append(header, payload)) {
    outgoing.schedule_turn();
    return false;
  }
  ++response_sequence_;
  outgoing.push_out();
  return true;
}

void ReadResponder::refuse(const Served& read, RegionCheck check) {
  SegmentHeader header;
  header.opcode = read.atomic ? Opcode::atomic_request : Opcode::read_request;
  header.last = true;
  header.sequence = read.sequence;
  std::array<std::byte, kUntaggedHeaderBytes + kReadRequestBytes> bytes;
  std::size_t count = write_segment_header(header, bytes);
  if (!read.atomic) count += write_read_request(read.request, std::span(bytes).subspan(count));
  const std::span<const std::byte> segment = std::span(bytes).first(count);
  const bool wraps = read.request.source_offset + read.request.bytes < read.request.source_offset;
  const TerminateCode code = wraps ? rdmap_error::kOffsetWraps : refusal_of(check, true);
  stream_.disconnection().pending_terminate().blame(code, segment, segment.size());
  stream_.queue_pair().connection().break_off(WorkStatus::flushed, CloseReason::remote_access);
}

void ReadResponder::wants_pages() {
  stream_.fabric().schedule_turn(stream_.reading_turn());
}

// Those behind the first have not been looked at.
void ReadResponder::pages_brought(const OwnPages&, const OwnPages::Brought& news) {
  if (stream_.over()) return;
  if (!news.there && !served_.empty() && touches(served_.front(), news.address)) {
    refuse(served_.front(), RegionCheck::out_of_bounds);
  } else {
    wants_pages();
  }
}

bool ReadResponder::touches(const Served& served, std::uint64_t address) {
  std::uint64_t where = 0;
  const std::uint64_t length = served.atomic ? kAtomicBytes : served.request.bytes;
  return source_of(served, where) == RegionCheck::ok && address - where < length;
}

}  // namespace anydat::nic::soft::iwarp
