// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <utility>

#include "nic/soft/adapter.h"
#include "nic/soft/queue_pair.h"
#include "wire/sim/network.h"

namespace anydat::nic::soft::sim {

using iwarp::Opcode;

namespace {

std::vector<std::byte> gather(const SendRequest& message) {
  std::vector<std::byte> bytes;
  for (const Segment& segment : message.segments) {
    const auto* from = reinterpret_cast<const std::byte*>(segment.address);
    const std::size_t part = std::min<std::uint64_t>(segment.length, message.length - bytes.size());
    bytes.insert(bytes.end(), from, from + part);
  }
  return bytes;
}

}  // namespace

SimStream::~SimStream() {
  network_.gone(index_);
}

SendOutcome SimStream::send(std::uint64_t, const SendRequest& message, Progress& progress) {
  iwarp::SegmentHeader header;
  switch (message.kind) {
    case WorkKind::send:
      header.opcode = message.flags.solicited() ? Opcode::send_solicited : Opcode::send;
      header.sequence = next_sequence_++;
      break;
    case WorkKind::rdma_write:
      header.opcode = Opcode::write;
      header.stag = message.remote.key;
      header.tagged_offset = message.remote.address;
      break;
    default:
      progress.failure = WorkStatus::remote_responder;  // no Reads here
      return SendOutcome::failed;
  }
  network_.send(index_, header, gather(message));
  return SendOutcome::done;
}

void SimStream::arrived(const std::vector<std::byte>& segment) {
  if (closed_ || place(segment)) return;
  held_.push_back(segment);
  receives_.not_ready().wait_for_buffer();
}

bool SimStream::place(const std::vector<std::byte>& segment) {
  iwarp::SegmentHeader header;
  if (const auto wrong = iwarp::parse_segment_header(segment, header)) {
    refuse(*wrong);
    return true;
  }
  const auto payload = std::span(segment).subspan(iwarp::segment_header_bytes(header.opcode));
  if (header.opcode == Opcode::write) {
    place_write(header, payload);
    return true;
  }
  if (!iwarp::is_send(header.opcode) || iwarp::invalidates(header.opcode)) {
    refuse(iwarp::rdmap_error::kUnexpectedOpcode);
    return true;
  }
  // The 32 bits on the wire are those of the number that is nearest to the newest.
  const auto ahead = static_cast<std::int32_t>(header.sequence - static_cast<std::uint32_t>(newest_));
  const std::uint64_t number = newest_ + static_cast<std::uint64_t>(std::int64_t{ahead});
  switch (receives_.place_segment({number, header.offset, payload, header.last, iwarp::is_solicited(header.opcode)})) {
    case SegmentResult::done:
      newest_ = std::max(newest_, number);
      return true;
    case SegmentResult::no_buffer:
      return false;
    case SegmentResult::bad_number:
      refuse(iwarp::ddp_error::kSequenceRange);
      return true;
    case SegmentResult::bad_offset:
      refuse(iwarp::ddp_error::kInvalidOffset);
      return true;
    case SegmentResult::broken:
      return true;
  }
  return true;
}

void SimStream::place_write(const iwarp::SegmentHeader& header, std::span<const std::byte> payload) {
  if (payload.empty()) return;
  if (adapter_.regions().check(header.stag, header.tagged_offset, payload.size(), queue_pair_.memory().user(),
                               access::kRemoteWrite) != RegionCheck::ok) {
    refuse(iwarp::ddp_error::kInvalidStag, CloseReason::remote_access);
    return;
  }
  std::memcpy(reinterpret_cast<std::byte*>(header.tagged_offset), payload.data(), payload.size());
}

// Those of the oldest messages first, since nothing is delivered before them.
void SimStream::resume_receiving() {
  const auto sequence_of = [](const std::vector<std::byte>& segment) {
    iwarp::SegmentHeader header;
    return iwarp::parse_segment_header(segment, header) ? 0u : header.sequence;
  };
  std::ranges::stable_sort(held_, [&](const auto& left, const auto& right) {
    return static_cast<std::int32_t>(sequence_of(left) - sequence_of(right)) < 0;
  });
  for (const std::vector<std::byte>& segment : std::exchange(held_, {})) {
    if (closed_) return;
    if (!place(segment)) held_.push_back(segment);
  }
  if (closed_) return;
  if (held_.empty()) {
    queue_pair_.connection().orderly_end().delivered_everything();
  } else {
    receives_.not_ready().wait_for_buffer();
  }
}

void SimStream::refuse(iwarp::TerminateCode code, CloseReason reason) {
  network_.places_[index_].refusal = code;
  queue_pair_.connection().break_off(WorkStatus::flushed, reason);
}

bool SimStream::let_go() {
  closed_ = true;
  held_.clear();
  return true;
}

void SimStream::close(CloseReason reason) {
  if (closed_) return;
  closed_ = true;
  network_.send_close(index_, reason);
}

void SimStream::close_arrived(CloseReason reason) {
  if (closed_) return;
  closed_ = reason != CloseReason::graceful;
  queue_pair_.connection().peer_closed(reason);
}

void SimStream::lost() {
  if (closed_) return;
  closed_ = true;
  queue_pair_.connection().peer_lost(WorkStatus::transport);
}

}  // namespace anydat::nic::soft::sim
