// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/soft/wire/iwarp/format/rdmap.h"
#include "nic/soft/wire/iwarp/segment_reader.h"

namespace anydat::nic::soft::iwarp {

class TcpStream;

// What arrives over TCP, frame by frame: SegmentReader tells what its bytes are, and each segment is given to the part
// that it is for, when its header has been read and again when it is whole: Sends and immediate data to
// MessageReceiver, requests of the peer to ReadResponder, answers to Requester, words of an end to Disconnection. In
// between, Placement puts its payload where it goes.
//
// With the engine held. Lives and dies with its stream.
class SegmentReceiver {
 public:
  explicit SegmentReceiver(TcpStream& stream) : stream_(stream) {}
  SegmentReceiver(const SegmentReceiver&) = delete;
  SegmentReceiver& operator=(const SegmentReceiver&) = delete;

  SegmentReader& reader() { return reader_; }
  // Answers what it could not take yet, which is nothing unless a segment waits or the turn is over.
  std::span<const std::byte> consume(std::span<const std::byte> bytes);
  void enter();  // the segment whose header the reader has; again, if it has waited for a buffer

 private:
  using Into = SegmentReader::Into;
  using Step = SegmentReader::Step;

  std::span<const std::byte> take_front(std::span<const std::byte> bytes);
  std::span<const std::byte> take_payload(std::span<const std::byte> bytes);
  std::span<const std::byte> take_trailer(std::span<const std::byte> bytes);
  void begin_segment();
  void begin_atomic_response();
  void begin_read_response();
  void begin_request();
  void begin_terminate();
  void end_segment();
  void end_discarded();
  void signalled(std::uint64_t offset);
  void refuse(TerminateCode code);

  TcpStream& stream_;
  SegmentReader reader_;
};

}  // namespace anydat::nic::soft::iwarp
