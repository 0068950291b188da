// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/hidden_order.h"
#include "nic/soft/wire/iwarp/chunk.h"
#include "nic/soft/wire/iwarp/format/ddp.h"
#include "nic/types.h"

namespace anydat::nic::soft::iwarp {

// A DDP message that lies in the consumer's memory.
struct GatheredMessage {
  SegmentHeader first;  // of its first segment; `last` and offsets of all are filled in
  std::span<const Segment> segments;
  std::uint64_t length;
};

// The outgoing half of a connection's socket. FPDUs go in whole: of one that the socket takes in part the rest is
// copied, so that whatever comes next may follow at once, and nothing refers to the consumer's memory.
//
// Not thread safe: its owner's lock guards it. The socket is its owner's, too.
class Transmitter {
 public:
  explicit Transmitter(ChunkPool& pool) : pool_(pool) {}
  ~Transmitter();
  // Takes over the socket and what is in line; the other one is as new.
  Transmitter(Transmitter&& other) noexcept;
  Transmitter& operator=(Transmitter&&) = delete;

  void open(int fd, base::HiddenOrder order = base::HiddenOrder()) {
    fd_ = fd;
    order_ = order;
  }
  void use_crc(bool crc) { crc_ = crc; }
  void set_ulpdu_max(std::uint32_t bytes) { ulpdu_max_ = bytes; }
  std::uint32_t ulpdu_max() const { return ulpdu_max_; }

  // Puts a segment in line, whose payload fits into one FPDU, or bytes as they are. False when out of memory.
  bool append(const SegmentHeader& header, std::span<const Segment> payload, std::size_t payload_bytes);
  bool append(const SegmentHeader& header, std::span<const std::byte> payload);
  bool append_empty_frame();
  bool append_bytes(std::span<const std::byte> bytes);
  // Bytes that go before any frame, for which the socket has room. False when it has not, and memory neither.
  bool send_at_once(std::span<const std::byte> bytes);
  // Gives the socket what is in line, as far as it takes it.
  void flush();
  // Gives it what is in line and then the message from `offset` on, about `limit` bytes at most. Returns the offset of
  // what is still to be sent.
  std::uint64_t send(const GatheredMessage& message, std::uint64_t offset, std::uint64_t limit);

  // The socket takes no more for now. It says when it does again; then writable() is due.
  bool blocked() const { return blocked_; }
  void writable() { blocked_ = false; }
  // Nothing more can be sent: for want of memory, or because a message's own memory is not there any more.
  bool broken() const { return broken_; }
  bool memory_is_gone() const { return memory_is_gone_; }
  void give_up() { broken_ = true; }  // something could not be put in line that must be sent
  // What was last to be put in line found no memory. It may be tried again.
  bool lacks_memory() const { return lacks_memory_; }
  // How the connection has ended, if the socket has told so here: it tells once, and its reader then sees the end of
  // the stream as after an end in order. 0: it has not.
  int loss() const { return loss_; }
  bool idle() const { return line_.empty(); }
  std::size_t waiting() const { return waiting_; }  // bytes in line

 private:
  struct Frames;
  std::byte* reserve(std::size_t bytes);
  std::size_t line_up(std::span<iovec> pieces);
  std::size_t give(std::span<iovec> pieces);
  void note_failure(int error);
  std::size_t take_off_line(std::size_t bytes);
  bool keep_rest(std::span<const iovec> frame, std::size_t taken);
  void seal(std::byte* frame, std::size_t segment_bytes) const;

  ChunkPool& pool_;
  int fd_ = -1;
  base::HiddenOrder order_;
  bool crc_ = false;
  bool blocked_ = false;
  bool broken_ = false;
  bool memory_is_gone_ = false;
  bool lacks_memory_ = false;
  bool amid_frame_ = false;  // the rest of what is out found no memory
  std::uint16_t loss_ = 0;   // an error of errno
  std::uint32_t ulpdu_max_ = 0;
  base::List<Chunk, &Chunk::place> line_;
  Chunk* last_ = nullptr;  // of the line; it may still have room
  std::size_t waiting_ = 0;
};

}  // namespace anydat::nic::soft::iwarp
